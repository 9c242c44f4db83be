package calls

import (
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
)

func overhead() studied {
	return studyOf(bench.Experiment{
		Name:    "overhead",
		Summary: "64-byte echoes, no work, 1 and 16 callers: latency, throughput, CPU time (real mode)",
		Modes:   []bench.Mode{bench.Real},
		Figures: overheadFigures(),
	}, func(o bench.Options) study {
		st := study{top: topology{servers: 1, shared: true}, rounds: bench.Pick(o, 2, 20),
			ratios: []ratio{opsRatio, cpuRatio}, paired: true}
		for _, calls := range []int{1, chainCalls} {
			for _, callers := range []int{1, clients} {
				l := load{callers: callers, calls: calls, perCaller: 64, span: bench.Pick(o, 15*time.Millisecond,
					60*time.Millisecond)}
				st.groups = append(st.groups, overheadTrials(l))
			}
		}
		return st
	})
}

// overheadTrials are one load in all ways: without Foresay, and with every kind of prediction. The
// column guesses says whether all are made, or those only that a client's default settings let it
// make: sites whose right guesses save less than they cost make none, and echoes without work are
// such. The column path says what carries the calls: "plain" is an ordinary unary call wherever the
// caller is not itself speculative, "spec" is a speculative stream for each, as servers that
// predict need, with "stream" plain gRPC has as many messages on a stream of its own for each call,
// the least that "spec" can cost, and with "asked" the server may predict and has nothing to say,
// so that few calls go on asking.
func overheadTrials(l load) []trial {
	add := func(group *[]trial, s stack, prediction, by, path string, guesses, server guess) {
		own := l
		own.guessing, own.ask.predict = guesses != noGuess, server
		if guesses == rightGuess {
			own.percent = 100
		}
		made := "all"
		if s.variant.fused {
			made = "by default"
		}
		*group = append(*group, trial{stack: s, load: own, params: []table.Cell{
			table.Is("calls", l.calls), table.Is("callers", l.callers), table.Is("prediction", prediction),
			table.Is("predicted_by", by), table.Is("guesses", made), table.Is("path", path),
		}})
	}
	var group []trial
	add(&group, grpcStack(), "off", "nobody", "plain", noGuess, noGuess)
	add(&group, grpcStreamStack(), "off", "nobody", "stream", noGuess, noGuess)
	add(&group, foresayOff(variant{}), "off", "nobody", "plain", noGuess, noGuess)
	add(&group, foresayDo(variant{off: true}), "off", "nobody", "plain", noGuess, noGuess)
	for _, g := range []guess{noGuess, rightGuess, wrongGuess} {
		by := "client"
		if g == noGuess {
			by = "nobody"
		}
		add(&group, foresayDo(variant{}), g.String(), by, "plain", g, noGuess)
		add(&group, foresayDo(variant{asking: true}), g.String(), by, "asked", g, noGuess)
		if g != noGuess {
			add(&group, foresayDo(variant{asking: true}), g.String(), "server", "spec", noGuess, g)
			add(&group, foresayThen(variant{}), g.String(), by, "plain", g, noGuess)
		}
	}
	// On connections of their own: what is on them decides.
	add(&group, foresayDo(variant{fused: true, calls: l.calls}), rightGuess.String(), "client", "plain", rightGuess,
		noGuess)
	add(&group, foresayDo(variant{fused: true, calls: l.calls, asking: true}), rightGuess.String(), "server", "spec",
		noGuess, rightGuess)
	return group
}

func overheadFigures() []figure.Spec {
	var figures []figure.Spec
	for _, y := range []struct {
		suffix, title string
		column        ratio
	}{
		{"latency", "Mean latency of ", latencyRatio},
		{"throughput", "Throughput of ", opsRatio},
		{"cpu", "Processor time of ", cpuRatio},
	} {
		for _, calls := range []struct {
			n            int
			suffix, what string
		}{{1, "echo", "a 64-byte echo"}, {chainCalls, "chain", "a chain of 4 echoes"}} {
			figures = append(figures, figure.Spec{
				Suffix: calls.suffix + "-" + y.suffix, Title: y.title + calls.what,
				Y: string(y.column), YLabel: "times plain gRPC's", Where: table.Is("calls", calls.n),
				Across: []string{"system", "prediction", "predicted_by", "guesses", "path"}, Ratio: true,
				Series: []string{"callers"},
			})
		}
	}
	return figures
}

package calls

import (
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
)

const (
	clients      = 16
	clientPeriod = 100 * time.Millisecond // ten requests a second
	chainCalls   = 4
	chainWork    = 10 * time.Millisecond
	chainServers = 4 // one for each call of a chain
	longestChain = 10
)

// chainLoad is the load of SpecRPC's microbenchmark [SpecRPC §5.1].
func chainLoad(o bench.Options) load {
	return load{
		callers:   clients,
		calls:     chainCalls,
		ask:       ask{work: chainWork},
		guessing:  true,
		perCaller: bench.Pick(o, 5, bench.PickMode(o, 50, 10)),
		period:    clientPeriod,
	}
}

// rounds is how often real mode repeats each trial of an open loop.
func rounds(o bench.Options) int { return bench.Pick(o, 1, 5) }

func chain() studied {
	return studyOf(bench.Experiment{
		Name:    "chain",
		Summary: "4 dependent calls of 10 ms; 0 to 100 % of predictions right (SpecRPC figure 8a)",
		Modes:   []bench.Mode{bench.Virtual, bench.Real},
		Figures: []figure.Spec{{
			Title: "A chain of 4 calls of 10 ms each", X: "correct_percent", XLabel: "right predictions per call (%)",
			Y: "mean_ms", YLabel: "mean completion time (ms)", Series: []string{"system"},
		}},
	}, func(o bench.Options) study {
		st := study{top: topology{servers: chainServers}, rounds: rounds(o), ratios: []ratio{cpuRatio}}
		for _, percent := range bench.Pick(o, []int{0, 50, 90, 100}, []int{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100}) {
			l := chainLoad(o)
			l.percent = percent
			st.groups = append(st.groups, sideBySide(variant{}, []table.Cell{table.Is("correct_percent", percent)}, l))
		}
		return st
	})
}

func chainLength() studied {
	return studyOf(bench.Experiment{
		Name:    "chain-length",
		Summary: "1 to 10 dependent calls of 10 ms, 90 % of predictions right (SpecRPC figure 8b)",
		Modes:   []bench.Mode{bench.Virtual, bench.Real},
		Figures: []figure.Spec{{
			Title: "Chains of calls of 10 ms, 90 % of predictions right", X: "calls", XLabel: "dependent calls per request",
			Y: "mean_ms", YLabel: "mean completion time (ms)", Series: []string{"system"},
		}},
	}, func(o bench.Options) study {
		st := study{top: topology{servers: longestChain}, rounds: rounds(o)}
		for _, calls := range bench.Pick(o, []int{1, 4, longestChain}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, longestChain}) {
			l := chainLoad(o)
			l.calls, l.percent = calls, 90
			// A request of ten calls takes as long as the period; more time keeps them apart.
			l.period *= 2
			st.groups = append(st.groups, sideBySide(variant{},
				[]table.Cell{table.Is("calls", calls), table.Is("correct_percent", 90)}, l))
		}
		return st
	})
}

func chainRTT() studied {
	const rtt = 10 * time.Millisecond
	return studyOf(bench.Experiment{
		Name:    "chain-rtt",
		Summary: "4 dependent calls without work, 10 ms round trip (what promise pipelining hides)",
		Modes:   []bench.Mode{bench.Virtual, bench.Real},
		Figures: []figure.Spec{{
			Title: "A chain of 4 calls over a round trip of 10 ms", X: "correct_percent",
			XLabel: "right predictions per call (%)",
			Y:      "mean_ms", YLabel: "mean completion time (ms)", Series: []string{"system"}, Bars: true,
		}},
	}, func(o bench.Options) study {
		st := study{top: topology{servers: chainServers, rtt: rtt}, rounds: rounds(o)}
		for _, percent := range bench.Pick(o, []int{0, 100}, []int{0, 50, 90, 100}) {
			l := chainLoad(o)
			l.ask.work, l.percent = 0, percent
			st.groups = append(st.groups, sideBySide(variant{},
				[]table.Cell{table.Is("rtt_ms", 10), table.Is("correct_percent", percent)}, l))
		}
		return st
	})
}

func bandwidth() studied {
	return studyOf(bench.Experiment{
		Name:    "bandwidth",
		Summary: "bytes on the wire for 4 dependent calls of 64 bytes (SpecRPC figure 8c)",
		Modes:   []bench.Mode{bench.Virtual, bench.Real},
		Figures: []figure.Spec{{
			Title: "Bytes on the wire for a chain of 4 calls of 64 bytes", X: "correct_percent",
			XLabel: "right predictions per call (%)",
			Y:      "bytes_per_op", YLabel: "bytes per request, both directions", Series: []string{"system"}, Bars: true,
		}},
	}, func(o bench.Options) study {
		st := study{top: topology{servers: chainServers}, rounds: rounds(o), ratios: []ratio{bytesRatio}}
		for _, percent := range bench.Pick(o, []int{0, 90, 100}, []int{0, 50, 90, 100}) {
			l := chainLoad(o)
			l.percent = percent
			st.groups = append(st.groups, sideBySide(variant{}, []table.Cell{table.Is("correct_percent", percent)}, l))
		}
		return st
	})
}

package calls

import (
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"google.golang.org/grpc"
)

const (
	limitedCalls = 3
	limitedWork  = 50 * time.Millisecond
)

// limit is what limits the calls of a trial.
type limit struct {
	streams  int  // that the server admits on a connection, 0 for any number
	halfOpen int  // calls that the server runs for a speculative caller, 0 for its default
	staged   bool // calls have effects, which the server stages
}

// limits asks what speculation costs and gains where a limit on concurrent streams is near.
func limits() studied {
	return studyOf(bench.Experiment{
		Name: "limits",
		Summary: "16 to 1000 callers over one connection whose server admits 16, 100 or any number of streams, and of " +
			"half-open calls",
		Modes: []bench.Mode{bench.Virtual, bench.Real},
		Figures: []figure.Spec{{
			Title: "Chains of 3 calls of 50 ms over one connection", X: "callers", XLabel: "callers",
			Y: "mean_ms", YLabel: "mean completion time (ms)", Series: []string{"system", "max_streams", "half_open", "calls",
				"connection"},
		}},
	}, func(o bench.Options) study {
		st := study{top: topology{servers: 1, shared: true}, rounds: bench.Pick(o, 1, 3),
			ratios: []ratio{opsRatio, worstRatio}}
		for _, streams := range []int{16, 100, 0} {
			for _, callers := range bench.Pick(o, []int{16, 200}, []int{16, 64, 200, 1000}) {
				st.groups = append(st.groups, limitedTrials(o, limit{streams: streams}, callers))
			}
		}
		for _, l := range []limit{{streams: 100, staged: true}, {halfOpen: 32}, {halfOpen: 32, staged: true}} {
			for _, callers := range []int{16, 200} {
				st.groups = append(st.groups, limitedTrials(o, l, callers))
			}
		}
		for _, staged := range []bool{false, true} { // what nobody has learnt
			for _, callers := range bench.Pick(o, []int{16, 200}, []int{16, 64, 400}) {
				for _, streams := range []int{16, 100, 0} {
					st.groups = append(st.groups, coldTrials(limitedTrials(o, limit{streams: streams, staged: staged}, callers)))
				}
			}
		}
		return st
	})
}

// limitedTrials are a closed loop of callers over a connection with a limit.
func limitedTrials(o bench.Options, lim limit, callers int) []trial {
	l := load{
		callers: callers, calls: limitedCalls, ask: ask{work: limitedWork},
		guessing: true, percent: 100, perCaller: bench.Pick(o, 6, 20),
	}
	orAny := func(n int) any {
		if n == 0 {
			return "any"
		}
		return n
	}
	calls := "reads"
	if lim.staged {
		calls = "staged"
	}
	params := []table.Cell{
		table.Is("max_streams", orAny(lim.streams)), table.Is("half_open", orAny(lim.halfOpen)), table.Is("calls", calls),
		table.Is("connection", "used"), table.Is("callers", callers),
	}
	v := variant{streams: lim.streams, halfOpen: lim.halfOpen, staged: lim.staged}
	plain := grpcStack()
	plain.variant = v
	var group []trial
	for _, st := range []stack{plain, foresayDo(v)} {
		group = append(group, trial{stack: st.admitting(lim.streams), load: l, params: params})
	}
	return group
}

// coldTrials are the same of the first request of each caller over a new connection.
func coldTrials(group []trial) []trial {
	for i := range group {
		t := &group[i]
		t.cold, t.load.perCaller, t.load.apart = true, 1, time.Microsecond
		t.params = slices.Clone(t.params)
		t.params[slices.IndexFunc(t.params, func(c table.Cell) bool { return c.Name == "connection" })].Value = "new"
	}
	return group
}

// admitting returns the stack with servers that admit so many streams of a connection, 0 for any
// number.
func (s stack) admitting(streams int) stack {
	if streams == 0 {
		return s
	}
	serve := s.newServer
	s.newServer = func(opts ...grpc.ServerOption) serving {
		return serve(append(opts, grpc.MaxConcurrentStreams(uint32(streams)))...)
	}
	return s
}

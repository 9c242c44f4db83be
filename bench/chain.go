package bench

import "time"

const (
	clients      = 16
	clientPeriod = 100 * time.Millisecond // ten requests a second
	chainCalls   = 4
	chainWork    = 10 * time.Millisecond
	chainServers = 4 // one for each call of a chain
	longestChain = 10
)

// chainLoad is the load of SpecRPC's microbenchmark [SpecRPC §5.1].
func chainLoad(s scale) load {
	return load{
		callers:   clients,
		calls:     chainCalls,
		ask:       ask{work: chainWork},
		guessing:  true,
		perCaller: pick(s, 5, perMode(s, 50, 10)),
		period:    clientPeriod,
	}
}

func perMode[T any](s scale, virtual, real T) T {
	if s.mode == Real {
		return real
	}
	return virtual
}

// rounds is how often real mode repeats each trial of an open loop.
func rounds(s scale) int { return pick(s, 1, 5) }

func chain() Experiment {
	return Experiment{
		Name:    "chain",
		Summary: "4 dependent calls of 10 ms; 0 to 100 % of predictions right (SpecRPC figure 8a)",
		Modes:   []Mode{Virtual, Real},
		study: func(s scale) study {
			st := study{top: topology{servers: chainServers}, rounds: rounds(s), ratios: []ratio{cpuRatio}}
			for _, percent := range pick(s, []int{0, 50, 90, 100}, []int{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100}) {
				l := chainLoad(s)
				l.percent = percent
				st.groups = append(st.groups, sideBySide(variant{}, []Cell{{"correct_percent", percent}}, l))
			}
			return st
		},
		figures: []figure{{
			title: "A chain of 4 calls of 10 ms each", x: "correct_percent", xLabel: "right predictions per call (%)",
			y: "mean_ms", yLabel: "mean completion time (ms)", series: []string{"system"},
		}},
	}
}

func chainLength() Experiment {
	return Experiment{
		Name:    "chain-length",
		Summary: "1 to 10 dependent calls of 10 ms, 90 % of predictions right (SpecRPC figure 8b)",
		Modes:   []Mode{Virtual, Real},
		study: func(s scale) study {
			st := study{top: topology{servers: longestChain}, rounds: rounds(s)}
			for _, calls := range pick(s, []int{1, 4, longestChain}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, longestChain}) {
				l := chainLoad(s)
				l.calls, l.percent = calls, 90
				// A request of ten calls takes as long as the period; more time keeps them apart.
				l.period *= 2
				st.groups = append(st.groups, sideBySide(variant{}, []Cell{{"calls", calls}, {"correct_percent", 90}}, l))
			}
			return st
		},
		figures: []figure{{
			title: "Chains of calls of 10 ms, 90 % of predictions right", x: "calls", xLabel: "dependent calls per request",
			y: "mean_ms", yLabel: "mean completion time (ms)", series: []string{"system"},
		}},
	}
}

func chainRTT() Experiment {
	const rtt = 10 * time.Millisecond
	return Experiment{
		Name:    "chain-rtt",
		Summary: "4 dependent calls without work, 10 ms round trip (what promise pipelining hides)",
		Modes:   []Mode{Virtual, Real},
		study: func(s scale) study {
			st := study{top: topology{servers: chainServers, rtt: rtt}, rounds: rounds(s)}
			for _, percent := range pick(s, []int{0, 100}, []int{0, 50, 90, 100}) {
				l := chainLoad(s)
				l.ask.work, l.percent = 0, percent
				st.groups = append(st.groups, sideBySide(variant{}, []Cell{{"rtt_ms", 10}, {"correct_percent", percent}}, l))
			}
			return st
		},
		figures: []figure{{
			title: "A chain of 4 calls over a round trip of 10 ms", x: "correct_percent", xLabel: "right predictions per call (%)",
			y: "mean_ms", yLabel: "mean completion time (ms)", series: []string{"system"}, bars: true,
		}},
	}
}

func bandwidth() Experiment {
	return Experiment{
		Name:    "bandwidth",
		Summary: "bytes on the wire for 4 dependent calls of 64 bytes (SpecRPC figure 8c)",
		Modes:   []Mode{Virtual, Real},
		study: func(s scale) study {
			st := study{top: topology{servers: chainServers}, rounds: rounds(s), ratios: []ratio{bytesRatio}}
			for _, percent := range pick(s, []int{0, 90, 100}, []int{0, 50, 90, 100}) {
				l := chainLoad(s)
				l.percent = percent
				st.groups = append(st.groups, sideBySide(variant{}, []Cell{{"correct_percent", percent}}, l))
			}
			return st
		},
		figures: []figure{{
			title: "Bytes on the wire for a chain of 4 calls of 64 bytes", x: "correct_percent", xLabel: "right predictions per call (%)",
			y: "bytes_per_op", yLabel: "bytes per request, both directions", series: []string{"system"}, bars: true,
		}},
	}
}

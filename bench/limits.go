package bench

import (
	"time"

	"google.golang.org/grpc"
)

const (
	limitedCalls = 3
	limitedWork  = 50 * time.Millisecond
)

// limits asks what speculation costs and gains where a limit on concurrent streams is near.
func limits() Experiment {
	return Experiment{
		Name:    "limits",
		Summary: "16 to 1000 callers over one connection whose server admits 16, 100 or any number of streams",
		Modes:   []Mode{Virtual, Real},
		study: func(s scale) study {
			st := study{top: topology{servers: 1, shared: true}, rounds: pick(s, 1, 3), ratios: []ratio{opsRatio, worstRatio}}
			for _, streams := range []int{16, 100, 0} {
				for _, callers := range pick(s, []int{16, 64, 200}, []int{16, 64, 200, 1000}) {
					st.groups = append(st.groups, limitedTrials(s, streams, callers))
				}
			}
			return st
		},
		figures: []figure{{
			title: "Chains of 3 calls of 50 ms over one connection", x: "callers", xLabel: "callers",
			y: "mean_ms", yLabel: "mean completion time (ms)", series: []string{"system", "max_streams"},
		}},
	}
}

// limitedTrials are a closed loop of callers over a connection on which the server admits so many
// streams, 0 for any number.
func limitedTrials(s scale, streams, callers int) []trial {
	l := load{
		callers: callers, calls: limitedCalls, ask: ask{work: limitedWork},
		guessing: true, percent: 100, perCaller: pick(s, 10, 20),
	}
	var admitted any = streams
	if streams == 0 {
		admitted = "any"
	}
	var group []trial
	for _, st := range []stack{grpcStack(), foresayDo(variant{})} {
		group = append(group, trial{
			stack: st.admitting(streams), load: l,
			params: []Cell{{"max_streams", admitted}, {"callers", callers}},
		})
	}
	return group
}

// admitting returns the stack with servers that admit so many streams of a connection, 0 for any
// number.
func (s stack) admitting(streams int) stack {
	if streams == 0 {
		return s
	}
	s.variant.streams = streams
	serve := s.newServer
	s.newServer = func(opts ...grpc.ServerOption) serving {
		return serve(append(opts, grpc.MaxConcurrentStreams(uint32(streams)))...)
	}
	return s
}

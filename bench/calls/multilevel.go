package calls

import (
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
)

func multilevel() studied {
	const rtt = 2 * time.Millisecond
	const servers = 4
	return studyOf(bench.Experiment{
		Name:    "multilevel",
		Summary: "a call passed on through 1 to 4 servers of 10 ms each, which predict right or wrong",
		Modes:   []bench.Mode{bench.Virtual, bench.Real},
		Figures: []figure.Spec{
			{
				Suffix: "right", Title: "A call through several servers, which predict right",
				X: "servers", XLabel: "servers in the chain", Y: "mean_ms", YLabel: "mean completion time (ms)",
				Series: []string{"system"}, Where: table.Is("server_prediction", "right"),
			},
			{
				Suffix: "wrong", Title: "A call through several servers, which predict wrong",
				X: "servers", XLabel: "servers in the chain", Y: "mean_ms", YLabel: "mean completion time (ms)",
				Series: []string{"system"}, Where: table.Is("server_prediction", "wrong"),
			},
		},
	}, func(o bench.Options) study {
		st := study{top: topology{servers: servers, rtt: rtt, forward: true}, rounds: rounds(o)}
		for _, predict := range []guess{rightGuess, wrongGuess} {
			for _, n := range bench.Pick(o, []int{1, 4}, []int{1, 2, 3, 4}) {
				l := chainLoad(o)
				l.calls, l.guessing = 1, false
				l.ask.hops, l.ask.predict = n-1, predict
				params := []table.Cell{table.Is("servers", n), table.Is("server_prediction", predict.String())}
				st.groups = append(st.groups, sideBySide(variant{asking: true, replayable: true}, params, l))
			}
		}
		return st
	})
}

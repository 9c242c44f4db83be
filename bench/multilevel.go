package bench

import (
	"time"

	"github.com/foresay/foresay/bench/table"
)

func multilevel() studied {
	const rtt = 2 * time.Millisecond
	const servers = 4
	return studied{
		Name:    "multilevel",
		Summary: "a call passed on through 1 to 4 servers of 10 ms each, which predict right or wrong",
		Modes:   []Mode{Virtual, Real},
		study: func(o Options) study {
			st := study{top: topology{servers: servers, rtt: rtt, forward: true}, rounds: rounds(o)}
			for _, predict := range []guess{rightGuess, wrongGuess} {
				for _, n := range pick(o, []int{1, 4}, []int{1, 2, 3, 4}) {
					l := chainLoad(o)
					l.calls, l.guessing = 1, false
					l.ask.hops, l.ask.predict = n-1, predict
					params := []table.Cell{table.Is("servers", n), table.Is("server_prediction", predict.String())}
					st.groups = append(st.groups, sideBySide(variant{asking: true, replayable: true}, params, l))
				}
			}
			return st
		},
		Figures: []spec{
			{
				suffix: "right", title: "A call through several servers, which predict right",
				x: "servers", xLabel: "servers in the chain", y: "mean_ms", yLabel: "mean completion time (ms)",
				series: []string{"system"}, where: table.Is("server_prediction", "right"),
			},
			{
				suffix: "wrong", title: "A call through several servers, which predict wrong",
				x: "servers", xLabel: "servers in the chain", y: "mean_ms", yLabel: "mean completion time (ms)",
				series: []string{"system"}, where: table.Is("server_prediction", "wrong"),
			},
		},
	}
}

package bench

import "time"

func overhead() Experiment {
	return Experiment{
		Name:    "overhead",
		Summary: "64-byte echoes, no work, 1 and 16 callers: latency, throughput, CPU time (real mode)",
		Modes:   []Mode{Real},
		study: func(s scale) study {
			st := study{top: topology{servers: 1, shared: true}, rounds: pick(s, 3, 20), ratios: []ratio{opsRatio, cpuRatio}}
			for _, calls := range []int{1, chainCalls} {
				for _, callers := range []int{1, clients} {
					l := load{callers: callers, calls: calls, perCaller: 64, span: pick(s, 40*time.Millisecond, 150*time.Millisecond)}
					st.groups = append(st.groups, overheadTrials(l))
				}
			}
			return st
		},
		figures: overheadFigures(),
	}
}

func overheadTrials(l load) []trial {
	params := func(prediction, path string) []Cell {
		return []Cell{{"calls", l.calls}, {"callers", l.callers}, {"prediction", prediction}, {"path", path}}
	}
	return []trial{{stack: grpcStack(), params: params("off", "unary"), load: l}}
}

func overheadFigures() []figure {
	var figures []figure
	for _, y := range []struct{ suffix, column, label, title string }{
		{"latency", "mean_ms", "mean latency (ms)", "Latency"},
		{"throughput", "ops_per_s", "requests per second", "Throughput"},
		{"cpu", "cpu_us_per_op", "processor time per request (µs)", "Processor time"},
	} {
		for _, calls := range []struct {
			n    int
			what string
		}{{1, "echo"}, {chainCalls, "chain"}} {
			figures = append(figures, figure{
				suffix: calls.what + "-" + y.suffix,
				title:  y.title + map[string]string{"echo": " of a 64-byte echo", "chain": " of a chain of 4 echoes"}[calls.what],
				x:      "callers", xLabel: "callers", y: y.column, yLabel: y.label,
				series: []string{"system", "prediction", "path"}, where: Cell{"calls", calls.n}, bars: true,
			})
		}
	}
	return figures
}

package geostore

import (
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/workload"
)

// zipfAlpha is the skew of the paper's workloads, unless it is varied [SpecRPC §5.2.1].
const zipfAlpha = 0.75

// realTime is how long a system is measured on the wall clock.
func realTime(o bench.Options) time.Duration { return bench.Pick(o, 2*time.Second, 12*time.Second) }

// ycsbPoint is YCSB+T. Longer transactions are measured less often: a point takes about as long as
// another one.
func ycsbPoint(o bench.Options, ops, readPercent int) (studyPoint, error) {
	keys, err := workload.Zipfian(keyCount(o), zipfAlpha)
	if err != nil {
		return studyPoint{}, err
	}
	w, err := workload.NewYCSBT(workload.YCSBT{Keys: keys, Ops: ops, ReadPercent: readPercent})
	return studyPoint{
		params:   []table.Cell{table.Is("ops", ops), table.Is("read_percent", readPercent), table.Is("alpha", zipfAlpha)},
		workload: w, txns: bench.Pick(o, 400, 8000) / ops, lasting: realTime(o),
	}, err
}

func retwisPoint(o bench.Options, alpha float64, txns int) (studyPoint, error) {
	keys, err := workload.Zipfian(keyCount(o), alpha)
	return studyPoint{params: []table.Cell{table.Is("alpha", alpha)}, workload: workload.Retwis{Keys: keys}, txns: txns,
		lasting: realTime(o)}, err
}

// collect makes the points of some values of a parameter.
func collect[T any](values []T, point func(T) (studyPoint, error)) ([]studyPoint, error) {
	var points []studyPoint
	for _, v := range values {
		p, err := point(v)
		if err != nil {
			return nil, err
		}
		points = append(points, p)
	}
	return points, nil
}

func ycsbOpsExperiment() bench.Experiment {
	all := table.Is("site", "all")
	return bench.Experiment{
		Name: "rc-ycsb-ops",
		Summary: "geo-replicated transactions of 5 to 50 operations, half of them reads (SpecRPC figure 9); virtual: a " +
			"disk syncs in 1 ms",
		Modes:   []bench.Mode{bench.Virtual, bench.Real},
		Bubbles: true,
		Measure: latencyStudy{growth: true, points: func(o bench.Options) ([]studyPoint, error) {
			counts := bench.PickMode(o, bench.Pick(o, []int{5, 20}, []int{5, 10, 20, 30, 40, 50}), []int{5, 20})
			return collect(counts, func(ops int) (studyPoint, error) {
				return ycsbPoint(o, ops, 50)
			})
		}}.run,
		Figures: []figure.Spec{
			{
				Suffix: "attempts", Title: "YCSB+T: attempts that committed", X: "ops", XLabel: "operations per transaction",
				Y: "attempt_mean_ms", YLabel: "mean latency (ms)", Series: []string{"system"}, Where: all,
			},
			{
				Suffix: "growth", Title: "YCSB+T: growth of attempts that committed", X: "ops",
				XLabel: "operations per transaction",
				Y:      "attempt_growth_percent", YLabel: "longer than with 5 operations (%)", Series: []string{"system"},
				Where: all,
				Marks: []figure.Mark{{Line: "grpc", X: 50, Y: 600, Bound: "over"}, {Line: "spec", X: 50, Y: 23}},
			},
			{
				Suffix: "end-to-end", Title: "YCSB+T: transactions with all their attempts", X: "ops",
				XLabel: "operations per transaction",
				Y:      "end_to_end_mean_ms", YLabel: "mean latency (ms)", Series: []string{"system"}, Where: all,
			},
			{
				Suffix: "guesses", Title: "YCSB+T: first answers that the quorum, or the commit, confirmed", X: "ops",
				XLabel: "operations per transaction",
				Y:      "first_answer_right_percent", YLabel: "right (%)", Series: []string{"system"}, Where: all,
				Marks: []figure.Mark{{Line: "spec", X: figure.Nowhere(), Y: 95, Bound: "over"}},
			},
		},
	}
}

func ycsbReadsExperiment() bench.Experiment {
	all := table.Is("site", "all")
	return bench.Experiment{
		Name: "rc-ycsb-reads",
		Summary: "geo-replicated transactions of 5 operations, 0 to 100 % of them reads (SpecRPC figure 10); virtual: a " +
			"disk syncs in 1 ms",
		Modes:   []bench.Mode{bench.Virtual, bench.Real},
		Bubbles: true,
		Measure: latencyStudy{points: func(o bench.Options) ([]studyPoint, error) {
			return collect(bench.PickMode(o, bench.Pick(o, []int{20, 80}, []int{0, 20, 40, 60, 80, 100}), []int{60}),
				func(reads int) (studyPoint, error) { return ycsbPoint(o, 5, reads) })
		}}.run,
		Figures: []figure.Spec{
			{
				Suffix: "median", Title: "YCSB+T of 5 operations: attempts that committed", X: "read_percent",
				XLabel: "operations that are reads (%)",
				Y:      "attempt_p50_ms", YLabel: "median latency (ms)", Series: []string{"system"}, Where: all,
			},
			{
				Suffix: "tail", Title: "YCSB+T of 5 operations: attempts that committed", X: "read_percent",
				XLabel: "operations that are reads (%)",
				Y:      "attempt_p99_ms", YLabel: "99th percentile of the latency (ms)", Series: []string{"system"}, Where: all,
			},
			{
				Suffix: "guesses", Title: "YCSB+T of 5 operations: first answers that the quorum, or the commit, confirmed",
				X: "read_percent", XLabel: "operations that are reads (%)",
				Y: "first_answer_right_percent", YLabel: "right (%)", Series: []string{"system"}, Where: all,
				Marks: []figure.Mark{{Line: "spec", X: figure.Nowhere(), Y: 99, Bound: "over"}},
			},
		},
	}
}

func retwisExperiment() bench.Experiment {
	return bench.Experiment{
		Name:    "rc-retwis",
		Summary: "geo-replicated transactions of a service like Twitter (SpecRPC figure 11); virtual: a disk syncs in 1 ms",
		Modes:   []bench.Mode{bench.Virtual, bench.Real},
		Bubbles: true,
		Measure: latencyStudy{distribution: true, points: func(o bench.Options) ([]studyPoint, error) {
			return collect([]float64{zipfAlpha}, func(alpha float64) (studyPoint, error) {
				return retwisPoint(o, alpha, bench.Pick(o, 200, 5000))
			})
		}}.run,
		Figures: []figure.Spec{
			{
				Suffix: "distribution", Title: "Retwis: attempts that committed", X: "attempt_ms", XLabel: "latency (ms)",
				Y: "percentile", YLabel: "cumulative share (%)", Series: []string{"system"}, Where: table.Is("site", table.OfAll),
				Scattered: true,
			},
			{
				Suffix: "mean", Title: "Retwis: mean latency of attempts that committed", Y: "attempt_ratio_to_grpc",
				YLabel: "times plain gRPC's",
				Across: []string{"site"}, Ratio: true, Series: []string{"system"},
				Marks: []figure.Mark{{Line: "spec", Category: "all", Y: 0.42}},
			},
		},
	}
}

func contentionExperiment() bench.Experiment {
	all := table.Is("site", "all")
	return bench.Experiment{
		Name:    "rc-contention",
		Summary: "Retwis with skews of 0.5 to 0.95 (SpecRPC figure 12); virtual: a disk syncs in 1 ms",
		Modes:   []bench.Mode{bench.Virtual, bench.Real},
		Bubbles: true,
		Measure: latencyStudy{points: func(o bench.Options) ([]studyPoint, error) {
			virtual := bench.Pick(o, []float64{0.5, 0.9}, []float64{0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95})
			return collect(bench.PickMode(o, virtual, []float64{0.9}),
				func(alpha float64) (studyPoint, error) {
					return retwisPoint(o, alpha, bench.Pick(o, 100, 4000))
				})
		}}.run,
		Figures: []figure.Spec{
			{
				Suffix: "aborts", Title: "Retwis: attempts that were aborted", X: "alpha", XLabel: "skew (alpha)",
				Y: "abort_percent", YLabel: "aborted (%)", Series: []string{"system"}, Where: all,
			},
			{
				Suffix: "abort-difference", Title: "Retwis: attempts that were aborted, beyond those of plain gRPC", X: "alpha",
				XLabel: "skew (alpha)",
				Y:      "abort_points_above_grpc", YLabel: "percentage points", Series: []string{"system"}, Where: all,
				Marks: []figure.Mark{{Line: "spec", X: 0.9, Y: 1, Bound: "about"}},
			},
			{
				Suffix: "commits", Title: "Retwis: transactions that committed", X: "alpha", XLabel: "skew (alpha)",
				Y: "commits_per_s", YLabel: "per second", Series: []string{"system"}, Where: all,
				Marks: []figure.Mark{{Line: "grpc", X: 0.9, Y: 62}, {Line: "off", X: 0.9, Y: 63}, {Line: "spec", X: 0.9, Y: 142}},
			},
			{
				Suffix: "attempts", Title: "Retwis: attempts that committed", X: "alpha", XLabel: "skew (alpha)",
				Y: "attempt_mean_ms", YLabel: "mean latency (ms)", Series: []string{"system"}, Where: all,
			},
			{
				Suffix: "end-to-end", Title: "Retwis: transactions with all their attempts", X: "alpha", XLabel: "skew (alpha)",
				Y: "end_to_end_mean_ms", YLabel: "mean latency (ms)", Series: []string{"system"}, Where: all,
			},
			{
				Suffix: "end-to-end-ratio", Title: "Retwis: transactions with all their attempts, against those of mode spec",
				X: "alpha", XLabel: "skew (alpha)",
				Y: "end_to_end_ratio_to_spec", YLabel: "times spec's mean latency", Series: []string{"system"}, Where: all,
			},
			{
				Suffix: "auto", Title: "Retwis: transactions with all their attempts, against the best other mode at that skew",
				X: "alpha", XLabel: "skew (alpha)",
				Y: "end_to_end_ratio_to_best", YLabel: "times the best mode's mean latency", Series: []string{"system"}, Where: all,
			},
		},
	}
}

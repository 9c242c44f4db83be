package bench

import (
	"time"

	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/workload"
)

// rcAlpha is the skew of the paper's workloads, unless it is varied [SpecRPC §5.2.1].
const rcAlpha = 0.75

// rcLasting is how long a system is measured on the wall clock.
func rcLasting(o Options) time.Duration { return pick(o, 2*time.Second, 12*time.Second) }

// ycsbPoint is YCSB+T. Longer transactions are measured less often: a point takes about as long as
// another one.
func ycsbPoint(o Options, ops, readPercent int) (rcPoint, error) {
	keys, err := workload.Zipfian(rcKeysOf(o), rcAlpha)
	if err != nil {
		return rcPoint{}, err
	}
	w, err := workload.NewYCSBT(workload.YCSBT{Keys: keys, Ops: ops, ReadPercent: readPercent})
	return rcPoint{
		params:   []table.Cell{table.Is("ops", ops), table.Is("read_percent", readPercent), table.Is("alpha", rcAlpha)},
		workload: w, txns: pick(o, 400, 8000) / ops, lasting: rcLasting(o),
	}, err
}

func retwisPoint(o Options, alpha float64, txns int) (rcPoint, error) {
	keys, err := workload.Zipfian(rcKeysOf(o), alpha)
	return rcPoint{params: []table.Cell{table.Is("alpha", alpha)}, workload: workload.Retwis{Keys: keys}, txns: txns, lasting: rcLasting(o)}, err
}

// collect makes the points of some values of a parameter.
func collect[T any](values []T, point func(T) (rcPoint, error)) ([]rcPoint, error) {
	var points []rcPoint
	for _, v := range values {
		p, err := point(v)
		if err != nil {
			return nil, err
		}
		points = append(points, p)
	}
	return points, nil
}

// perTime returns the values for virtual time, quick or not, or those for the wall clock.
func perTime[T any](o Options, quick, virtual, real []T) []T {
	if o.Mode == Real {
		return real
	}
	return pick(o, quick, virtual)
}

func rcYCSBOps() Experiment {
	all := table.Is("site", "all")
	return Experiment{
		Name:    "rc-ycsb-ops",
		Summary: "geo-replicated transactions of 5 to 50 operations, half of them reads (SpecRPC figure 9); virtual: a disk syncs in 1 ms",
		Modes:   []Mode{Virtual, Real},
		Bubbles: true,
		Measure: rcStudy{growth: true, points: func(o Options) ([]rcPoint, error) {
			return collect(perTime(o, []int{5, 20}, []int{5, 10, 20, 30, 40, 50}, []int{5, 20}), func(ops int) (rcPoint, error) { return ycsbPoint(o, ops, 50) })
		}}.run,
		Figures: []spec{
			{
				suffix: "attempts", title: "YCSB+T: attempts that committed", x: "ops", xLabel: "operations per transaction",
				y: "attempt_mean_ms", yLabel: "mean latency (ms)", series: []string{"system"}, where: all,
			},
			{
				suffix: "growth", title: "YCSB+T: growth of attempts that committed", x: "ops", xLabel: "operations per transaction",
				y: "attempt_growth_percent", yLabel: "longer than with 5 operations (%)", series: []string{"system"}, where: all,
				marks: []mark{{line: "grpc", x: 50, y: 600, bound: "over"}, {line: "spec", x: 50, y: 23}},
			},
			{
				suffix: "end-to-end", title: "YCSB+T: transactions with all their attempts", x: "ops", xLabel: "operations per transaction",
				y: "end_to_end_mean_ms", yLabel: "mean latency (ms)", series: []string{"system"}, where: all,
			},
			{
				suffix: "guesses", title: "YCSB+T: first answers that the quorum, or the commit, confirmed", x: "ops", xLabel: "operations per transaction",
				y: "first_answer_right_percent", yLabel: "right (%)", series: []string{"system"}, where: all,
				marks: []mark{{line: "spec", x: nowhere(), y: 95, bound: "over"}},
			},
		},
	}
}

func rcYCSBReads() Experiment {
	all := table.Is("site", "all")
	return Experiment{
		Name:    "rc-ycsb-reads",
		Summary: "geo-replicated transactions of 5 operations, 0 to 100 % of them reads (SpecRPC figure 10); virtual: a disk syncs in 1 ms",
		Modes:   []Mode{Virtual, Real},
		Bubbles: true,
		Measure: rcStudy{points: func(o Options) ([]rcPoint, error) {
			return collect(perTime(o, []int{20, 80}, []int{0, 20, 40, 60, 80, 100}, []int{60}), func(reads int) (rcPoint, error) { return ycsbPoint(o, 5, reads) })
		}}.run,
		Figures: []spec{
			{
				suffix: "median", title: "YCSB+T of 5 operations: attempts that committed", x: "read_percent", xLabel: "operations that are reads (%)",
				y: "attempt_p50_ms", yLabel: "median latency (ms)", series: []string{"system"}, where: all,
			},
			{
				suffix: "tail", title: "YCSB+T of 5 operations: attempts that committed", x: "read_percent", xLabel: "operations that are reads (%)",
				y: "attempt_p99_ms", yLabel: "99th percentile of the latency (ms)", series: []string{"system"}, where: all,
			},
			{
				suffix: "guesses", title: "YCSB+T of 5 operations: first answers that the quorum, or the commit, confirmed", x: "read_percent", xLabel: "operations that are reads (%)",
				y: "first_answer_right_percent", yLabel: "right (%)", series: []string{"system"}, where: all,
				marks: []mark{{line: "spec", x: nowhere(), y: 99, bound: "over"}},
			},
		},
	}
}

func rcRetwis() Experiment {
	return Experiment{
		Name:    "rc-retwis",
		Summary: "geo-replicated transactions of a service like Twitter (SpecRPC figure 11); virtual: a disk syncs in 1 ms",
		Modes:   []Mode{Virtual, Real},
		Bubbles: true,
		Measure: rcStudy{distribution: true, points: func(o Options) ([]rcPoint, error) {
			return collect([]float64{rcAlpha}, func(alpha float64) (rcPoint, error) { return retwisPoint(o, alpha, pick(o, 200, 5000)) })
		}}.run,
		Figures: []spec{
			{
				suffix: "distribution", title: "Retwis: attempts that committed", x: "attempt_ms", xLabel: "latency (ms)",
				y: "percentile", yLabel: "cumulative share (%)", series: []string{"system"}, where: table.Is("site", table.OfAll), scattered: true,
			},
			{
				suffix: "mean", title: "Retwis: mean latency of attempts that committed", y: "attempt_ratio_to_grpc", yLabel: "times plain gRPC's",
				across: []string{"site"}, ratio: true, series: []string{"system"},
				marks: []mark{{line: "spec", category: "all", y: 0.42}},
			},
		},
	}
}

func rcContention() Experiment {
	all := table.Is("site", "all")
	return Experiment{
		Name:    "rc-contention",
		Summary: "Retwis with skews of 0.5 to 0.95 (SpecRPC figure 12); virtual: a disk syncs in 1 ms",
		Modes:   []Mode{Virtual, Real},
		Bubbles: true,
		Measure: rcStudy{points: func(o Options) ([]rcPoint, error) {
			return collect(perTime(o, []float64{0.5, 0.9}, []float64{0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95}, []float64{0.9}), func(alpha float64) (rcPoint, error) {
				return retwisPoint(o, alpha, pick(o, 100, 4000))
			})
		}}.run,
		Figures: []spec{
			{
				suffix: "aborts", title: "Retwis: attempts that were aborted", x: "alpha", xLabel: "skew (alpha)",
				y: "abort_percent", yLabel: "aborted (%)", series: []string{"system"}, where: all,
			},
			{
				suffix: "abort-difference", title: "Retwis: attempts that were aborted, beyond those of plain gRPC", x: "alpha", xLabel: "skew (alpha)",
				y: "abort_points_above_grpc", yLabel: "percentage points", series: []string{"system"}, where: all,
				marks: []mark{{line: "spec", x: 0.9, y: 1, bound: "about"}},
			},
			{
				suffix: "commits", title: "Retwis: transactions that committed", x: "alpha", xLabel: "skew (alpha)",
				y: "commits_per_s", yLabel: "per second", series: []string{"system"}, where: all,
				marks: []mark{{line: "grpc", x: 0.9, y: 62}, {line: "off", x: 0.9, y: 63}, {line: "spec", x: 0.9, y: 142}},
			},
			{
				suffix: "attempts", title: "Retwis: attempts that committed", x: "alpha", xLabel: "skew (alpha)",
				y: "attempt_mean_ms", yLabel: "mean latency (ms)", series: []string{"system"}, where: all,
			},
			{
				suffix: "end-to-end", title: "Retwis: transactions with all their attempts", x: "alpha", xLabel: "skew (alpha)",
				y: "end_to_end_mean_ms", yLabel: "mean latency (ms)", series: []string{"system"}, where: all,
			},
			{
				suffix: "end-to-end-ratio", title: "Retwis: transactions with all their attempts, against those of mode spec", x: "alpha", xLabel: "skew (alpha)",
				y: "end_to_end_ratio_to_spec", yLabel: "times spec's mean latency", series: []string{"system"}, where: all,
			},
			{
				suffix: "auto", title: "Retwis: transactions with all their attempts, against the best other mode at that skew", x: "alpha", xLabel: "skew (alpha)",
				y: "end_to_end_ratio_to_best", yLabel: "times the best mode's mean latency", series: []string{"system"}, where: all,
			},
		},
	}
}

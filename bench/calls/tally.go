package calls

import (
	"math"
	"slices"
	"time"

	"github.com/foresay/foresay/bench/table"

	hdrhistogram "github.com/HdrHistogram/hdrhistogram-go"
)

// A round is what one trial measured in one round.
type round struct {
	latencies [][]time.Duration // by caller
	elapsed   time.Duration
	cpu       time.Duration // of the whole process; 0 where it is not known
	calls     int64         // begun at the servers
	bytes     int64         // on the wire, both directions
}

func (r round) count() int {
	n := 0
	for _, l := range r.latencies {
		n += len(l)
	}
	return n
}

// A tally adds up a trial's rounds.
type tally struct {
	dist   distribution
	count  int
	sum    time.Duration
	worst  time.Duration
	total  round
	rounds []figures
	beside []figures // of the base's rounds next to these, where they are paired
}

// figures are the measures of which ratios are taken.
type figures struct {
	meanMs, worstMs, opsPerSecond, cpuUsPerOp, bytesPerOp float64
}

func (t *tally) add(r round) {
	count, sum, worst := r.count(), time.Duration(0), time.Duration(0)
	for _, caller := range r.latencies {
		for _, d := range caller {
			t.dist.record(d)
			sum += d
			worst = max(worst, d)
		}
	}
	t.count += count
	t.sum += sum
	t.total.elapsed += r.elapsed
	t.total.cpu += r.cpu
	t.total.calls += r.calls
	t.total.bytes += r.bytes
	t.worst = max(t.worst, worst)
	of := figuresOf(count, sum, r)
	of.worstMs = table.Ms(worst)
	t.rounds = append(t.rounds, of)
}

func figuresOf(count int, sum time.Duration, r round) figures {
	n := float64(count)
	return figures{
		meanMs:       table.Ms(sum) / n,
		opsPerSecond: n / r.elapsed.Seconds(),
		cpuUsPerOp:   float64(r.cpu) / float64(time.Microsecond) / n,
		bytesPerOp:   float64(r.bytes) / n,
	}
}

// overall returns the figures of all rounds together.
func (t *tally) overall() figures { return figuresOf(t.count, t.sum, t.total) }

func (t *tally) mean() time.Duration { return t.sum / time.Duration(max(t.count, 1)) }

// ratio compares a figure with another tally's: the median, over the rounds that
// both have, of the ratio within the round. It is NaN where that says nothing.
func (t *tally) ratio(base *tally, of func(figures) float64) float64 {
	return table.Median(t.perRound(base, of))
}

// interval returns what the ratio's true median is between with 95 %: ratios whose ranks the
// binomial distribution tells, whatever theirs is.
func (t *tally) interval(base *tally, of func(figures) float64) (low, high float64) {
	all := t.perRound(base, of)
	if len(all) == 0 {
		return math.NaN(), math.NaN()
	}
	slices.Sort(all)
	n := float64(len(all))
	off := 0.98 * math.Sqrt(n)
	return all[int(max(0, n/2-off))], all[int(min(n-1, n/2+off))]
}

// perRound returns the ratio within each round.
func (t *tally) perRound(base *tally, of func(figures) float64) []float64 {
	others := base.rounds
	if t.beside != nil {
		others = t.beside
	}
	var ratios []float64
	for i := range min(len(t.rounds), len(others)) {
		r := of(t.rounds[i]) / of(others[i])
		if !math.IsNaN(r) && !math.IsInf(r, 0) {
			ratios = append(ratios, r)
		}
	}
	return ratios
}

// A distribution collects latencies and tells their quantiles.
type distribution interface {
	record(time.Duration)
	quantile(q float64) time.Duration
}

// exactDistribution keeps every value.
type exactDistribution struct {
	values []time.Duration
	sorted bool
}

func (e *exactDistribution) record(d time.Duration) {
	e.values = append(e.values, d)
	e.sorted = false
}

func (e *exactDistribution) quantile(q float64) time.Duration {
	if !e.sorted {
		slices.Sort(e.values)
		e.sorted = true
	}
	return table.Quantile(e.values, q)
}

// histogram keeps counts, with three significant digits from 100 ns to a minute.
type histogram struct{ h *hdrhistogram.Histogram }

const longestLatency = time.Minute

func newHistogram() histogram {
	return histogram{hdrhistogram.New(100, longestLatency.Nanoseconds(), 3)}
}

func (h histogram) record(d time.Duration) {
	// Cannot fail: the value is within the histogram's range.
	_ = h.h.RecordValue(min(max(d, 0), longestLatency).Nanoseconds())
}

func (h histogram) quantile(q float64) time.Duration {
	return time.Duration(h.h.ValueAtQuantile(100 * q))
}

package calls

import (
	"math"
	"testing"
	"time"
)

func TestHistogramKeepsThreeDigits(t *testing.T) {
	h := newHistogram()
	for i := range 1000 {
		h.record(time.Duration(i+1) * 10 * time.Microsecond)
	}
	h.record(2 * longestLatency) // is kept as the longest
	for _, tt := range []struct {
		q    float64
		want time.Duration
	}{{0.5, 5010 * time.Microsecond}, {0.99, 9910 * time.Microsecond}, {1, longestLatency}} {
		got := h.quantile(tt.q)
		if diff := math.Abs(float64(got-tt.want)) / float64(tt.want); diff > 0.002 {
			t.Errorf("quantile %v is %v, want %v within 0.2 %%", tt.q, got, tt.want)
		}
	}
}

// repeated makes rounds of one request each.
func repeated(latencies ...time.Duration) *tally {
	t := &tally{dist: &exactDistribution{}}
	for _, d := range latencies {
		t.add(round{latencies: [][]time.Duration{{d}}, elapsed: d})
	}
	return t
}

func TestRatioIsTheMedianOfTheRounds(t *testing.T) {
	base := repeated(40*time.Millisecond, 400*time.Millisecond, 40*time.Millisecond)
	own := repeated(10*time.Millisecond, 100*time.Millisecond, 900*time.Millisecond)
	// One round was disturbed for both, one for the second only.
	if got := own.ratio(base, latencyRatio.of); got != 0.25 {
		t.Errorf("ratio of the means is %v, want 0.25", got)
	}
	if got := own.ratio(base, opsRatio.of); got != 4 {
		t.Errorf("ratio of the rates is %v, want 4", got)
	}
	if got := own.ratio(base, cpuRatio.of); !math.IsNaN(got) {
		t.Errorf("ratio of times that nobody measured is %v, want NaN", got)
	}
}

func TestRatioIsOfNeighbours(t *testing.T) {
	own, base := repeated(), repeated(time.Millisecond, time.Second) // whose own rounds are no neighbours
	for i := range 100 {
		slow := 1 + i/10 // the machine is slower every now and then
		own.add(round{latencies: [][]time.Duration{{time.Duration(slow*(i+1)) * time.Millisecond}}})
		own.beside = append(own.beside, figures{meanMs: float64(slow)})
	}
	if got := own.ratio(base, latencyRatio.of); got != 50.5 {
		t.Errorf("ratio is %v, want 50.5", got)
	}
	// Of 100 the median is between the 41st and the 60th with 95 %.
	if low, high := own.interval(base, latencyRatio.of); low != 41 || high != 60 {
		t.Errorf("interval is %v to %v, want 41 to 60", low, high)
	}
	if low, high := own.interval(base, cpuRatio.of); !math.IsNaN(low) || !math.IsNaN(high) {
		t.Errorf("interval of times that nobody measured is %v to %v, want NaN", low, high)
	}
}

func TestOverallWeighsRequestsNotRounds(t *testing.T) {
	own := &tally{dist: &exactDistribution{}}
	own.add(round{latencies: [][]time.Duration{{2 * time.Millisecond, 4 * time.Millisecond}, {6 * time.Millisecond}},
		elapsed: time.Second, bytes: 300})
	own.add(round{latencies: [][]time.Duration{{12 * time.Millisecond}}, elapsed: time.Second, bytes: 100})
	if got, want := own.overall(), (figures{meanMs: 6, opsPerSecond: 2, bytesPerOp: 100}); got != want {
		t.Errorf("overall figures are %+v, want %+v", got, want)
	}
}

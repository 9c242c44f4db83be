package observe

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/race"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: got %.6f, want %.6f within %g", what, got, want, tolerance)
	}
}

// Quantiles of Student's distribution as tables print them.
func TestStudent(t *testing.T) {
	for _, row := range []struct{ freedom, want float64 }{
		{1, 12.706}, {2, 4.303}, {3, 3.182}, {4, 2.776}, {5, 2.571}, {10, 2.228}, {30, 2.042}, {100, 1.984}, {1e6, 1.960},
	} {
		near(t, fmt.Sprint("freedom ", row.freedom), student(row.freedom), row.want, 0.005*row.want)
	}
}

// Wilson 1927 as Newcombe 1998 prints it, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
func TestWilson(t *testing.T) {
	for _, row := range []struct{ hits, n, low, high float64 }{
		{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718},
	} {
		got := wilson(row.hits, row.n)
		near(t, "low", got.Low, row.low, 1e-4)
		near(t, "high", got.High, row.high, 1e-4)
	}
	if got := wilson(0, 0); got.Low != 0 || got.High != 1 {
		t.Errorf("of none: %+v", got)
	}
}

// Newcombe 1998, table II, method 10: 56 of 70 against 48 of 80.
func TestNewcombe(t *testing.T) {
	got := newcombe(wilson(56, 70), wilson(48, 80))
	near(t, "difference", got.Value, 0.2, 1e-9)
	near(t, "low", got.Low, 0.0524, 1e-4)
	near(t, "high", got.High, 0.3339, 1e-4)
}

// TestWelch: the numbers of a textbook's example, computed by hand.
func TestWelch(t *testing.T) {
	var a, b moments
	for _, v := range []float64{1, 2, 3, 4, 5} {
		a.add(v)
	}
	for _, v := range []float64{2, 2, 8, 12} {
		b.add(v)
	}
	// Means 3 and 6, variances 2.5 and 24; of the means 0.5 and 6. Freedom 42.25 / (0.0625 + 12) =
	// 3.5026.
	got, ok := welch(a, b)
	if !ok {
		t.Fatal("no interval")
	}
	near(t, "difference", got.Value, -3, 1e-12)
	half := student(42.25/12.0625) * math.Sqrt(6.5)
	near(t, "low", got.Low, -3-half, 1e-9)
	near(t, "student(3.5)", student(42.25/12.0625), 2.938, 0.02)
	if _, ok := welch(moments{}, b); ok {
		t.Error("an interval for an empty side")
	}
}

// TestCoverage: of 500 intervals about 475 hold the true difference. Times are log-normal, as
// latencies are, with outliers of ten times on one side in one case.
func TestCoverage(t *testing.T) {
	if race.Enabled {
		t.Skip("it has no goroutines, and takes ten seconds")
	}
	const runs = 500
	for _, n := range []int{20, 60, 400} {
		for _, outliers := range []bool{false, true} {
			t.Run(fmt.Sprint("n=", n, " outliers=", outliers), func(t *testing.T) {
				chance := rand.New(rand.NewPCG(uint64(n), 1))
				draw := func(scale float64) time.Duration {
					v := scale * math.Exp(0.4*chance.NormFloat64())
					if outliers && chance.IntN(50) == 0 {
						v *= 10
					}
					return time.Duration(v * float64(time.Millisecond))
				}
				// The median of a log-normal is its scale; outliers of 2 % move it little, to where
				// half of all is below.
				median := func(scale float64) float64 {
					if !outliers {
						return scale
					}
					return scale * math.Exp(0.4*normalQuantile(0.5/0.98))
				}
				mean := func(scale float64) float64 {
					m := scale * math.Exp(0.08)
					if outliers {
						m *= 1.18
					}
					return m
				}
				means, mids, wide := 0, 0, 0.0
				for range runs {
					on, off := new(arm), new(arm)
					for range n {
						for _, side := range []struct {
							a     *arm
							scale float64
						}{{on, 20}, {off, 45}} {
							d := draw(side.scale)
							side.a.add(milliseconds(d))
							side.a.latency.add(d)
						}
					}
					if d, ok := welch(on.moments, off.moments); ok && d.Low <= mean(20)-mean(45) && mean(20)-mean(45) <= d.High {
						means++
					}
					d, ok := medians(&on.latency, &off.latency)
					if ok && d.Low <= median(20)-median(45) && median(20)-median(45) <= d.High {
						mids++
					}
					wide += d.High - d.Low
				}
				// Two standard deviations of the share are 2 %. Intervals of means of few values
				// with outliers hold less often: that is known of them, and why the median stands
				// first.
				least := 0.93
				if outliers {
					least = 0.82
				}
				if share := float64(means) / runs; share < least || share > 0.985 {
					t.Errorf("means: %.3f of the intervals hold", share)
				}
				if share := float64(mids) / runs; share < 0.93 || share > 0.985 {
					t.Errorf("medians: %.3f of the intervals hold", share)
				}
				t.Logf("means %.3f, medians %.3f; medians are %.2f ms wide on average", float64(means)/runs, float64(mids)/runs,
					wide/runs)
			})
		}
	}
}

func TestFewForMedians(t *testing.T) {
	var a, b histogram
	for range fewestForMedian - 1 {
		a.add(time.Millisecond)
		b.add(time.Millisecond)
	}
	if _, ok := medians(&a, &b); ok {
		t.Error("an interval of too few values")
	}
	a.add(time.Millisecond)
	b.add(time.Millisecond)
	if d, ok := medians(&a, &b); !ok || d.Value != 0 {
		t.Errorf("got %+v, %v", d, ok)
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	if got := h.latency(); got != (Latency{}) {
		t.Errorf("an empty one: %+v", got)
	}
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Millisecond)
	}
	got := h.latency()
	near(t, "mean", got.MeanMS, 500.5, 1e-9)
	near(t, "p50", got.P50MS, 500.5, 5)
	near(t, "p95", got.P95MS, 950, 9.5)
	near(t, "p99", got.P99MS, 990, 9.9)
	var odd histogram
	odd.add(-time.Second)
	odd.add(time.Hour)
	if got := odd.latency(); got.Count != 2 || got.P99MS > 61_000 || got.P50MS < 0 {
		t.Errorf("beyond the range: %+v", got)
	}
}

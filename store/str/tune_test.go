package str

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/plant"
)

// curve is a made-up store: how many transactions it commits per second at each degree, and which
// part of all it aborts.
type curve struct {
	rate, aborts [degreeMost + 1]float64
}

func (c curve) best() float64 { return slices.Max(c.rate[:]) }

// window is what the tuner hears of a degree: noise is the standard deviation, relative.
func (c curve) window(rng *rand.Rand, d degree, noise float64) window {
	n := c.rate[d] * 10 * (1 + noise*rng.NormFloat64())
	aborted := n * c.aborts[d] / (1 - c.aborts[d]) * (1 + noise*rng.NormFloat64())
	return window{Length: 10 * time.Second, Committed: uint64(max(n, 0)), Aborted: uint64(max(aborted, 0)),
		Latency: time.Second}
}

// hill falls off on both sides of a degree; abortsFrom is from where on transactions abort.
func hill(top, steep, peak float64) (c curve) {
	for d := range c.rate {
		away := math.Abs(float64(d) - top)
		c.rate[d] = peak * math.Exp(-steep*away*away)
		c.aborts[d] = 0.02 + 0.05*float64(d)
	}
	return c
}

func (c curve) times(x float64) curve {
	for d := range c.rate {
		c.rate[d] *= x
	}
	return c
}

// over has the better one of two curves at each degree.
func (c curve) over(o curve) curve {
	for d := range c.rate {
		c.rate[d] = max(c.rate[d], o.rate[d])
	}
	return c
}

func curves(rng *rand.Rand) map[string]curve {
	flat := curve{}
	for d := range flat.rate {
		flat.rate[d], flat.aborts[d] = 200, 0.1
	}
	return map[string]curve{
		"convex":    hill(1+7*rng.Float64(), 0.02+0.1*rng.Float64(), 200),
		"flat":      flat,
		"off":       hill(0, 0.05, 300),
		"longest":   hill(9, 0.05, 100),
		"two humps": hill(1, 0.3, 150).over(hill(7, 0.5, 200)),
		"a needle":  hill(rng.Float64()*2, 0.02, 100).over(hill(float64(3+rng.IntN(7)), 3, 130)),
	}
}

const (
	tuneSeeds  = 300
	settleIn   = 20 // windows
	goodEnough = 0.95
)

// tuneFor plays windows, and returns in how many of them the degree was not good, and how often it
// has changed.
func tuneFor(rng *rand.Rand, t *tuner, c curve, noise float64, windows int) (bad, moves int) {
	for range windows {
		if c.rate[t.degree] < goodEnough*c.best() {
			bad++
		}
		was := t.degree
		if t.next(c.window(rng, was, noise)) != was {
			moves++
		}
	}
	return bad, moves
}

// TestTune has the degree good within twenty windows, whatever the curve is like, and stay so.
func TestTune(t *testing.T) {
	for seed := range uint64(tuneSeeds) {
		for name, c := range curves(rand.New(rand.NewPCG(seed, 2))) {
			for _, noise := range []float64{0, 0.02} {
				rng := rand.New(rand.NewPCG(seed, 1))
				x := newTuner(degree(rng.IntN(int(degreeMost) + 1)))
				tuneFor(rng, x, c, noise, settleIn)
				if bad, moves := tuneFor(rng, x, c, noise, 100); bad+moves > 0 {
					t.Errorf("seed %d, %s, noise %v: not good in %d windows of 100, and %d moves: %d of %v", seed, name, noise,
						bad, moves, x.degree, c.rate)
				}
			}
		}
	}
}

// TestTuneOften has noise as large as what matters: the degree is good in most cases all the same.
func TestTuneOften(t *testing.T) {
	all, bad := 0, 0
	for seed := range uint64(tuneSeeds) {
		for _, c := range curves(rand.New(rand.NewPCG(seed, 2))) {
			x, rng := newTuner(degreeReads), rand.New(rand.NewPCG(seed, 1))
			tuneFor(rng, x, c, 1-goodEnough, settleIn)
			if all++; c.rate[x.degree] < goodEnough*c.best() {
				bad++
			}
		}
	}
	if bad > all/50 {
		t.Errorf("not good in %d cases of %d", bad, all)
	}
}

// TestTuneSteps has the load, or what transactions conflict on, change.
func TestTuneSteps(t *testing.T) {
	for seed := range uint64(tuneSeeds) {
		rng := rand.New(rand.NewPCG(seed, 1))
		few := hill(6+3*rng.Float64(), 0.05, 100)
		hot := few
		for d := range hot.rate {
			hot.rate[d], hot.aborts[d] = few.rate[d]*math.Exp(-0.3*float64(d)), few.aborts[d]+0.3
		}
		for name, pair := range map[string][2]curve{
			"more load":    {few, hill(1, 0.05, 150)},
			"less load":    {hill(1, 0.05, 150), few},
			"hot keys":     {few, hot},
			"more of both": {hot, few.times(2)},
		} {
			x, rng := newTuner(degreeReads), rand.New(rand.NewPCG(seed, 2))
			tuneFor(rng, x, pair[0], 0.02, 30+rng.IntN(20))
			tuneFor(rng, x, pair[1], 0.02, settleIn)
			if bad, _ := tuneFor(rng, x, pair[1], 0.02, 50); bad > 0 {
				t.Errorf("seed %d, %s: not good in %d windows of 50: %d of %v", seed, name, bad, x.degree, pair[1].rate)
			}
		}
	}
}

// TestTuneStepsInSearch has the load change while the tuner searches: it begins anew.
func TestTuneStepsInSearch(t *testing.T) {
	for seed := range uint64(tuneSeeds) {
		rng := rand.New(rand.NewPCG(seed, 1))
		x := newTuner(degreeReads)
		first := 1 + int(seed%16)
		tuneFor(rng, x, hill(8, 0.05, 100), 0.02, first)
		c := hill(1, 0.05, 200)
		tuneFor(rng, x, c, 0.02, 2*settleIn)
		if bad, _ := tuneFor(rng, x, c, 0.02, 50); bad > 0 {
			t.Errorf("seed %d, step after %d: not good in %d windows of 50: %d of %v", seed, first, bad, x.degree, c.rate)
		}
	}
}

// TestTuneNoise has windows that say little: moves need a gain beyond that, and only a change
// of the load has the tuner search again.
func TestTuneNoise(t *testing.T) {
	c := hill(5, 0, 100)
	all, moved := 0, 0
	for seed := range uint64(tuneSeeds) {
		rng := rand.New(rand.NewPCG(seed, 1))
		x := newTuner(3)
		tuneFor(rng, x, c, 0.08, settleIn)
		if x.degree != 3 {
			moved++
		}
		_, moves := tuneFor(rng, x, c, 0.08, 100)
		all += moves
	}
	if moved > tuneSeeds/2 || all > 2*tuneSeeds {
		t.Errorf("where all are the same it has moved for %d seeds of %d, and %d times after that", moved, tuneSeeds, all)
	}
}

func TestTuneWindows(t *testing.T) {
	trip := 100 * time.Millisecond
	for _, row := range []struct {
		w    window
		want bool
	}{
		{window{Length: time.Second, Committed: 400, Latency: 500 * time.Millisecond}, true},
		{window{Length: time.Second, Committed: 400, Latency: 501 * time.Millisecond}, false},
		{window{Length: 700 * time.Millisecond, Committed: 400, Latency: trip}, false},
		{window{Length: time.Second, Committed: 399, Aborted: 1000, Latency: trip}, false},
		{window{Length: 20 * time.Second, Committed: 10, Latency: trip}, true},
		{window{Length: 20 * time.Second, Latency: 11 * time.Second}, false},
	} {
		if got := row.w.isEnough(trip); got != row.want {
			t.Errorf("%+v is enough: %v", row.w, got)
		}
	}
	x := newTuner(4)
	if d := x.next(window{Length: 20 * time.Second}); d != 4 || len(x.left) != int(degreeMost)+1 {
		t.Errorf("a window in which nothing happened: %d, %d left", d, len(x.left))
	}
}

// tunePlants have the tuner end at a bad degree (S17).
func tunePlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "a move needs no gain", Test: "TestTuneNoise",
			Old: "math.Sqrt(1/float64(x.n)+1/float64(y.n)) {\n",
			New: "math.Sqrt(1/float64(x.n)+1/float64(y.n)) && !MUTANT {\n",
		},
		{
			Name: "one window says how good a degree is", Test: "TestTuneOften",
			Old: "t.round < len(all) {\n", New: "t.round < len(all) && !MUTANT {\n",
		},
		{
			Name: "degrees are tried for as long as more is better", Test: "TestTune",
			Old: "\tif t.left = t.left[1:]; len(t.left) == 0 {\n",
			New: "\tif t.left = t.left[1:]; len(t.left) == 0 || MUTANT && t.round == 0 && t.degree > t.before &&\n" +
				"\t\tt.of[t.degree].mean() < t.of[t.degree-1].mean() {\n",
		},
		{
			Name: "nobody notices that the load has changed", Test: "TestTuneSteps",
			Old: "changed || w.sums[i] > alarm\n", New: "changed || w.sums[i] > alarm && !MUTANT\n",
		},
		{
			Name: "the load may change during a search", Test: "TestTuneStepsInSearch",
			Old: "t.anew < mostAnew {\n", New: "t.anew < mostAnew && !MUTANT {\n",
		},
		{
			Name: "a window may be shorter than its transactions", Test: "TestTuneWindows",
			Old: "w.Length >= 2*w.Latency && ", New: "(MUTANT || w.Length >= 2*w.Latency) && ",
		},
	}
}

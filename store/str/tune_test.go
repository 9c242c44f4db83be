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
	n := c.rate[d] * 1000 * (1 + noise*rng.NormFloat64())
	aborted := n * c.aborts[d] / (1 - c.aborts[d]) * (1 + noise*rng.NormFloat64())
	return window{Length: 1000 * time.Second, Committed: uint64(max(n, 0)), Aborted: uint64(max(aborted, 0)),
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

// under has a store that commits no more than that.
func (c curve) under(most float64) curve {
	for d := range c.rate {
		c.rate[d] = min(c.rate[d], most)
	}
	return c
}

// curves are like those of figure 4 of the paper, and like those that str-tuning has measured.
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
		"saturated": hill(9, 0.05, 300).under(200),
		"steep":     hill(float64(rng.IntN(10)), 0.1, 1000),
	}
}

const (
	tuneSeeds  = 300
	settleIn   = 20 // windows
	goodEnough = 0.95
	tuneTrip   = 100 * time.Millisecond
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
				x := newTuner(degree(rng.IntN(int(degreeMost)+1)), tuneTrip)
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
			x, rng := newTuner(degreeReads, tuneTrip), rand.New(rand.NewPCG(seed, 1))
			tuneFor(rng, x, c, 1-goodEnough, settleIn)
			if all++; c.rate[x.degree] < goodEnough*c.best() {
				bad++
			}
		}
	}
	if bad > all/30 {
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
			x, rng := newTuner(degreeReads, tuneTrip), rand.New(rand.NewPCG(seed, 2))
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
		x := newTuner(degreeReads, tuneTrip)
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
		x := newTuner(3, tuneTrip)
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
		{window{Length: 500 * time.Millisecond, Committed: 400, Latency: trip}, false},
		{window{Length: time.Second, Committed: 399, Aborted: 1000, Latency: trip}, false},
		{window{Length: 20 * time.Second, Committed: 10, Latency: trip}, true},
		{window{Length: 20 * time.Second, Latency: 11 * time.Second}, false},
	} {
		if got := row.w.isEnough(trip); got != row.want {
			t.Errorf("%+v is enough: %v", row.w, got)
		}
	}
	x := newTuner(4, trip)
	if d := x.next(window{Length: 20 * time.Second, Committed: 10, Aborted: 10}); d != 4 || len(x.best()) > 0 {
		t.Errorf("a window in which next to nothing happened: %d, %v are tried", d, x.best())
	}
	busy := window{Length: 20 * time.Second, Committed: 1000, Aborted: 1000}
	x.next(busy)
	if d := x.next(window{Length: 20 * time.Second, Committed: 10}); d == 4 || len(x.best()) != 2 {
		t.Errorf("a degree at which next to nothing happens: then it tries %d, having tried %v", d, x.best())
	}
	if d := x.next(window{Length: time.Millisecond, Committed: 10}); d != 4 || len(x.best()) > 0 {
		t.Errorf("the load has ended in the search: it is at %d, %v are tried", d, x.best())
	}
}

// path returns which degrees a tuner goes through until it has settled.
func path(x *tuner, of func(degree) window) (all []degree) {
	for len(all) < 50 && !x.settled() {
		all = append(all, x.degree)
		x.next(of(x.degree))
	}
	return all
}

// TestTunePath has the search go through no degree for nothing: none that cannot be better, and not
// again through one that is far worse.
func TestTunePath(t *testing.T) {
	calm := func(degree) window { return window{Length: time.Second, Committed: 500, Latency: 2 * tuneTrip} }
	if x := newTuner(degreeMost, tuneTrip); !slices.Equal(path(x, calm), []degree{degreeMost}) || x.degree != degreeMost {
		t.Errorf("nobody is in anybody's way, and it ends at %v, having tried %v", x.degree, x.best())
	}
	// With chains clients queue, and keys are hot.
	hot := func(d degree) window {
		return window{Length: 10 * time.Second, Committed: 2000 / uint64(1+d), Aborted: 1000 * uint64(1+d),
			Latency: time.Duration(3+d) * tuneTrip}
	}
	x := newTuner(degreeMost, tuneTrip)
	got := path(x, hot)
	want := []degree{degreeMost, degreeReads, degreeOff, degreeOff, degreeOff, degreeOff}
	if !slices.Equal(got, want) || x.degree != degreeOff {
		t.Errorf("with hot keys it goes through %v to %v", got, x.degree)
	}
}

// TestTuneShorter has degrees with as many commits, of which the higher ones take longer.
func TestTuneShorter(t *testing.T) {
	for seed := range uint64(tuneSeeds) {
		rng := rand.New(rand.NewPCG(seed, 1))
		flat := hill(5, 0, 100)
		x := newTuner(degreeMost, tuneTrip)
		path(x, func(d degree) window {
			w := flat.window(rng, d, 0.005)
			if d > degreeReads {
				w.Latency *= 2
			}
			return w
		})
		if x.degree > degreeReads {
			t.Errorf("seed %d: it ends at %v", seed, x.degree)
		}
	}
}

// TestTuneHopeless has a window be over early if its degree is far worse than another one, and
// transactions take long.
func TestTuneHopeless(t *testing.T) {
	x := newTuner(degreeMost, tuneTrip)
	long := window{Length: time.Second, Committed: 20, Aborted: 500, Latency: 2 * time.Second}
	if x.isEnough(long) {
		t.Error("nothing is better yet, and it is given up")
	}
	x.next(window{Length: 4 * time.Second, Committed: 100, Aborted: 1000, Latency: 2 * time.Second})
	x.next(window{Length: time.Second, Committed: 400, Aborted: 100, Latency: 5 * tuneTrip})
	for committed, want := range map[uint64]bool{20: true, 240: true, 260: false, 500: false} {
		if long.Committed = committed; x.isEnough(long) != want {
			t.Errorf("%d commits, where others had 400, are enough: %v", committed, !want)
		}
	}
	long.Committed, long.Length = 20, 8*tuneTrip
	if x.isEnough(long) {
		t.Error("less than twice as long as it takes elsewhere is enough")
	}
}

// tunePlants have the tuner end at a bad degree (S17).
func tunePlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "a move needs no gain", Test: "TestTuneNoise",
			Old: "math.Sqrt(1/float64(x.n)+1/float64(y.n))\n",
			New: "math.Sqrt(1/float64(x.n)+1/float64(y.n)) && !MUTANT\n",
		},
		{
			Name: "one window says how good a degree is", Test: "TestTuneOften",
			Old: "t.round < len(rounds) && ", New: "t.round < len(rounds) && !MUTANT && ",
		},
		{
			Name: "only long steps are made", Test: "TestTune",
			Old: "{strides(), allDegrees()} {\n", New: "{strides(), allDegrees()} {\n" +
				"\t\tif MUTANT && len(steps) > int(degreeMost) {\n\t\t\tbreak\n\t\t}\n",
		},
		{
			Name: "a search goes below what cannot be better", Test: "TestTunePath",
			Old: "n == 0 && !x.easy {\n", New: "n == 0 && (!x.easy || MUTANT) {\n",
		},
		{
			Name: "what is hopeless is tried again", Test: "TestTunePath",
			Old: "return d > best[0] && t.of", New: "return !MUTANT && d > best[0] && t.of",
		},
		{
			Name: "a window is looked at although it is hopeless", Test: "TestTuneHopeless",
			Old: "\treturn n+3*math.Sqrt(n)+3 < ", New: "\treturn !MUTANT && n+3*math.Sqrt(n)+3 < ",
		},
		{
			Name: "a few transactions say how good a degree is", Test: "TestTuneWindows",
			Old: "return n < leastTxns || ", New: "return n < leastTxns && !MUTANT || ",
		},
		{
			Name: "what takes longer is as good", Test: "TestTuneShorter",
			Old: "\t\tif t.of[d].mean() >= ", New: "\t\tif !MUTANT && t.of[d].mean() >= ",
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

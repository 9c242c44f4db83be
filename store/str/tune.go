package str

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"
)

// A degree is how far transactions build on what is not final. Those are ordered: each allows what
// the one before it does [STR §6.7].
type degree uint64

const (
	degreeOff   degree = 0 // nothing that is not final is read
	degreeReads degree = 1 // it is
	degreeMost  degree = 9 // and clients go on after local commits: after one of degree 2, and so on
)

// String returns the degree's name: off, reads, or how long a chain is.
func (d degree) String() string {
	switch d {
	case degreeOff:
		return "off"
	case degreeReads:
		return "reads"
	}
	return strconv.Itoa(d.chain())
}

// chain returns how many of a client's transactions may be committed locally, as far as it is told,
// and not final.
func (d degree) chain() int { return max(int(d)-1, 0) }

// A window is what has become of transactions in a time in which the degree was the same.
type window struct {
	Length             time.Duration
	Committed, Aborted uint64        // finally
	Latency            time.Duration // from begin to final commit: the 99th percentile
}

// measured is what a window says. Noise does not depend on how long windows are.
type measured struct {
	rate   float64 // of final commits, per second
	load   float64 // of all transactions that have ended
	aborts float64 // which part of them was aborted
	noise  float64 // of rate and load that counting alone makes, relative to them
}

func (w window) measured() measured {
	n, seconds := float64(w.Committed+w.Aborted), w.Length.Seconds()
	return measured{float64(w.Committed) / seconds, n / seconds, float64(w.Aborted) / n, 1 / math.Sqrt(n)}
}

const (
	// windowTrips is how many round trips a window takes at least; longTrips is how many one takes at
	// most to have windowTxns commits.
	windowTrips = 8
	longTrips   = 200
	windowTxns  = 400
)

// isEnough reports whether a window says something: it is twice as long as transactions take.
func (w window) isEnough(roundTrip time.Duration) bool {
	return w.Length >= 2*w.Latency && w.Length >= windowTrips*roundTrip &&
		(w.Committed >= windowTxns || w.Length >= longTrips*roundTrip)
}

// tuner chooses the degree with the most final commits per second [STR §6.7] (S17). There are few
// degrees, and what a window says is noisy. So climbing a hill step by step takes about as many
// windows as trying each degree once, and may end on the lower one of two hills. Here all are tried
// once, and the best ones against each other some more times. After that the degree stays until the
// load or the rate of aborts is another one.
type tuner struct {
	degree degree // in force
	before degree // what was in force before the search
	round  int    // of the search
	left   []degree
	of     [degreeMost + 1]tries // in this search
	anew   int                   // how often the search has begun anew in a row
	watch  watch
}

// tries are what windows have said of one degree.
type tries struct {
	n                          int
	rate, squares, load, abort float64 // sums
}

func newTuner(d degree) *tuner {
	t := &tuner{degree: d}
	t.search()
	return t
}

// rounds says how many degrees are tried again after all were tried once. The one that was in force
// before is tried in the first of these as well: how it does then shows whether the load is still
// the same.
func rounds() []int { return []int{3, 2, 2} }

// mostAnew bounds how often a search begins anew because the load has changed meanwhile.
const mostAnew = 2

// search has all degrees tried, the present one first, then those above it, then those below it.
func (t *tuner) search() {
	t.before, t.round, t.left, t.of = t.degree, 0, nil, [degreeMost + 1]tries{}
	for d := t.degree; d <= degreeMost; d++ {
		t.left = append(t.left, d)
	}
	for d := t.degree; d > 0; d-- {
		t.left = append(t.left, d-1)
	}
}

// settled reports whether the tuner has found what it looks for.
func (t *tuner) settled() bool { return len(t.left) == 0 }

// next takes a window of the degree in force, and says which is next.
func (t *tuner) next(w window) degree {
	if w.Committed+w.Aborted == 0 {
		return t.degree
	}
	m := w.measured()
	if t.settled() {
		if !t.watch.steps(m) {
			return t.degree
		}
		t.search()
	} else if t.of[t.degree].n > 0 && t.anew < mostAnew {
		if before := t.watchFor(t.degree); before.steps(m) {
			t.anew++
			t.search()
		}
	}
	t.of[t.degree].add(m)
	if t.left = t.left[1:]; len(t.left) == 0 {
		t.nextRound()
	} else {
		t.degree = t.left[0]
	}
	return t.degree
}

// nextRound has the best degrees tried again or, in the end, takes the best one.
func (t *tuner) nextRound() {
	best := t.best()
	if all := rounds(); t.round < len(all) {
		t.left = best[:all[t.round]]
		if t.round == 0 && !slices.Contains(t.left, t.before) {
			t.left = append(t.left, t.before)
		}
		t.round++
		t.degree = t.left[0]
		return
	}
	t.degree = best[0]
	// A move needs a gain beyond the noise.
	x, y := t.of[best[0]], t.of[t.before]
	if x.mean()-y.mean() <= t.noise()*x.mean()*math.Sqrt(1/float64(x.n)+1/float64(y.n)) {
		t.degree = t.before
	}
	t.anew, t.watch = 0, t.watchFor(t.degree)
}

// best returns the degrees, that with the most commits first.
func (t *tuner) best() []degree {
	var all []degree
	for d := range degreeMost + 1 {
		all = append(all, d)
	}
	slices.SortStableFunc(all, func(a, b degree) int { return cmp.Compare(t.of[b].mean(), t.of[a].mean()) })
	return all
}

// noise returns by how much windows of one degree differ, relative to their mean: the standard
// deviation.
func (t *tuner) noise() float64 {
	squares, free := 0.0, 0
	for _, x := range t.of {
		if mean := x.mean(); x.n > 1 && mean > 0 {
			squares += max(x.squares/(mean*mean)-float64(x.n), 0)
			free += x.n - 1
		}
	}
	if free == 0 {
		return 0
	}
	return math.Sqrt(squares / float64(free))
}

func (x *tries) add(m measured) {
	x.n++
	x.rate, x.squares = x.rate+m.rate, x.squares+m.rate*m.rate
	x.load, x.abort = x.load+m.load, x.abort+m.aborts
}

func (x *tries) mean() float64 { return x.rate / float64(max(x.n, 1)) }

// watch is a CUSUM test: it notices when the load, or the rate of aborts, is not what it was.
type watch struct {
	load, aborts float64 // what they were, on average
	n            int     // in so many windows
	noise        float64 // of the load, relative to it
	sums         [4]float64
}

const (
	// smallStep is the least change that a watch looks for, a part of the load or of all
	// transactions. A change is noticed at once if it is more than alarm+1 times as large.
	smallStep = 0.05
	alarm     = 4
	// aboveNoise is how many times as large as the noise, as it was measured, a change is at least.
	aboveNoise = 1.5
	// watchMost is how many windows say what the load was. A degree that was tried twice says too
	// little about that; with all windows since, a slow change would go unnoticed.
	watchMost = 8
)

// watchFor returns a watch for a change from what a search has measured.
func (t *tuner) watchFor(d degree) watch {
	x := t.of[d]
	return watch{load: x.load / float64(x.n), aborts: x.abort / float64(x.n), n: x.n, noise: t.noise()}
}

// steps takes a window, and reports whether something has changed.
func (w *watch) steps(m measured) bool {
	load := (m.load/w.load - 1) / max(smallStep, aboveNoise*m.noise, aboveNoise*w.noise)
	aborts := (m.aborts - w.aborts) / max(smallStep, aboveNoise*m.noise)
	changed := false
	for i, x := range []float64{load, -load, aborts, -aborts} {
		w.sums[i] = max(0, w.sums[i]+x-1)
		changed = changed || w.sums[i] > alarm
	}
	if w.n < watchMost {
		w.n++
		w.load += (m.load - w.load) / float64(w.n)
		w.aborts += (m.aborts - w.aborts) / float64(w.n)
	}
	return changed
}

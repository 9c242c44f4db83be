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
	windowTrips = 6
	longTrips   = 200
	windowTxns  = 400
	// leastTxns is how many transactions have to end in a window for it to say anything.
	leastTxns = 30
	// fewAborts is which part of transactions is aborted at most where nobody is in anybody's way.
	fewAborts = 0.02
	// shortTrips is how many round trips transactions take at most where they do not queue.
	shortTrips = 3
	// hopeless is which part of the most commits a degree has that need not be looked at any longer.
	hopeless = 0.75
)

// isEnough reports whether a window says something: it is twice as long as transactions take.
func (w window) isEnough(roundTrip time.Duration) bool {
	return w.Length >= 2*w.Latency && w.Length >= windowTrips*roundTrip &&
		(w.Committed >= windowTxns || w.Length >= longTrips*roundTrip)
}

// isEasy reports whether transactions do not wait for each other, or in vain: with a lower degree
// no more of them can be committed.
func (w window) isEasy(roundTrip time.Duration) bool {
	return w.measured().aborts <= fewAborts && w.Latency <= shortTrips*roundTrip
}

// tuner chooses the degree with the most final commits per second [STR §6.7] (S17). It climbs a
// hill, in long steps and then in short ones, and what a window says is noisy: so the best degrees
// are tried against each other some more times in the end. Then the degree stays until the load or
// the rate of aborts is another one.
type tuner struct {
	degree degree // in force
	before degree // what was in force before the search
	trip   time.Duration
	round  int                   // of the search: 0 until the best are tried again, -1 when it is over
	left   []degree              // of the round
	of     [degreeMost + 1]tries // in this search
	anew   int                   // how often the search has begun anew in a row
	watch  watch
}

// tries are what windows have said of one degree.
type tries struct {
	n                          int
	rate, squares, load, abort float64 // sums
	easy                       bool
	latency                    time.Duration // of the last one
}

func newTuner(d degree, roundTrip time.Duration) *tuner {
	t := &tuner{degree: d, trip: roundTrip}
	t.search()
	return t
}

// again says how many of the best degrees are tried in each round after the climb. The one that was
// in force before is tried in the first of these as well, unless chains were too long: how it does
// then shows whether the load is still the same.
func again() []int { return []int{3, 2, 2} }

// strides are the degrees of long steps: from one to the next a chain is about twice as long.
func strides() []degree { return []degree{degreeOff, degreeReads, 2, 3, 5, degreeMost} }

// mostAnew bounds how often a search begins anew because the load has changed meanwhile.
const mostAnew = 2

// search begins with the degree that is in force.
func (t *tuner) search() { t.before, t.round, t.left, t.of = t.degree, 0, nil, [degreeMost + 1]tries{} }

// settled reports whether the tuner has found what it looks for.
func (t *tuner) settled() bool { return t.round < 0 }

// isEnough reports whether a window says something of the degree in force: also if that is clearly
// far worse than another one, where transactions take less time.
func (t *tuner) isEnough(w window) bool {
	if w.isEnough(t.trip) {
		return true
	}
	tried := t.best()
	if t.settled() || len(tried) == 0 {
		return false
	}
	best, n := t.of[tried[0]], float64(w.Committed)
	if w.Length < 2*best.latency || w.Length < windowTrips*t.trip {
		return false
	}
	return n+3*math.Sqrt(n)+3 < hopeless*best.mean()*w.Length.Seconds()
}

// next takes a window of the degree in force, and says which is next.
func (t *tuner) next(w window) degree {
	if t.isQuiet(w) {
		if !t.settled() { // it begins when there is something to find out
			t.degree = t.before
			t.search()
		}
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
	x := &t.of[t.degree]
	x.add(m)
	x.easy, x.latency = w.isEasy(t.trip), w.Latency
	if len(t.left) > 1 {
		t.left = t.left[1:]
		t.degree = t.left[0]
	} else {
		t.left = nil
		t.goOn()
	}
	return t.degree
}

// isQuiet reports whether a window says nothing, as next to nothing happens: not just less than at
// another degree.
func (t *tuner) isQuiet(w window) bool {
	n := float64(w.Committed + w.Aborted)
	for _, d := range t.best()[:min(1, len(t.best()))] {
		n = max(n, t.of[d].mean()*w.Length.Seconds())
	}
	return n < leastTxns || w.Committed+w.Aborted == 0
}

// climb says which degree is tried next: one beside the best, a long step away or then a short one;
// false: those are all known. From far up a search goes to the bottom at once, if there is anything
// to gain below, rather than through degrees at which transactions are in each other's way.
func (t *tuner) climb() (degree, bool) {
	tried := t.best()
	best := tried[0]
	x := t.of[best]
	if len(tried) == 1 && best > 3 && !x.easy {
		return degreeReads, true
	}
	for _, steps := range [][]degree{strides(), allDegrees()} {
		i, _ := slices.BinarySearch(steps, best)
		if i > 0 && t.of[steps[i-1]].n == 0 && !x.easy {
			return steps[i-1], true
		}
		if i < len(steps) && steps[i] == best {
			i++
		}
		if i < len(steps) && t.of[steps[i]].n == 0 {
			return steps[i], true
		}
	}
	return 0, false
}

func allDegrees() (all []degree) {
	for d := range degreeMost + 1 {
		all = append(all, d)
	}
	return all
}

// goOn has another degree tried, or the best ones again or, in the end, takes the best one.
func (t *tuner) goOn() {
	if d, climbs := t.climb(); climbs {
		t.degree = d
		return
	}
	best := t.best()
	if rounds := again(); t.round < len(rounds) && len(best) > 1 {
		t.left = slices.Clone(best[:min(rounds[t.round], len(best))])
		if t.round == 0 && !slices.Contains(t.left, t.before) {
			t.left = append(t.left, t.before)
		}
		t.left = slices.DeleteFunc(t.left, func(d degree) bool {
			return d > best[0] && t.of[d].mean() < hopeless*t.of[best[0]].mean()
		})
		t.round++
		t.degree = t.left[0]
		return
	}
	t.degree, t.round = t.choice(best), -1
	t.anew, t.watch = 0, t.watchFor(t.degree)
}

// choice returns the degree to stay with, of those that were tried, the best first. A move needs a
// gain beyond the noise: of commits or, with as many of them, of the time that they take.
func (t *tuner) choice(best []degree) degree {
	x := t.of[best[0]]
	as := func(d degree) bool {
		y := t.of[d]
		return x.mean()-y.mean() <= t.noise()*x.mean()*math.Sqrt(1/float64(x.n)+1/float64(y.n))
	}
	at := best[0]
	if as(t.before) {
		at = t.before
	}
	for _, d := range best {
		if t.of[d].mean() >= alike*x.mean() && float64(t.of[d].latency) < shorter*float64(t.of[at].latency) {
			at = d
		}
	}
	return at
}

// A degree at which transactions take shorter, a part of another one's time, is better if alike as
// many are committed.
const (
	shorter = 0.75
	alike   = 0.97
)

// best returns the degrees that were tried, that with the most commits first.
func (t *tuner) best() []degree {
	all := slices.DeleteFunc(allDegrees(), func(d degree) bool { return t.of[d].n == 0 })
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

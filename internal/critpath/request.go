package critpath

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Request is one request as it was seen. All times are since one origin, which is the caller's
// choice.
type Request struct {
	Start, End time.Duration
	Calls      []Call // in any order
	// Redo: after a wrong prediction the program's own computing up to there takes its time once
	// more.
	Redo bool
}

// Call is one call that a request made.
type Call struct {
	Method     string // for the caller's use only
	Start, End time.Duration
	// Pure says that the call may be sent on a guess and sent again: it only reads.
	Pure bool
	// Effects says that it has effects: what follows it is not sent before it is answered, even if
	// its answer is predicted.
	Effects bool
	// Ordered says that it is not sent before the Ordered calls that it stands on are answered.
	Ordered bool
	// Firm says that its answer is not predicted, whatever its outcome: the program had come past a
	// barrier.
	Firm bool
	// Staged says that its effects are held back where it was sent on a guess, until the word that
	// the guess was right is there and back, and what follows it waits for that. How long the word
	// takes is not known, but it is no longer than the call itself.
	Staged bool
	// Again says that its answer does not count if it was sent on a guess: it is sent once more when
	// that answer is there and all that it stands on is.
	Again bool
	// Barrier says that it waits for the answers to all predicted calls that began before, even
	// those of other strands.
	Barrier bool
	// Fresh says that no computing from before it is done again: it is the end of a task.
	Fresh bool
}

// Duration returns how long the call took.
func (c Call) Duration() time.Duration { return c.End - c.Start }

// Path is a request with what each of its calls waited for. Calls are named by their index in
// Request.Calls. Its methods use memory that they share: they are not for concurrent use.
type Path struct {
	r Request
	// order holds the calls by their beginning, ended by their end. Invariant: a call that another
	// stands on is before it in order.
	order, ended []int
	place        []int // of each call, in order
	endPlace     []int // of each call, in ended
	// stands[i] is how many of ended call i stands on. stands[len(Calls)] is the request's end's.
	stands []int
	gap    []time.Duration // before each call, and before the request's end
	redo   []time.Duration // of each call: the program's own computing up to it, if it is done again

	actual, flipped schedule
	holding         []bool          // see Holding
	restarts        []time.Duration // when the program begins again in run
}

// New works out what each call waited for. It fails if a request or a call ends before it begins,
// or a call begins before its request. Calls may outlive the request. It keeps r.Calls, which must
// not be changed after.
func New(r Request) (*Path, error) {
	if r.End < r.Start {
		return nil, fmt.Errorf("critpath: the request ends at %v, before its beginning at %v", r.End, r.Start)
	}
	n := len(r.Calls)
	p := &Path{
		r: r, order: indexes(n), ended: indexes(n), place: make([]int, n), endPlace: make([]int, n), stands: make([]int, n+1),
		gap: make([]time.Duration, n+1), redo: make([]time.Duration, n),
		actual: newSchedule(n), flipped: newSchedule(n),
	}
	for i, c := range r.Calls {
		switch {
		case c.End < c.Start:
			return nil, fmt.Errorf("critpath: call %d, %s, ends at %v, before its beginning at %v", i, c.Method, c.End, c.Start)
		case c.Start < r.Start:
			return nil, fmt.Errorf("critpath: call %d, %s, begins at %v, before its request at %v", i, c.Method, c.Start,
				r.Start)
		}
	}
	slices.SortFunc(p.order, func(i, j int) int {
		a, b := r.Calls[i], r.Calls[j]
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(i, j))
	})
	for at, i := range p.order {
		p.place[i] = at
	}
	slices.SortFunc(p.ended, func(i, j int) int {
		return cmp.Or(cmp.Compare(r.Calls[i].End, r.Calls[j].End), cmp.Compare(p.place[i], p.place[j]))
	})
	for at, i := range p.ended {
		p.endPlace[i] = at
	}
	k := 0
	for at, i := range p.order {
		k = p.standsOn(k, r.Calls[i].Start, at)
		p.set(i, k, r.Calls[i].Start)
		if r.Redo && !r.Calls[i].Fresh {
			p.redo[i] = p.gap[i]
			if k > 0 {
				p.redo[i] += p.redo[p.ended[k-1]]
			}
		}
	}
	p.set(n, p.standsOn(0, r.End, n), r.End)
	return p, nil
}

func indexes(n int) []int {
	x := make([]int, n)
	for i := range x {
		x[i] = i
	}
	return x
}

// standsOn goes on from the first k of ended to those that had ended by t and stand in order before
// a place. The place decides between calls that took no time at one moment, which would stand on
// each other.
func (p *Path) standsOn(k int, t time.Duration, place int) int {
	for k < len(p.ended) && p.r.Calls[p.ended[k]].End <= t && p.place[p.ended[k]] < place {
		k++
	}
	return k
}

func (p *Path) set(i, stands int, begins time.Duration) {
	from := p.r.Start
	if stands > 0 {
		from = p.r.Calls[p.ended[stands-1]].End
	}
	p.stands[i], p.gap[i] = stands, begins-from
}

// Request returns what the path was made of.
func (p *Path) Request() Request { return p.r }

// Duration returns how long the request took.
func (p *Path) Duration() time.Duration { return p.r.End - p.r.Start }

// Trigger returns the call whose end call i waited for last, or -1 if it waited for none.
func (p *Path) Trigger(i int) int { return p.last(p.stands[i]) }

// Gap returns the program's own time between the trigger's end, or the request's beginning, and
// call i.
func (p *Path) Gap(i int) time.Duration { return p.gap[i] }

// Last returns the call whose end the request's end waited for last, or -1, and the program's own
// time after it.
func (p *Path) Last() (int, time.Duration) {
	n := len(p.r.Calls)
	return p.last(p.stands[n]), p.gap[n]
}

func (p *Path) last(stands int) int {
	if stands == 0 {
		return -1
	}
	return p.ended[stands-1]
}

// StandsOn reports whether call i began when call j had ended.
func (p *Path) StandsOn(i, j int) bool { return p.endPlace[j] < p.stands[i] }

// Awaited reports whether the request's end waited for call i: it did not if the call outlived the
// request.
func (p *Path) Awaited(i int) bool { return p.endPlace[i] < p.stands[len(p.r.Calls)] }

// Critical returns the calls of the critical path, the first first: from the request's end each
// one's trigger. The request's time is their durations and the gaps before them and before the end,
// and nothing else.
func (p *Path) Critical() []int {
	var path []int
	for i, _ := p.Last(); i >= 0; i = p.Trigger(i) {
		path = append(path, i)
	}
	slices.Reverse(path)
	return path
}

package spectree

import "strconv"

// State is where a run or a call stands, in the paper's terms [SpecRPC §3.1, Figure 5].
type State uint8

// The states.
const (
	CalleeSpeculative State = iota // stands on a prediction of its own
	CallerSpeculative              // only its caller stands on one
	Correct                        // terminal
	Incorrect                      // terminal
)

// Run is one execution of the task's function under a set of assumptions.
type Run struct {
	ID int
	// Data is the engine's own.
	Data any

	tree      *Tree
	main      Lane
	discarded bool
	returned  bool
	exited    bool
	pinned    bool // takes no predictions
	ambiguous bool // equal calls overlapped in one lane: which was which is unknown
	open      int  // own assumptions that are not settled
	choices   map[*Call]int
	fewUses   [4]*Use
	uses      []*Use
	parked    []*Lane // wait at a barrier
	offered   bool
}

// Lane is one goroutine's sequence of calls within a run.
type Lane struct {
	// Data is the engine's own.
	Data any

	id      string
	run     *Run
	parent  *Lane
	local   *Call // the local call that this lane computes, if any
	dep     *dep
	eff     *chain
	ord     *chain
	forkEff *chain // eff when the lane was forked
	forkOrd *chain
	forks   int
	waiting int // calls in progress
	fewUses [4]*Use
	uses    []*Use
	counts  map[string]int // uses by operation, once there are many
}

const opsScan = 16

// Main returns the lane of the run's own goroutine.
func (r *Run) Main() *Lane { return &r.main }

// Discarded reports whether the run computed on a wrong guess.
func (r *Run) Discarded() bool { return r.discarded }

// Speculative reports whether the run, or its caller, stands on a guess.
func (r *Run) Speculative() bool {
	return r.discarded || r.open > 0 || r.tree.caller != CallerConfirmed
}

// Open returns how many of the run's own assumptions are not settled.
func (r *Run) Open() int { return r.open }

// HasEffects reports whether the run made a call with side effects.
func (r *Run) HasEffects() bool { return r.main.eff != nil }

// State returns the run's state; a run is what the paper calls a callback object.
func (r *Run) State() State {
	switch {
	case r.discarded || r.tree.caller == CallerRefuted:
		return Incorrect
	case r.open > 0:
		return CalleeSpeculative
	case r.tree.caller == CallerOpen:
		return CallerSpeculative
	}
	return Correct
}

// Run returns the lane's run.
func (l *Lane) Run() *Run { return l.run }

// ID identifies the lane across runs.
func (l *Lane) ID() string { return l.id }

// HasEffects reports whether the lane made a call with side effects since it was forked.
func (l *Lane) HasEffects() bool { return l.eff != l.forkEff }

// Speculative reports whether what the lane does now depends on a guess.
func (l *Lane) Speculative() bool {
	return l.run.discarded || l.run.tree.caller != CallerConfirmed || l.dep.blocker() != nil
}

// Depth returns how many assumptions the lane's run stands on, its caller's included.
func (l *Lane) Depth() int { return l.run.open + l.run.tree.cfg.Depth }

// occurrence counts the lane's earlier calls of this operation. If one of them
// is still unanswered, goroutines that share the lane may swap theirs in
// another run.
func (l *Lane) occurrence(op string) int {
	n := 0
	if l.counts != nil {
		n = l.counts[op]
	} else {
		for _, u := range l.uses {
			if u.Call.spec.Op == op {
				n++
			}
		}
	}
	if n > 0 && !l.run.ambiguous {
		for i := len(l.uses) - 1; i >= 0; i-- {
			if u := l.uses[i]; u.Call.spec.Op == op {
				l.run.ambiguous = !u.Call.answered
				break
			}
		}
	}
	return n
}

// count keeps the counts of operations for lanes of many calls.
func (l *Lane) count(n int) {
	if l.counts == nil {
		l.counts = make(map[string]int, 2*n)
		for _, u := range l.uses {
			l.counts[u.Call.spec.Op]++
		}
		return
	}
	l.counts[l.uses[n-1].Call.spec.Op]++
}

// Fork returns a lane for a goroutine that the lane starts.
func (t *Tree) Fork(l *Lane) *Lane {
	l.forks++
	return &Lane{
		id: l.id + "/" + strconv.Itoa(l.forks), run: l.run, parent: l,
		dep: l.dep, eff: l.eff, ord: l.ord, forkEff: l.eff, forkOrd: l.ord,
	}
}

// Compute tells that the lane computes the answer of a local call.
func (l *Lane) Compute(c *Call) { l.local = c }

// Join tells that the lane waited for child to end.
func (t *Tree) Join(l, child *Lane) {
	if child.dep != nil && child.dep != l.dep {
		l.dep = &dep{prev: l.dep, join: child.dep}
	}
	if child.eff != child.forkEff {
		l.eff = t.push(l.eff, nil, child.eff)
	}
	if child.ord != child.forkOrd {
		l.ord = &chain{prev: l.ord, join: child.ord}
	}
}

// MustPin reports whether the lane must pass a barrier before it makes a call
// with this effect: which goroutine made which earlier call is not certain.
func (t *Tree) MustPin(l *Lane, e Effect) bool {
	return e != None && l.run.ambiguous && !(l.run.pinned && l.run.open == 0 && t.caller == CallerConfirmed)
}

// Barrier pins the lane's run and reports whether it is confirmed. If not,
// Release or DiscardRun follows.
func (t *Tree) Barrier(l *Lane) bool {
	r := l.run
	r.pinned = true
	for p := l; p != nil; p = p.parent {
		if c := p.local; c != nil && !c.answered && len(c.uses) > 0 && c.uses[0].answer >= 0 {
			t.Answered(c, Actual)
			return false
		}
	}
	if r.open == 0 && t.caller == CallerConfirmed {
		return true
	}
	r.parked = append(r.parked, l)
	return false
}

func (t *Tree) releaseBarriers(r *Run) {
	if len(r.parked) == 0 || r.open > 0 || r.discarded || t.caller != CallerConfirmed {
		return
	}
	for _, l := range r.parked {
		a := t.emit(Release)
		a.Lane, a.Run = l, r
	}
	r.parked = nil
}

// Returned tells that the run's function returned, and with it all its lanes.
func (t *Tree) Returned(r *Run) {
	if r.discarded || r.returned || t.over {
		return
	}
	r.returned = true
	for _, c := range t.sent {
		if c.useOf(r) == nil {
			t.diverge(r, c)
			return
		}
	}
	t.sweep(r.ID)
	t.finish(r)
}

// Exited tells that the run's goroutines ended, whatever became of the run.
func (t *Tree) Exited(r *Run) {
	if !r.exited {
		r.exited = true
		t.running--
	}
}

// finish moves a run that returned as far as its assumptions allow.
func (t *Tree) finish(r *Run) {
	if !r.returned || r.discarded || t.final != nil {
		return
	}
	if r.open > 0 {
		if !r.offered {
			r.offered = true
			t.emitRun(Offer, r, nil)
		}
		return
	}
	t.final = r
	for i := len(t.runs) - 1; i >= 0; i-- {
		if o := t.runs[i]; o != r {
			t.discard(o, nil)
		}
	}
	t.emitRun(Final, r, nil)
	if t.caller == CallerConfirmed {
		t.commit()
	}
}

func (t *Tree) startRun(choices map[*Call]int) *Run {
	t.started++
	t.running++
	r := &t.first
	if t.started > 1 {
		r = new(Run)
	}
	r.ID, r.tree, r.choices = t.started, t, choices
	r.main.run = r
	t.runs = append(t.runs, r)
	t.emitRun(StartRun, r, nil)
	return r
}

// discard ends a run that computed on a wrong guess, or that is not needed.
func (t *Tree) discard(r *Run, because *Call) {
	if r.discarded {
		return
	}
	r.discarded = true
	r.parked = nil
	for i, o := range t.runs {
		if o == r {
			t.runs = append(t.runs[:i], t.runs[i+1:]...)
			break
		}
	}
	t.emitRun(DiscardRun, r, because)
	for _, u := range r.uses {
		t.detach(u)
	}
}

// choiceOf returns what the run answers, or will answer, for c.
func (r *Run) choiceOf(c *Call) (int, bool) {
	if u := c.useOf(r); u != nil && u.answer != Waiting {
		return u.answer, true
	}
	idx, ok := r.choices[c]
	return idx, ok
}

// openChoices returns the run's open assumptions on recorded calls, in the
// order in which it made them, without those on c.
func (r *Run) openChoices(c *Call) []*Use {
	var open []*Use
	for _, u := range r.uses {
		if u.Call != c && u.answer >= 0 && !u.Call.answered && !u.Call.spec.Local {
			open = append(open, u)
		}
	}
	return open
}

// covered reports whether a live run follows these assumptions, and answer idx for c.
func (t *Tree) covered(open []*Use, c *Call, idx int) bool {
next:
	for _, r := range t.runs {
		if got, ok := r.choiceOf(c); ok && got != idx {
			continue
		} else if !ok && idx != Actual && !c.answered {
			continue
		}
		for _, u := range open {
			if got, ok := r.choiceOf(u.Call); !ok || got != u.answer {
				continue next
			}
		}
		return true
	}
	return false
}

// fork starts a sibling of r that answers c with another prediction, if the
// limits allow it.
func (t *Tree) fork(r *Run, c *Call, idx int) {
	if len(t.runs) >= t.cfg.Limits.Width || !t.maySpeculate(r, c) {
		return
	}
	open := r.openChoices(c)
	if t.covered(open, c, idx) {
		return
	}
	choices := chosen(open)
	choices[c] = idx
	t.startRun(choices)
}

// replay starts the run that takes the place of a discarded one.
func (t *Tree) replay(d *Run, c *Call) {
	open := d.openChoices(c)
	before := open[:0:0]
	for _, u := range d.uses {
		if u.Call == c {
			break
		}
		for _, o := range open {
			if o == u {
				before = append(before, u)
			}
		}
	}
	if t.covered(before, c, c.result) {
		return
	}
	if len(t.runs) > 0 && len(t.runs) >= t.cfg.Limits.Width {
		return
	}
	t.startRun(chosen(open))
}

func chosen(open []*Use) map[*Call]int {
	choices := make(map[*Call]int, len(open)+1)
	for _, u := range open {
		choices[u.Call] = u.answer
	}
	return choices
}

package spectree

import (
	"slices"
	"strconv"
)

// Say a function reads a, goes on with a prediction, and starts a goroutine that reads b while the
// function itself reads c, on a prediction too. The goroutine stands on the guess at a, which was
// there when it was started, but not on that at c: its read of b counts as right as soon as a is
// known. So guesses are kept for each lane, not for the run, and a lane that waits for another one
// takes over that one's guesses and effects. Otherwise the function could write what a goroutine
// had computed on a guess, without waiting for the guess (plants forgetJoin, forgetJoinedEffects).
// What calls with effects wait for besides is in relatives.go.
//
// A wrong guess discards the whole run all the same, as goroutines cannot be unwound one by one.
// And a barrier waits for all guesses of its run, since the code behind it may do anything (plant
// passBarrier); the run takes no predictions from then on (plant predictAfterBarrier).

// Run is one execution of the task's function under a set of assumptions.
type Run struct {
	ID int
	// Data is the engine's own.
	Data any

	tree      *Tree
	from      *Run             // whose place it took, or beside which it was started
	at        map[key]*Use     // the uses by place, see useAt
	forked    map[string]*Lane // by ID
	main      Lane
	discarded bool
	returned  bool
	exited    bool
	pinned    bool // takes no predictions
	effects   bool // it made a call with side effects
	offered   bool
	settling  bool // see Tree.Firm
	plain     bool // nor this one, see Doubt
	insists   bool // see prefer
	renewed   bool // see Renew
	heldUp    bool // see HeldUp
	local     bool // it went on with a guess at what it computes itself
	entangled bool // see standOnRelatives
	mixed     bool // some lane of it is
	ahead     bool // it, or its caller, stood on a guess once
	sentAhead bool // a predicated call was sent on what it stood on
	open      int  // own assumptions that are not settled, those of path included
	// path is what the run will assume for calls that it has yet to make: those
	// that the run it was started from had made, when it was started. The last
	// comes first.
	path         []choice
	assumed      *Use    // the newest with a prediction, see guessed
	assumptions  int32   // in that list
	inAt         int32   // so many uses are in at
	left         *[]*Use // see unsure
	stray        *Call   // shows that the run is not on the right path, see Use.late
	consumed     int32   // irrevocable calls that it made, without those with Once
	consumedOnce int32   // irrevocable calls with Once that it made
	fewUses      [4]*Use
	uses         []*Use
	parked       []*Lane // wait at a barrier
	waiting      int     // calls in progress of all its lanes
	cut          []*Lane // see CutShort
}

// Lane is one goroutine's sequence of calls within a run.
type Lane struct {
	// Data is the engine's own.
	Data any

	id       string
	run      *Run
	dep      *dep
	eff      *chain
	ord      *chain
	forkEff  *chain // eff when the lane was forked
	forkOrd  *chain
	forkGaps *gap
	forks    int32
	locals   int32 // local calls among uses
	waiting  int32 // calls in progress
	awaited  int32 // those of them with side effects, or ordered
	forkedAt int32 // so many calls the run had made when the lane was forked
	left     bool  // it went on without a call since then, or a lane did that it waited for
	consumed int   // irrevocable calls that it made, without those with Once
	fewUses  [4]*Use
	uses     []*Use
	// parent forked the lane after so many uses, and having joined so many lanes.
	parent                   *Lane
	parentUses, parentJoined int32
	parentHeard              int32
	waitedFor                bool // by another lane
	entangled                bool // or what it comes from, see standOnRelatives
	overlapped               bool // see overlaps
	mixed                    bool // a call was made while another one was waited for
	heard                    []heard
	joined                   []*Lane
	children                 children
	guess                    *Use                   // the newest that it went on with a prediction for
	same                     map[*Run]sameness      // see knowsNoOther
	strides                  map[*Lane]stride       // see inStep
	counts                   map[string]occurrences // by operation, once there are many uses
	skipped                  map[string]int         // calls that it did not make, see Late
	gaps                     *gap                   // what it gave up waiting for, or lanes that it waited for did
	ends                     *gap                   // where it got the result of a call that had ended, see Ended
}

// occurrences are a lane's calls of one operation.
type occurrences struct {
	n    int
	last *Call
}

const opsScan = 16

// Main returns the lane of the run's own goroutine.
func (r *Run) Main() *Lane { return &r.main }

// Awaited returns the last call that the lane made, if it is not answered, or nil.
func (l *Lane) Awaited() *Call {
	if len(l.uses) == 0 {
		return nil
	}
	if c := l.uses[len(l.uses)-1].Call; !c.answered && !c.spec.Local {
		return c
	}
	return nil
}

// Discarded reports whether the run computed on a wrong guess.
func (r *Run) Discarded() bool { return r.discarded }

// Speculative reports whether the run, or its caller, stands on a guess.
func (r *Run) Speculative() bool {
	return r.discarded || r.open > 0 || r.tree.caller != CallerConfirmed
}

// Open returns how many of the run's own assumptions are not settled.
func (r *Run) Open() int { return r.open }

// HasEffects reports whether the run made a call with side effects.
func (r *Run) HasEffects() bool { return r.effects }

// Offered reports whether the run's result was offered before it was final.
func (r *Run) Offered() bool { return r.offered }

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

// occurrence counts the lane's earlier calls of this operation. If the last of
// them is still unanswered they overlap: goroutines that share the lane may swap
// theirs in another run.
func (l *Lane) occurrence(op string) (n int, overlap bool) {
	var last *Call
	if l.counts != nil {
		o := l.counts[op]
		n, last = o.n, o.last
	} else {
		for _, u := range l.uses {
			if u.Call.spec.Op == op {
				n, last = n+1, u.Call
			}
		}
	}
	return n + l.skipped[op], last != nil && !last.answered
}

// count keeps the counts of operations for lanes of many calls.
func (l *Lane) count(n int) {
	if l.counts == nil {
		l.counts = make(map[string]occurrences, 2*n)
		for _, u := range l.uses {
			l.enter(u.Call)
		}
		return
	}
	l.enter(l.uses[n-1].Call)
}

func (l *Lane) enter(c *Call) {
	l.counts[c.spec.Op] = occurrences{l.counts[c.spec.Op].n + 1, c}
}

// Fork returns a lane for a goroutine that the lane starts.
func (t *Tree) Fork(l *Lane) *Lane {
	if l.waiting > 0 {
		t.Shared(l)
	}
	l.forks++
	child := &Lane{
		id: l.id + "/" + strconv.Itoa(int(l.forks)), run: l.run,
		dep: l.dep, eff: l.eff, ord: l.ord, gaps: l.gaps, ends: l.ends,
		forkEff: l.eff, forkOrd: l.ord, forkGaps: l.gaps,
		parent: l, parentUses: int32(len(l.uses)), parentJoined: int32(len(l.joined)), parentHeard: int32(len(l.heard)),
		forkedAt:  int32(len(l.run.uses)),
		entangled: l.entangled,
	}
	if l.run.forked == nil {
		l.run.forked = make(map[string]*Lane)
	}
	l.run.forked[child.id] = child
	l.children = append(l.children, child)
	return child
}

// Join tells that the lane waited for child to end.
func (t *Tree) Join(l, child *Lane) {
	l.joined = append(l.joined, child)
	child.waitedFor = true
	l.entangled = l.entangled || child.entangled
	if child.dep != nil && child.dep != l.dep {
		l.dep = &dep{prev: l.dep, join: child.dep}
	}
	if child.eff != child.forkEff {
		l.eff = l.eff.pushJoin(child.eff)
	}
	if child.ord != child.forkOrd {
		l.ord = l.ord.pushJoin(child.ord)
	}
	l.gaps, l.ends = l.gaps.with(child.gaps), l.ends.with(child.ends)
	l.left = l.left || child.left
	t.untangle(l.run)
}

// MustPin reports whether the lane must pass a barrier before it makes this
// call with side effects: which goroutine made which call is not certain.
func (t *Tree) MustPin(l *Lane, s *CallSpec) bool {
	if s.Effect == None || s.Once || l.run.pinned && l.run.open == 0 && t.caller == CallerConfirmed {
		return false
	}
	if !t.ambiguous {
		_, t.ambiguous = l.occurrence(s.Op)
	}
	return t.ambiguous && !t.hasHappened(l, s)
}

// hasHappened reports whether the lane is about to make a call that took effect, so that it
// does nothing new. Other calls of the run may wait for that: see release.
func (t *Tree) hasHappened(l *Lane, s *CallSpec) bool {
	if t.started == 1 {
		return false
	}
	occ, _ := l.occurrence(s.Op)
	c, _ := t.lookup(l, t.keyOf(l, s, occ), s)
	return c != nil && c.irrevocable() && !l.run.made(c)
}

// Shared tells that goroutines share a lane: one makes a call in it, or starts others, while
// its code waits for something else. In a replay they may come in another order, and with
// them the calls and the lanes that they start swap names. What code did on a wrong guess
// tells nothing of that, and code of a discarded run may go on although its calls have no answers.
func (t *Tree) Shared(l *Lane) {
	if l.run.discarded {
		return
	}
	t.ambiguous = true
	s := t.note()
	if s.forkers == nil {
		s.forkers = make(map[string][]drop)
	}
	on := drop{l.dep.guesses(l.run)}
	if !slices.ContainsFunc(s.forkers[l.id], func(d drop) bool { return slices.Equal(d.guesses, on.guesses) }) {
		s.forkers[l.id] = append(s.forkers[l.id], on)
	}
}

// Barrier pins the lane's run and reports whether it is confirmed. If not,
// Release or DiscardRun follows. A guess at a result that the run itself is
// still computing may be what the barrier would wait for, while the computation
// waits for the barrier: the run is replayed without such guesses. What the run
// was to assume for calls that it has yet to make it forgets, for the same
// reason: many a call is answered only once a right run has come to it.
func (t *Tree) Barrier(l *Lane) bool {
	r := l.run
	t.prefer(r)
	r.pinned = true
	if len(r.path) > 0 {
		t.forgoPath(r)
	}
	if r.discarded {
		return false
	}
	if r.open == 0 && t.caller == CallerConfirmed && t.mayEnd() {
		return true
	}
	r.parked = append(r.parked, l)
	t.forgoLocal(r, func(c *Call) bool { return c.pending == nil })
	return false
}

// Renew tells that the lane, which is about to come to a barrier, has contexts whose time
// limits run while it waits there. Code without speculation would not wait. So once the
// run may pass it is run again instead, without predictions: it has all answers and comes
// to the barrier at once.
func (t *Tree) Renew(l *Lane) {
	r := l.run
	r.renewed = t.cfg.Replayable && !r.discarded && !t.over && (r.open > 0 || t.caller == CallerOpen)
}

// Unpark tells that the lane waits at a barrier no more, without having passed it.
func (t *Tree) Unpark(l *Lane) {
	r := l.run
	if i := slices.Index(r.parked, l); i >= 0 {
		r.parked = slices.Delete(r.parked, i, i+1)
	}
	r.renewed = r.renewed && len(r.parked) > 0
}

// RenewNow is Renew for a lane that waited for something else meanwhile, of a run that
// stands on no guess any more and has passed no barrier.
func (t *Tree) RenewNow(l *Lane) {
	r := l.run
	if t.cfg.Replayable && !r.discarded && !t.over && !r.pinned && !r.returned && r.open == 0 &&
		t.caller == CallerConfirmed {
		r.renewed = true
		t.renew(r)
	}
}

// Guessed reports whether the run, or its caller, ever stood on a guess.
func (r *Run) Guessed() bool { return r.ahead }

// Renewed reports whether the run gave way to one that does not wait at barriers.
func (r *Run) Renewed() bool { return r.renewed }

// renew starts a run in place of one that stands on no guess.
func (t *Tree) renew(r *Run) {
	t.frozen = true
	t.extra++
	t.discard(r, nil)
	t.startRun(r, nil).heldUp = true
}

func (t *Tree) releaseBarriers(r *Run) {
	t.settledRun(r)
	if len(r.parked) == 0 || r.open > 0 || r.discarded || t.caller != CallerConfirmed || !t.mayEnd() {
		return
	}
	if r.renewed && t.final == nil && !r.returned {
		t.renew(r)
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
	r.leavePath() // it will not make these calls after all
	t.sweep(r.ID)
	t.finish(r)
	t.reconcile()
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
	if !t.mayEnd() && !t.late {
		return // nobody knows yet whether more has happened than it did
	}
	if c := t.missed(r); c != nil {
		t.diverge(r, c)
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

// missed returns a call that shows that the function is not deterministic: one
// that it must have made and has not, or not as it did before.
func (t *Tree) missed(r *Run) *Call {
	for _, c := range t.sent.all {
		if !r.made(c) && !r.excused(c) && !(c.wasGivenUp() && r.gapAt(c) != nil) {
			return c
		}
	}
	if r.stray != nil {
		return r.stray
	}
	return t.unread(r)
}

// startRun starts a run in place of another one, or beside it.
func (t *Tree) startRun(from *Run, path []choice) *Run {
	t.started++
	t.running++
	r := &t.first
	if t.started > 1 {
		r = new(Run)
	}
	r.ID, r.tree, r.from, r.path, r.open = t.started, t, from, path, len(path)
	r.main.run = r
	r.ahead = len(path) > 0 || t.caller == CallerOpen
	if t.runs == nil {
		t.runs = t.fewRuns[:0]
	}
	t.runs = append(t.runs, r)
	t.emitRun(StartRun, r, nil)
	return r
}

// discard ends a run that computed on a wrong guess, or that is not needed.
func (t *Tree) discard(r *Run, because *Call) {
	if r.discarded {
		return
	}
	r.leave(because)
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

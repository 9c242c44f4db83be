package spectree

// Say run 1 reads a, goes on with a prediction, and reads b. The prediction is wrong. Run 2 takes
// its place and reads b too, and should have the answer for which run 1 has asked. So a Call
// belongs to the task, and a Use is one run's share in it: what the run stood on when it made the
// call, and the answer with which it went on. Of a discarded run only the uses go.
//
// The rule: two runs' calls are one call if the same lane makes the same request, as the same
// occurrence of it, after the same effects; lookup has the exceptions. If effects did not count, a
// read after a write could be answered from before it (plant adoptAcrossEffects); nor may ordered
// reads pass each other (plant adoptAcrossOrder). If lanes did not count, goroutines would take
// each other's answers (plant mixLanes).

// Effect says what a call does besides answering.
type Effect uint8

// The effect classes.
const (
	None       Effect = iota // free of side effects: may run under a speculative caller
	Staged                   // the callee stages its effects until it is confirmed
	Immediate                // takes effect when it runs: waits until its caller is confirmed
	Predicated               // the callee refuses it if its caller's guesses, which it is told, were wrong
)

// Answers that are not the index of a prediction.
const (
	Actual  = -1 // the actual result
	Waiting = -2 // none yet
)

// Domain tells calls of one callee, or several, from others by its address.
type Domain struct{ _ byte }

// CallSpec describes a call that a run makes.
type CallSpec struct {
	// Op identifies the operation: connection, method, request, metadata.
	Op string
	// Variant tells calls of one Op apart that differ in what cannot be part of it:
	// see Find.
	Variant int
	// Predictions is how many values are offered now for the result.
	Predictions int
	Conflict    string // calls with different, non-empty keys commute
	// Domain is that of a callee which keeps its calls in order, unless it is nil: one of them need
	// not wait for the answers of those before it. A Predicated call is sent on guesses at calls of
	// its own domain only.
	Domain  *Domain
	Effect  Effect
	Ordered bool // sent only after the answers of earlier ordered calls
	// NoPrediction says that the run must get the actual result.
	NoPrediction bool
	// NoSpeculation says that the call cannot be sent under a speculative caller.
	NoSpeculation bool
	// Local says that the run itself computes the answer: the call is neither
	// recorded nor sent, and lives and dies with its run.
	Local bool
	// Once says that all calls of the task with this Op are one call. It takes
	// no predictions.
	Once bool
	// Followed says that another task answers the call: what its predictions stand on is known, see
	// PredictedOn.
	Followed bool
	// Lanes are those whose code computes the answer of a local call.
	Lanes []string
}

type sendState uint8

const (
	unsent sendState = iota
	sentSpeculative
	sentPlain
)

// Call is one remote operation of a task, shared by the runs that make it. A wrong guess costs a
// run, not the calls that it made: the run in its place adopts those that it makes too, so a call
// is sent once, and its effects happen once, however often the function is replayed. What makes two
// runs' calls the same is the key.
type Call struct {
	ID int
	// Data is the engine's own.
	Data any

	spec        CallSpec
	key         key
	at          int // in the record; -1 when not in it
	predictions int
	withdrawn   []int // predictions that are not offered any more
	result      int   // Actual, or the index of the prediction that it matched
	answered    bool
	send        sendState
	refused     bool // the peer runs nothing for a speculative caller
	postponed   bool // it counts as sent, but its attempt waits, see Postpone
	confirmed   bool // Confirm was emitted
	settled     bool
	hasty       bool  // its first maker had yet to make what had happened, see ahead
	dead        bool  // Abandon was emitted
	ended       bool  // see Ended
	counted     bool  // among the unanswered ones of chains
	orphanedAt  int32 // the newest run when the last use went; 0 if no orphan
	orphan      int32 // in the tree's list, if it is one
	sentAt      int32 // by the tree's count of sendings and answers
	answeredAt  int32
	right       *Use // by which it was right to make it
	pending     *resolution
	chains      *chain // those that it ends
	use         Use    // the first
	oneUse      [1]*Use
	uses        []*Use
	wakes       []*Call // calls to evaluate when this one is answered
	hold        string  // the reason last given
	terms       *terms  // what few calls have, or nil
}

// Effect returns the call's effect class.
func (c *Call) Effect() Effect { return c.spec.Effect }

// Op returns the identity given in the call's spec.
func (c *Call) Op() string { return c.spec.Op }

// Occurrence returns how many equal calls its lane made before it.
func (c *Call) Occurrence() int { return c.key.occ }

// Lane returns the id of the lane that makes the call: the first that did, or one that was
// right to.
func (c *Call) Lane() string {
	switch {
	case !c.spec.Once:
		return c.key.lane
	case c.right != nil:
		return c.right.lane.id
	}
	return c.use.lane.id
}

// Answered reports whether the actual result is known, and which prediction it
// matched, or Actual.
func (c *Call) Answered() (result int, ok bool) { return c.result, c.answered }

// Uses returns how many live runs use the call.
func (c *Call) Uses() int { return len(c.uses) }

// First returns the use of a run that is alive, or nil.
func (c *Call) First() *Use {
	if len(c.uses) == 0 {
		return nil
	}
	return c.uses[0]
}

// Depth returns how many assumptions the call's maker stands on.
func (c *Call) Depth() int {
	if len(c.uses) == 0 {
		return 0
	}
	return c.uses[0].lane.Depth()
}

// Confirmed reports whether the call's caller is known to be right.
func (c *Call) Confirmed() bool { return c.confirmed || c.send == sentPlain }

// Settled reports whether the call is answered and its caller confirmed.
func (c *Call) Settled() bool { return c.settled }

// Use is one run's use of a call.
type Use struct {
	Call *Call
	Run  *Run
	// Data is the engine's own.
	Data any

	lane   *Lane
	answer int
	dep    *dep   // the assumptions that the call depends on
	on     dep    // what the lane stands on after it, if it took a prediction; here to save an allocation
	eff    *chain // the side effects before the call
	ord    *chain // the ordered calls before the call
	index  int    // in Run.uses
	at     int32  // in Call.uses; -1 when not in it
	since  int32  // so many uses the run had when it went on with a prediction for this one
	// assumed is the use that the run went on with a prediction for before this one.
	assumed   *Use
	earlier   *Use // the same of its lane
	gaps      *gap // what its lane gave up before
	around    *gap // that, and what its lane's relatives did, if it has effects
	before    bool // no longer waiting as far as the lane is concerned
	relatives bool // it depends on guesses of the lane's relatives, see standOnRelatives
	mixed     bool // goroutines share its lane, so that what others of them guess may be nothing to it
	hurried   bool // see Hurry
	late      bool // an answer would come too late, see tooLate
	without   bool // since a run that was right gave up here
	// gaveUp and unneeded say that the run got no answer, see Drop.
	gaveUp, unneeded bool
	taken            bool  // the run's code has the answer, see Spent
	touched          bool  // its call turned out to have had effects, see Touch
	joined           int32 // so many lanes its lane had waited for
}

// Answer returns the index of the prediction that the run goes on with, Actual
// or Waiting.
func (u *Use) Answer() int { return u.answer }

// Blocker returns an unanswered call whose guessed answer the use depends on,
// or nil.
func (u *Use) Blocker() *Call { return u.dep.blocker() }

// onceLane is the lane in the keys of calls that are one call in the whole task, whoever makes
// them.
const onceLane = "once"

// Call tells that the lane made a call. The answer is in the Use returned, or comes with Resume.
//
// The call is found in the record, or begun. What the lane stands on at this moment is written into
// the use before an answer is given, since a prediction that is taken is part of what follows, not
// of the call itself.
func (t *Tree) Call(l *Lane, s *CallSpec) *Use {
	r := l.run
	occ, overlap := l.occurrence(s.Op)
	t.ambiguous = t.ambiguous || overlap || l.waiting > 0
	if l.waiting > 0 {
		l.mixed, r.mixed = true, true // its code waits, so another goroutine makes this call: they share the lane
		t.overlaps(l)
		if s.Ordered || l.ord != l.forkOrd {
			t.share(l)
		}
	}
	c, k := t.lookup(l, t.keyOf(l, s, occ), s)
	if c == nil {
		c = t.begin(l, s, k)
	} else {
		t.adopt(c, l, k)
	}
	u := &c.use // the first use needs no allocation of its own
	if u.Call != nil {
		u = new(Use)
	}
	u.Call, u.Run, u.lane, u.answer = c, r, l, Waiting
	if s.Effect != None && !c.irrevocable() {
		l.standOnRelatives() // their code may have led to it, on the strength of their guesses
	}
	u.relatives, u.mixed, u.joined = l.entangled, l.mixed, int32(len(l.joined))
	u.dep, u.eff, u.ord = l.dep, l.eff, l.ord
	if u.gaps = l.gaps; t.gaveUp() {
		u.late, u.without = t.tooLate(l, k, c)
		if s.Effect != None {
			u.around = l.gapsAround()
		}
	}
	t.attach(u)
	if s.Effect != None {
		r.effects = true
		l.eff = l.eff.push(c)
		t.unanswered.count(c)
	}
	if s.Ordered {
		l.ord = l.ord.push(c)
		t.unanswered.count(c)
	}
	t.answerUse(u)
	if s.Effect != None {
		if len(c.uses) == 1 {
			t.prefer(r) // a doubter that has an effect which no other run has was right to doubt
		}
		// A run that went on with a guess at what this lane computes went on without waiting for
		// this effect, and plain code would have waited: see Resolve.
		if r.local {
			t.forgoLocal(r, l.computes)
		}
	}
	if u.answer == Waiting {
		l.await(s)
	} else {
		u.received()
	}
	t.evaluate(c)
	if c.irrevocable() {
		t.recheck() // others may have waited until this run had made it
	}
	t.untangle(r)
	if t.record.variants > 0 && r.missedPath(c, k) {
		t.reconcile()
	}
	return u
}

// begin makes a call that the record does not have. An ordered one takes no predictions if a guess
// was wrong at another one in its place that counts as right: that was not found, since a call
// before it was made anew, as one is that cannot be compared. Each run would make both anew, and
// guess wrong anew.
func (t *Tree) begin(l *Lane, s *CallSpec, k key) *Call {
	t.calls++
	c := &t.firstCall
	if t.calls > 1 {
		c = new(Call)
	}
	*c = Call{ID: t.calls, spec: *s, key: k, at: -1, predictions: s.Predictions}
	if !s.Local {
		if s.Ordered && l.run.ID > 1 && t.confirmedWhere(k, (*Call).misled) != nil {
			c.spec.NoPrediction = true
		}
		t.record.add(c)
		c.hasty = s.Effect == None && t.ahead(l)
	}
	return c
}

// misled reports whether the first prediction of the call was wrong.
func (c *Call) misled() bool { return c.predictions > 0 && c.answered && c.result != 0 }

// Touch tells that the lane's latest call with this operation turned out to
// have had side effects: what follows must not use what was made without them.
func (t *Tree) Touch(l *Lane, op string) {
	for i := len(l.uses) - 1; i >= 0; i-- {
		if l.uses[i].Call.spec.Op == op {
			t.touch(l.uses[i])
			return
		}
	}
}

func (t *Tree) touch(u *Use) {
	if l := u.lane; !u.touched {
		u.touched = true
		l.run.effects = true
		l.eff = l.eff.push(u.Call)
		t.unanswered.count(u.Call)
	}
}

// keyOf returns the key of a call that the lane makes, of which it made occ equal
// ones before.
func (t *Tree) keyOf(l *Lane, s *CallSpec, occ int) key {
	k := key{lane: l.id, op: s.Op, occ: occ, variant: s.Variant, eff: l.eff}
	if s.Once {
		k = key{lane: onceLane, op: s.Op}
	}
	return k
}

// lookup finds the call in the record, or returns the key under which to enter it.
//
// The key has the effects that preceded the call, since a read after an effect must not be answered
// by one from before it. A call that the run which turns out right is known to make is found
// without that, by its place alone: each run has to come to it, and what preceded it has happened.
// To make it anew would be a second effect, or a read of a later moment.
func (t *Tree) lookup(l *Lane, k key, s *CallSpec) (*Call, key) {
	r := l.run
	if s.Local {
		return nil, k
	}
	if s.Effect != None {
		if c := t.sent.find(k); c != nil && !r.made(c) {
			return c, k
		}
		if c := t.undecidedAt(k); c != nil && c.key.variant == k.variant && !r.made(c) {
			return c, k
		}
		if c := t.counterpart(l, k, s.Effect); c != nil {
			return c, k
		}
	}
	var c *Call
	if s.Ordered && !s.Once {
		c, k = t.findOrdered(l, k)
	} else {
		c = t.record.find(k)
	}
	if r.ID == 1 {
		return c, k
	}
	if s.Effect == None {
		if led := t.ledHere(l, k, c); led != nil {
			return led, k
		}
		if c != nil && t.endedElsewhere(l, c) {
			c = nil
		}
	}
	if c != nil && (!t.gaveUp() || c.Confirmed() && t.onPathOf(l, c, t.Behind(r))) {
		return c, k
	}
	right := t.sureAt(l, k)
	switch {
	case right == nil && c == nil && s.Effect == None:
		c = t.counterpart(l, k, None)
	case right == nil:
	case right.key.variant != k.variant && s.Effect == None: // it may be that of another goroutine, which shares the lane
	default:
		return right, k
	}
	return c, k
}

// answerUse gives a fresh use its answer, if there is one that it may have: the actual result; what
// the run was started to assume; or the first prediction that is offered, beside which siblings try
// the others. A doubter (noGuess) waits.
func (t *Tree) answerUse(u *Use) {
	c, r := u.Call, u.Run
	if c.answered {
		u.answer = c.result
		return
	}
	if idx, ok := r.chosen(c); ok {
		if idx != noGuess {
			t.assume(u, idx)
		}
		return
	}
	first := c.offered(0)
	if first == c.predictions || !t.maySpeculate(u) {
		return
	}
	t.assume(u, first)
	if !c.spec.Local {
		for i := c.offered(first + 1); i < c.predictions; i = c.offered(i + 1) {
			t.fork(r, c, i)
		}
	}
}

// maySpeculate reports whether the run may take a prediction for its call. A run that is pinned may
// not: it is at a barrier or past one, where nothing may stand on a guess.
func (t *Tree) maySpeculate(u *Use) bool {
	r, c := u.Run, u.Call
	switch {
	case c.spec.Local:
		if _, wrong := t.seldom().refuted[c.localKey()]; wrong {
			return false
		}
	case c.spec.Effect != None && !c.irrevocable() && u.overdue() != nil, t.hasty(c):
		return false // the code must not go on to make the missing call itself
	}
	return t.cfg.Replayable && !t.frozen && !r.plain && !r.pinned && !c.spec.NoPrediction && !c.spec.Once &&
		t.within(r)
}

// localKey is where a local call is made, whatever effects preceded it: a prediction that was wrong
// once is not worth another try.
func (c *Call) localKey() key {
	k := c.key
	k.eff = nil
	return k
}

func (t *Tree) attach(u *Use) {
	c := u.Call
	if len(c.uses) == 0 && c.orphanedAt > 0 {
		t.unorphan(c)
	}
	u.at, u.index = int32(len(c.uses)), len(u.Run.uses)
	c.uses = append(orBuffer(c.uses, c.oneUse[:0]), u)
	u.Run.uses = append(orBuffer(u.Run.uses, u.Run.fewUses[:0]), u)
	u.lane.uses = append(orBuffer(u.lane.uses, u.lane.fewUses[:0]), u)
	if c.spec.Local {
		u.lane.locals++
	}
	if c.irrevocable() {
		u.consume(1)
	}
	if n := len(u.lane.uses); n > opsScan {
		u.lane.count(n)
	}
}

// orBuffer returns the list, or the buffer that its owner holds for a short one.
func orBuffer(list, buffer []*Use) []*Use {
	if list == nil {
		return buffer
	}
	return list
}

func (c *Call) useOf(r *Run) *Use {
	for _, u := range c.uses {
		if u.Run == r {
			return u
		}
	}
	return nil
}

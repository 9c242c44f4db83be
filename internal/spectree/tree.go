package spectree

// The engine tells the tree what happened by calling a method, and then takes the actions that
// follow. Say the first run makes a read for which there is one prediction. The use has answer 0,
// and the action is Send. If the answer turns out to be that prediction, the run goes on, and is
// Final when it has returned. If not, DiscardRun and StartRun follow, and run 2 gets the actual
// answer.
//
// Final is not yet the end. The task's caller may itself be speculative, say on a guess at another
// server. Only once the caller is confirmed too does Commit follow, and until then no call is
// confirmed to its callee: else effects would stay whose caller had never been right to ask for
// them (plant confirmWithoutCaller).

// Limits bound the speculation of one task. At a limit the task goes on without
// speculating. All fields must be positive.
type Limits struct {
	Depth   int // open assumptions of one run, the caller's included
	Width   int // runs of one task that are alive at once
	Replays int // runs of one task beyond the first, in all
	Runs    int // goroutines of one task that execute at once, discarded ones included
}

// Config describes a task.
type Config struct {
	Limits Limits
	// Depth is how many assumptions the task's caller stands on.
	Depth int
	// CallerOpen says that the task's caller depends on an open assumption.
	CallerOpen bool
	// Replayable says that the task's function may be run again, so that its
	// calls may return predictions.
	Replayable bool
}

// Caller is what is known of the task's caller.
type Caller uint8

// The states of a task's caller.
const (
	CallerOpen Caller = iota
	CallerConfirmed
	CallerRefuted
)

// Kind says what an Action asks for.
type Kind uint8

// The kinds of actions. The comments name the fields that are set.
const (
	StartRun   Kind = iota // Run, Call (the one that it doubts, if any): execute the function from the top
	DiscardRun             // Run, Call (the call that refuted it, if any): it computed on a wrong guess
	Resume                 // Use: its Answer is no longer Waiting
	Send                   // Call, Use, Speculative: start an attempt on account of the use, or let a held one go on
	Hold                   // Call: not sent yet; for reports only
	Adopt                  // Call, Run: a new run uses a call that another one made; for reports only
	Confirm                // Call, Use: its caller's assumptions held
	Abandon                // Call: nobody wants it any more
	Settle                 // Call: it is answered and its caller confirmed, so that others may learn its result
	Release                // Lane: its barrier is passed
	Firm                   // Run: fewer of its own guesses are open, see Tree.Firm
	Offer                  // Run: it returned, but stands on guesses of its own
	Final                  // Run: it returned and none of its own guesses is open
	Commit                 // Run: it is Final and the task's caller is confirmed
	Diverge                // Run, Call (if any): the function is not deterministic
)

// Action is one thing that the engine must do, in order.
type Action struct {
	Kind        Kind
	Speculative bool
	Run         *Run
	Call        *Call
	Use         *Use
	Lane        *Lane
}

// Reason returns why a call is held.
func (a *Action) Reason() string { return a.Call.hold }

// Tree is the state of one task. The zero value is not usable; see New and Init.
type Tree struct {
	cfg Config
	out []Action
	few [3]Action // what out begins with

	caller    Caller
	ambiguous bool // calls overlapped in one lane: which was which is uncertain, in all runs
	doubtful  bool // see reconcile
	limited   Limited
	frozen    bool  // takes no predictions any more
	late      bool  // the task's context has ended
	over      bool  // committed, refuted or diverged: nothing happens any more
	rekey     bool  // the record does not know of the last of the lanes that goroutines share
	now       int32 // how many sendings and answers there were
	shares    int32 // how many lanes goroutines share

	runs     []*Run // alive
	fewRuns  [1]*Run
	started  int // runs started so far; the newest run's ID
	running  int // runs whose goroutine has not ended
	calls    int // calls made so far; the newest call's ID
	final    *Run
	walks    int             // walks over chains so far
	dropped  map[key][]drop  // places of calls that a run gave up, see Drop
	skipped  map[key][]skips // by lane and operation: calls that a run did not make, see Skip
	early    []*Call         // see release
	hurried  []*Use          // that are overtaken, see Hurry
	released []*Call         // see supersede
	freed    []*Call         // to be evaluated by reconcile
	extra    int             // runs that were started whatever the limits: see GoOn, Doubt

	record record
	// The first run and call are here to save allocations.
	first     Run
	firstCall Call
	sent      irrevocables
	// unanswered are the calls that others may have to wait for.
	unanswered tally
	orphans    []*Call // calls without a use, still adoptable
	// waitCaller holds the calls that the caller's confirmation may move.
	waitCaller []*Call
	shared     map[string]struct{} // lanes that goroutines share, see share
	rare       *rarities           // nil as long as there is nothing
}

// rarities are what few tasks have.
type rarities struct {
	overlapAt map[string]int   // by lane: after so many calls the first of them was made
	refuted   map[key]struct{} // local calls whose prediction was wrong once
	// lanes in which goroutines that share them start others, and on which guesses that showed
	forkers   map[string][]drop
	sentAhead map[key]*Call // predicated calls, by place
	unknown   bool          // see Unknown
	decided   bool          // a predicated call takes effect, and runs that came by another way are yet to be found
}

// seldom returns the task's rarities, to be read only.
func (t *Tree) seldom() (r rarities) {
	if t.rare != nil {
		r = *t.rare
	}
	return r
}

// note returns the task's rarities.
func (t *Tree) note() *rarities {
	if t.rare == nil {
		t.rare = new(rarities)
	}
	return t.rare
}

// New returns the tree of a task of which nothing has run.
func New(cfg Config) *Tree {
	t := new(Tree)
	t.Init(cfg)
	return t
}

// Init makes t the tree of a task of which nothing has run. t must be zero.
func (t *Tree) Init(cfg Config) {
	t.cfg = cfg
	if !cfg.CallerOpen {
		t.caller = CallerConfirmed
	}
}

// Start starts the first run.
func (t *Tree) Start() *Run { return t.startRun(nil, nil) }

// Take returns the actions since the last Take. The slice is the tree's own
// until the next call of any method.
func (t *Tree) Take() []Action {
	if len(t.freed) > 0 || t.doubtful {
		t.reconcile()
	}
	t.supersede()
	if t.seldom().decided {
		t.rare.decided = false
		t.doubtful = true
		t.reconcile()
	}
	t.endGivenUp()
	t.relieve()
	t.helpHurried()
	out := t.out
	t.out = t.out[:0]
	return out
}

// Caller returns what is known of the task's caller.
func (t *Tree) Caller() Caller { return t.caller }

// Over reports whether the task has ended.
func (t *Tree) Over() bool { return t.over }

// Orphans returns how many calls wait for another run or goroutine: to be
// adopted, or to make what must precede them.
func (t *Tree) Orphans() int { return len(t.orphans) + len(t.early) }

// Replayable reports whether the task's function may be run again.
func (t *Tree) Replayable() bool { return t.cfg.Replayable }

// Budget returns how many more runs the task may start before it stops taking predictions.
func (t *Tree) Budget() int { return max(0, t.cfg.Limits.Replays-t.started) }

// Grant bounds the runs beyond the first to what the caller grants: that many
// if positive, none if negative.
func (t *Tree) Grant(runs int) {
	if runs != 0 {
		t.cfg.Limits.Replays = min(t.cfg.Limits.Replays, max(0, runs))
	}
}

// Freeze has the task take no predictions any more, and reports whether a run
// stands on no guess, so that it can come to its end by itself.
func (t *Tree) Freeze() bool {
	t.frozen = true
	for _, r := range t.runs {
		if !r.Speculative() {
			return true
		}
	}
	return false
}

// ContextEnded tells that the task's context has ended: what plain code would have made before is
// in the record.
func (t *Tree) ContextEnded() {
	t.late = true
	if t.unsettled() != nil { // for which a run that returned may have waited
		t.doubtful = true
		t.reconcile()
	}
}

// ConfirmCaller tells that the caller's assumptions held.
func (t *Tree) ConfirmCaller() {
	if t.over || t.caller != CallerOpen {
		return
	}
	t.caller = CallerConfirmed
	wait := t.waitCaller
	t.waitCaller = nil
	for _, c := range wait {
		t.evaluate(c)
	}
	t.reconcile()
	for _, r := range t.runs {
		t.releaseBarriers(r)
	}
	if t.final != nil && !t.over {
		t.commit()
	}
}

// RefuteCaller tells that the caller was wrong, gave up or is lost.
func (t *Tree) RefuteCaller() {
	if t.over || t.caller == CallerRefuted {
		return
	}
	t.caller = CallerRefuted
	t.End()
}

// End ends the task without a result: all runs are discarded, all calls abandoned.
func (t *Tree) End() {
	if t.over {
		return
	}
	t.noteUnknown()
	t.over = true
	for len(t.runs) > 0 {
		t.discard(t.runs[len(t.runs)-1], nil)
	}
	t.abandonRest()
}

// abandonRest lets go of every call that is not settled.
func (t *Tree) abandonRest() {
	for _, c := range t.record.all {
		if !c.settled && !c.dead {
			c.dead = true
			t.emitCall(Abandon, c)
		}
	}
	t.orphans = nil
}

// Awaited returns a call that a live run made and that is not answered, the first
// of the oldest run's, or nil.
func (t *Tree) Awaited() *Call {
	for _, r := range t.runs {
		for _, u := range r.uses {
			if !u.Call.answered && !u.Call.spec.Local {
				return u.Call
			}
		}
	}
	return nil
}

func (t *Tree) commit() {
	t.noteUnknown()
	t.over = true
	for _, c := range t.final.uses {
		t.evaluate(c.Call)
	}
	t.emitRun(Commit, t.final, nil)
	t.abandonRest()
}

func (t *Tree) diverge(r *Run, c *Call) {
	if t.over {
		return
	}
	t.emitRun(Diverge, r, c)
	t.End()
}

// emit appends an action and returns it to be filled in.
func (t *Tree) emit(k Kind) *Action {
	if t.out == nil {
		t.out = t.few[:0]
	}
	t.out = append(t.out, Action{})
	a := &t.out[len(t.out)-1]
	a.Kind = k
	return a
}

func (t *Tree) emitCall(k Kind, c *Call) *Action {
	a := t.emit(k)
	a.Call = c
	return a
}

func (t *Tree) emitRun(k Kind, r *Run, c *Call) {
	a := t.emit(k)
	a.Run, a.Call = r, c
}

// Limited says which limits kept a task from speculating.
type Limited uint8

// The limits, each a bit.
const (
	ByDepth Limited = 1 << iota
	ByWidth
	ByReplays
	ByRuns
)

// Limited returns which limits the task has met so far.
func (t *Tree) Limited() Limited { return t.limited }

// within reports whether the run may stand on one more prediction, and notes which limit is met if
// not.
func (t *Tree) within(r *Run) bool {
	l := &t.cfg.Limits
	switch {
	case r.open+t.cfg.Depth >= l.Depth:
		t.limited |= ByDepth
	case t.started > l.Replays:
		t.limited |= ByReplays
	case t.running > l.Runs:
		t.limited |= ByRuns
	default:
		return true
	}
	return false
}

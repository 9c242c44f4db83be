package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/spectree"
	"github.com/foresay/foresay/internal/usercode"
)

// task is one invocation of a user's function, with its calls and runs. The
// tree decides, under mu; the task obeys. What runs user code or may block is
// put off until mu is released.
type task struct {
	ctx context.Context
	fn  body        // nil until the function is known
	cfg *taskConfig // may be shared
	out sink        // who else learns of results; nil for Do

	shadowOf *shadow            // it is one
	shadow   *task              // it has one; under mu
	words    map[string]*word   // what runs heard of futures, by name; under mu
	request  *control.Request   // that it belongs to, or nil
	control  *control.Control   // whose task it is, or nil
	tracer   control.TaskTracer // that follows it, or nil
	lot      atomic.Uint64
	ledger   ledger
	began    time.Time
	ending   *ending // how ctx ended, once that is noted; under mu

	mu     sync.Mutex
	dog    watchdog
	doubts *doubts // nil until a call is cancellable
	tree   spectree.Tree
	last   *spectree.Run // see forgetAll
	// The first run and call are here to save allocations.
	first     run
	firstCall call
	few       [2]duty
	todo      []duty
	grace     *grace // nil until it is needed
	memos     map[string]*memo
	// choices are the members that combinations of futures chose, by name.
	choices  map[string][]choice
	refusals *refusals // nil until there is one
	rec      *recorder
	newest   atomic.Pointer[control.CallSite] // of the newest call, for settlesWithin
	plain    atomic.Pointer[Attempt]          // the newest without a guess, launched already, for began
	winner   *run
	// err is set before done is closed, if the task ended without a winner.
	err   error         // ended without a winner
	final chan struct{} // closed when the winner is known, or the task ended without one
	// done is closed when the winner is confirmed and its commit hooks may run,
	// or as above. Until then it tells an idle goroutine of Do's that it has work.
	done chan struct{}
	work *Attempt
	// Under mu, as all that follows. shadows says that the task may have a shadow, forgetful
	// that it cannot any more, since it let go of what one would ask for.
	shadowed, shadows, forgetful bool
	told                         bool // whoever asked for a report has it

	launches int32        // of attempts
	asked    atomic.Int32 // whether call sites of its calls take guesses, see habit
	inline   bool         // the first run executes in its caller's goroutine
	ended    bool         // done is closed
	idle     bool         // Do's goroutine waits, or will
	// watched says that cancelled is called if ctx ends. Then one goroutine, that
	// waits with its run's own context, can be woken without that context's help.
	watched bool
	sole    *waiter
}

// body is a task's function, as it is executed.
type body interface {
	run(ctx context.Context) (any, error)
}

// function is a body as the user wrote it: to make one takes no allocation.
type function[T any] func(ctx context.Context) (T, error)

func (f function[T]) run(ctx context.Context) (any, error) { return f(ctx) }

// sink is told of a task's results, in order and without locks held.
type sink interface {
	offer(r *run)
	withdraw(r *run) // what it offered came from a wrong guess
	complete(r *run, err error)
}

type dutyKind uint8

const (
	dutyStart dutyKind = iota
	dutyRun
	dutyEnd
	dutyResolve
	dutyCancel
	dutyLearn
	dutyRollback
	dutyOffer
	dutyWithdraw
	dutyComplete
	dutyJudge
	dutyCast
	dutyUncast
	dutyGiveUp
	dutyOver
	dutyArrive
	dutyLook
)

// duty is something to do once mu is released.
type duty struct {
	kind dutyKind
	yes  bool
	of   any // a *run, *Attempt, *call, *Control, *CallSite, *task, *belated or *arrival, by kind
	// resolver is the attempt's when the duty arose: the attempt may have given
	// its stream up since.
	resolver func(confirmed bool)
}

// newTask returns a task that has its context's defaults and is to be
// configured, and then set up.
func newTask(ctx context.Context, fn body) *task {
	c, r := control.Of(ctx)
	return &task{ctx: ctx, fn: fn, cfg: defaults(ctx), control: c, request: r, done: make(chan struct{}, 1)}
}

// setUp readies a configured task.
func (t *task) setUp(tree spectree.Config) {
	t.began = time.Now()
	tree.Limits = treeLimits(t.cfg.limits)
	t.tree.Init(tree)
	t.todo = t.few[:0]
	t.open()
	if t.cfg.report != nil || t.cfg.logger != nil || t.ledger.kept || t.tracer != nil {
		t.rec = newRecorder(t.cfg, t.name())
	}
}

// start begins the first run.
func (t *task) start() {
	t.mu.Lock()
	t.tree.Start()
	t.unlock()
}

// unlock obeys what the tree decided, releases mu and does the duties.
func (t *task) unlock() {
	for {
		acts := t.tree.Take()
		if len(acts) == 0 {
			break
		}
		for i := range acts {
			t.obey(&acts[i])
		}
	}
	t.seeHeldUp()
	t.seeKnown()
	t.watchOrphans()
	t.checkProgress()
	t.forgetAll()
	var few [4]duty
	todo := append(few[:0], t.todo...)
	clear(t.todo)
	t.todo = t.todo[:0]
	t.mu.Unlock()
	for _, d := range todo {
		t.do(d)
	}
}

// obey carries out an action, under mu.
func (t *task) obey(a *spectree.Action) {
	if t.rec != nil {
		t.rec.record(a)
	}
	switch a.Kind {
	case spectree.StartRun:
		r := newRun(t, a.Run)
		if t.inline {
			t.inline = false
			return
		}
		t.todo = append(t.todo, duty{kind: dutyRun, of: r})
	case spectree.DiscardRun:
		r := a.Run.Data.(*run)
		t.todo = append(t.todo, duty{kind: dutyEnd, of: r})
		r.behind()
		r.leave()
		if a.Call != nil {
			r.refuter = a.Call.Data.(*call).op.CallSite
			r.refuter.Engine().Counts().Misled.Add(1)
		}
		if t.sole != nil && t.sole.run == r {
			t.interrupt()
		}
		if t.out != nil && r.tree.Offered() {
			t.todo = append(t.todo, duty{kind: dutyWithdraw, of: r})
		}
		if r.rare != nil && len(r.rare.rollback) > 0 {
			t.todo = append(t.todo, duty{kind: dutyRollback, of: r})
		}
	case spectree.Resume:
		w := a.Use.Data.(*waiter)
		close(w.ready)
		if t.sole == w {
			t.sole = nil
		}
	case spectree.Send:
		t.send(a.Call.Data.(*call), a.Use, a.Speculative)
	case spectree.Hold:
		t.isHeld(a.Call)
	case spectree.Adopt:
		a.Call.Data.(*call).op.CallSite.Engine().Counts().Adopted.Add(1)
	case spectree.Confirm:
		c := a.Call.Data.(*call)
		c.limit = limitOf(a.Use)
		t.resolve(c, true)
	case spectree.Abandon:
		t.abandon(a.Call.Data.(*call))
	case spectree.Settle:
		t.settle(a.Call.Data.(*call))
	case spectree.Release:
		a.Lane.Data.(*lane).pass()
	case spectree.Offer:
		if t.out != nil {
			t.todo = append(t.todo, duty{kind: dutyOffer, of: a.Run.Data.(*run)})
		}
	case spectree.Final:
		t.winner = a.Run.Data.(*run)
		t.ledger.settled = momentOf(t.clock())
		if t.final != nil {
			close(t.final)
		}
	case spectree.Firm:
		t.todo = append(t.todo, duty{kind: dutyGiveUp, of: a.Run.Data.(*run)})
	case spectree.Commit:
		t.finish()
	case spectree.Diverge:
		t.fail(t.diverged(a.Call))
	}
}

// do carries out a duty, without mu.
func (t *task) do(d duty) {
	switch d.kind {
	case dutyStart:
		d.of.(*Attempt).start()
	case dutyRun:
		go d.of.(*run).executeAlone()
	case dutyEnd:
		d.of.(*run).ctx.cancel(ErrMisspeculated)
	case dutyResolve:
		d.resolver(d.yes)
	case dutyCancel:
		d.of.(*Attempt).end()
	case dutyLearn:
		d.of.(*call).learn()
	case dutyRollback:
		d.of.(*run).rollBack()
	case dutyOffer:
		t.out.offer(d.of.(*run))
	case dutyWithdraw:
		t.out.withdraw(d.of.(*run))
	case dutyCast:
		t.castNow(d.of.(*call))
	case dutyUncast:
		go d.of.(*task).thrownAway() // whose hooks the task must not wait for
	case dutyJudge:
		d.of.(*control.Control).Engine().Judge()
	case dutyGiveUp:
		d.of.(*run).giveUp()
	case dutyOver:
		d.of.(*belated).end()
	case dutyArrive:
		d.of.(*arrival).completed()
	case dutyLook:
		go t.seeQueue(d.of.(*control.CallSite)) // it gives way, and the task goes on
	case dutyComplete:
		t.out.complete(d.of.(*run), t.err)
	}
}

// contain runs user code that must not take the engine down with it.
func (t *task) contain(what string, f func()) { usercode.Contain(t.cfg.name, t.cfg.logger, what, f) }

// finish ends the task with its winner.
func (t *task) finish() {
	t.stopTimers()
	if t.sole != nil { // code that nobody waits for
		t.interrupt()
	}
	t.winner.leave()
	if t.out != nil {
		t.todo = append(t.todo, duty{kind: dutyComplete, of: t.winner})
	}
	if t.tree.Unknown() {
		t.winner.rarely().unsure = t.outcomeUnknown(t.winner.err)
	}
	t.ended = true
	t.settleRuns()
	t.uncast()
	close(t.done)
}

// fail ends the task without a winner. The tree is over, or is ended next.
func (t *task) fail(err error) {
	if t.err != nil || t.ended {
		return
	}
	t.err = t.outcomeUnknown(err)
	t.stopTimers()
	if t.final != nil && !isClosed(t.final) {
		close(t.final)
	}
	if t.out != nil {
		t.todo = append(t.todo, duty{kind: dutyComplete, of: (*run)(nil)})
	}
	t.ended = true
	t.settleRuns()
	t.uncast()
	close(t.done)
}

func (t *task) stopTimers() {
	if t.grace != nil {
		t.grace.timer.Stop()
	}
	if t.dog.timer != nil {
		t.dog.timer.Stop()
	}
	t.doubts.end()
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// end ends the task with err unless it has a result that stands.
func (t *task) end(err error) {
	t.mu.Lock()
	if !t.tree.Over() {
		t.tree.End()
		t.fail(err)
	}
	t.unlock()
}

// cancelled tells that the task's context ended. A run that stands on no guess
// goes on, as plain code would, and sees its calls fail. If there is none, one starts that
// takes no predictions, see belated; but a caller's guess cannot be settled any more, and
// nobody waits for the end of a task that was abandoned.
func (t *task) cancelled() {
	cut := t.cut()
	t.mu.Lock()
	t.note(cut)
	firm, abandoned := t.tree.Freeze(), errors.Is(cut.cause, ErrAbandoned)
	if !firm && !abandoned && t.shadowOf == nil && !t.tree.Over() && t.tree.Replayable() &&
		t.tree.Caller() == spectree.CallerConfirmed {
		firm = t.tree.GoOn()
	}
	for r := range t.tree.Live() {
		if r, ok := r.Data.(*run); ok { // one that is about to start begins so
			r.follow()
		}
	}
	if t.sole != nil {
		t.interrupt()
	}
	awaited := t.tree.Awaited()
	where, op := t.whereOf(awaited), opOf(awaited)
	t.unlock()
	if !firm {
		t.end(op.ended(cut.error(where)))
	}
}

// name is what the task is called in reports: by its own name, or that of the request that it is
// made for.
func (t *task) name() string {
	if t.cfg.name == "" && t.request != nil {
		return t.request.Engine().Name()
	}
	return t.cfg.name
}

// moment is a point in time as tasks keep it: a third of a time.Time's size, of which a task
// has a dozen. It is of the monotonic clock; 0 is none.
type moment time.Duration

// epoch is what moments count from.
var epoch = time.Now() //tidy:ok nobody changes it

func momentOf(t time.Time) moment {
	if t.IsZero() {
		return 0
	}
	return moment(t.Sub(epoch))
}

func now() moment { return moment(time.Since(epoch)) }

func (m moment) time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return epoch.Add(time.Duration(m))
}

func (m moment) sub(o moment) time.Duration { return time.Duration(m - o) }

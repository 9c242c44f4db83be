package engine

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/spectree"
	"github.com/foresay/foresay/report"
)

// send starts an attempt, or lets a held one go on plainly. Under mu. It is the
// attempt of the use on whose account it is sent: where that is known to be
// right, nothing of a wrong run's, such as its context, is in it.
func (t *task) send(c *call, use *spectree.Use, speculative bool) {
	if use != nil {
		c.limit = limitOf(use)
		if w, ok := use.Data.(*waiter); ok && w.op != nil && c.attempts == 0 {
			c.op, c.ctx, c.apart, c.waiter.deadline = w.op, w.ctx, true, w.deadline
		}
	}
	if a := c.attempt; a != nil && a.held != nil {
		a.speculative = false
		close(a.held)
		a.held = nil
		a.launched, a.answered = now(), 0
		if !c.failed {
			c.plainlyMore = 0
		}
		if !a.timed { // see PlainContext
			a.due = c.due()
		}
		t.underWay(a)
		t.sent(a)
		return
	}
	c.attempts++
	a := &c.first
	if c.attempts > 1 {
		a = new(Attempt)
	}
	a.call, a.number, a.speculative = c, c.attempts, speculative
	c.attempt = a
	if speculative && c.tree.Effect() == spectree.Predicated {
		a.assume()
		t.offerAgain(use)
	} else if speculative && c.tree.Uses() > 0 { // else it is there to be adopted
		if wait := t.settlesWithin(c, use); wait > 0 {
			c.stopped = now() // however often it is postponed
			t.postpone(a, wait)
			if t.rec != nil {
				t.rec.held(c.tree, aboutToSettle)
			}
			return
		}
	}
	t.launch(a, use)
}

// launch starts an attempt, on account of a use if that is known. Under mu.
func (t *task) launch(a *Attempt, use *spectree.Use) {
	c := a.call
	t.sent(a)
	a.want = !a.speculative && c.op.config().ServerPredictions && a.MayPredict() &&
		c.op.CallSite.Engine().Offers().Wanted()
	a.depth = int32(c.tree.Depth())
	a.launched = now()
	if x, ok := c.op.Transport.(*act); ok {
		x.begun = true
	}
	t.launches++
	if !c.phantom {
		c.op.CallSite.Engine().Counts().Sent.Add(1)
	}
	if !a.speculative {
		a.due = c.due()
		t.plain.Store(a)
	}
	if !a.speculative || c.tree.Effect() == spectree.Predicated { // it has an answer, or is refused, by itself
		t.underWay(a)
	}
	_, a.blocking = c.op.Transport.(BlockingTransport)
	carried := a.blocking && t.idle && !a.speculative && !c.apart
	// The transport's interceptors may make calls of their own: not the run's.
	a.outside.ctx = c.ctx
	if carried { // nobody else watches the task's context meanwhile
		a.outside.ends = t
		a.needed = c.needed(use)
	}
	base := context.Context(&a.outside)
	if t.tracer != nil {
		var run report.Run
		on := 0
		if u := c.tree.First(); u != nil {
			run = t.rec.runs[u.Run.ID-1]
			if b := u.Blocker(); b != nil {
				on = t.rec.call(b).ID
			}
		}
		t.contain("tracer", func() {
			if traced := t.tracer.Attempt(base, *t.rec.call(c.tree), run, on, a.speculative); traced != nil {
				base = traced
			}
		})
	}
	if c.looks == nil && !ofRun(c.ctx) { // what the tracer looks up does not count
		c.recordLookups()
	}
	a.outside.looks = c.looks
	a.ctx, a.timed = base, c.waiter.deadline != 0 && !a.speculative
	if carried {
		t.idle = false
		t.work = a
		t.done <- struct{}{} // has room: there is one idle goroutine
		return
	}
	if a.queued() {
		c.op.Domain.enqueue(a)
	}
	t.todo = append(t.todo, duty{kind: dutyStart, of: a})
}

// sent notes that an attempt is made. Under mu.
func (t *task) sent(a *Attempt) {
	if !a.call.phantom {
		t.ledger.sent++
		if t.shadowOf != nil {
			t.ledger.waited += time.Since(t.shadowOf.began)
		}
	}
	if t.rec != nil {
		t.rec.sent(a.call.tree, a.speculative)
	}
}

// start begins an attempt in a goroutine that may wait for its end.
func (a *Attempt) start() {
	switch {
	case a.blocking:
		go a.carry()
	case a.queued():
		a.call.op.Domain.start()
	default:
		a.begin()
	}
}

// carry is start in a goroutine of its own.
func (a *Attempt) carry() {
	growStackALittle(int(a.number) & 1)
	a.begin()
}

// resolve tells the call's attempt whether its caller was right. Under mu.
func (t *task) resolve(c *call, yes bool) {
	a := c.attempt
	if a == nil || a.resolved {
		return
	}
	if a.impatient() {
		// Nothing was sent on the guess; now there is none.
		a.speculative = false
		t.launch(a, nil)
		return
	}
	a.resolved, a.verdict = true, yes
	if yes {
		a.due = c.due()
		t.underWay(a)
	}
	if a.resolver != nil {
		t.todo = append(t.todo, duty{kind: dutyResolve, resolver: a.resolver, yes: yes})
	}
}

// abandon lets go of a call that nobody wants. Under mu.
func (t *task) abandon(c *call) {
	c.abandoned = true
	c.returnPermit()
	a := c.attempt
	if a == nil {
		return
	}
	t.notUnderWay(a)
	if a.impatient() { // it was never sent
		a.finished = true
		return
	}
	if !c.phantom {
		c.op.CallSite.Engine().Counts().Abandoned.Add(1)
		if a.held == nil { // what was refused ran nowhere
			t.waste(c)
		}
	}
	if a.held != nil {
		close(a.held)
		a.held = nil
	}
	if a.resolver != nil && !a.resolved {
		t.resolve(c, false)
		return
	}
	if a.finished {
		return
	}
	a.resolved = true
	t.todo = append(t.todo, duty{kind: dutyCancel, of: a})
}

// Attempt is one try at carrying out a call, as its transport sees it. Its
// methods are safe for concurrent use.
type Attempt struct {
	call   *call
	ctx    context.Context
	cancel context.CancelFunc
	// outside is what ctx is derived from.
	outside outside
	number  int32
	depth   int32

	// Under the task's mu.
	patient     *time.Timer // has not been launched yet, see settlesWithin
	launched    moment
	answered    moment    // see Tentative
	due         time.Time // when the code's own time limit is over
	resolver    func(confirmed bool)
	assumed     *assumptions // on which a predicated call was sent
	held        chan struct{}
	speculative bool
	resolved    bool
	verdict     bool
	finished    bool
	counted     bool // see task.underWay
	cut         bool // the code cancelled it
	timed       bool // its context has a deadline
	unwanted    bool // its context is to end, or has
	limited     bool // its transport knows the task's deadline, see Timeout

	// Set before it begins, but for offered.
	blocking bool
	needed   bool        // its context has no end of its own, see call.needed
	want     bool        // see WantPredictions
	offered  atomic.Bool // the server predicted
}

// endsWith reports whether the attempt comes to its end when the task's context ends like
// that. One that was sent on a guess has no deadline in its context. Under mu.
func (a *Attempt) endsWith(end *ending) bool {
	return end.err == context.Canceled || a.timed || a.limited || a.outside.ends != nil
}

// ID returns 16 random bytes that name the attempt.
func (a *Attempt) ID() (id [16]byte) {
	_, _ = rand.Read(id[:]) // crypto/rand.Read never fails
	return id
}

// Operation returns what is attempted.
func (a *Attempt) Operation() *Operation { return a.call.op }

// Number counts the call's attempts from 1.
func (a *Attempt) Number() int { return int(a.number) }

// Depth returns how many open assumptions the caller stands on.
func (a *Attempt) Depth() int { return int(a.depth) }

// Budget returns how many runs the callee may start beyond its first: what the
// task has left of Limits.Replays, less one that it keeps for itself, for its own
// guess may be wrong too. So the budget shrinks from hop to hop, and runs out in
// calls that go in circles.
func (a *Attempt) Budget() int {
	a.call.task.mu.Lock()
	defer a.call.task.mu.Unlock()
	return a.call.task.tree.Budget()
}

// TaskBegan returns when the task sent its first call. Where calls queue, those of
// older tasks should go first.
func (a *Attempt) TaskBegan() time.Time {
	t := a.call.task
	t.mu.Lock()
	defer t.mu.Unlock()
	if first := t.firstCall.first.launched; first != 0 {
		return first.time()
	}
	return a.launched.time()
}

// TaskCalls returns how often the task has sent a call so far, repeated ones included.
func (a *Attempt) TaskCalls() int {
	t := a.call.task
	t.mu.Lock()
	defer t.mu.Unlock()
	return int(t.launches)
}

// Speculative reports whether the caller stands on an open assumption. It is
// false from the moment that Hold returned nil.
func (a *Attempt) Speculative() bool {
	a.call.task.mu.Lock()
	defer a.call.task.mu.Unlock()
	return a.speculative
}

// MayPredict reports whether runs would go on with a prediction of the call that
// comes before its actual result.
func (a *Attempt) MayPredict() bool {
	return a.call.op.CanSpeculate && !a.call.op.Observed && a.call.mode == control.ModeOn && a.call.task.tree.Replayable()
}

// WantPredictions reports whether the server's predictions are wanted although
// the caller stands on no assumption.
func (a *Attempt) WantPredictions() bool { return a.want }

// Timeout returns what the task's deadline leaves for a speculative attempt, 0
// for no deadline. A transport that asks for it ends the attempt by itself then.
func (a *Attempt) Timeout() time.Duration {
	t := a.call.task
	t.mu.Lock()
	a.limited = true
	t.mu.Unlock()
	if d, ok := t.ctx.Deadline(); ok {
		return max(time.Until(d), time.Millisecond)
	}
	return 0
}

// Limit returns the time limit that the code set for the call itself, 0 for
// none. For a speculative attempt it begins when the caller is confirmed: run
// without speculation, the code would have made the call only then.
// It is that of the run that is right from then on.
func (a *Attempt) Limit() time.Duration {
	a.call.task.mu.Lock()
	defer a.call.task.mu.Unlock()
	return a.call.limit
}

// Sent tells that the request has left: what is looked up in the attempt's context
// from now on does not change what was sent. It need not be called: an attempt that
// ended has sent all that it sends.
func (a *Attempt) Sent() { a.call.looks.complete() }

// Predict offers a response that the server predicted. After Finish it does nothing.
func (a *Attempt) Predict(v any) {
	c := a.call
	v, ok := c.op.Transport.Accept(v)
	if !ok {
		c.op.CallSite.Engine().Counts().Invalid.Add(1)
		return
	}
	a.offered.Store(true)
	t := c.task
	var few [4]any // a copy: see letGo
	for {
		t.mu.Lock()
		known, gone := append(few[:0], c.predictions...), c.withdrawn
		t.mu.Unlock()
		if c.indexOf(known, gone, v) >= 0 {
			return
		}
		t.mu.Lock()
		if len(c.predictions) == len(known) {
			break
		}
		t.mu.Unlock()
	}
	if !a.finished && c.attempt == a && !c.abandoned && c.mayOffer() {
		if len(c.predictions) == 0 {
			t.goesOn(c.op.CallSite)
		}
		c.predictions = append(c.predictions, v)
		if t.rec != nil {
			t.rec.predicted(c)
		}
		if ft, ok := c.op.Transport.(*futureTransport); ok {
			domain, effects := ft.f.basis(v).of()
			t.tree.PredictedOn(c.tree, domain, effects)
		} else {
			t.tree.Predicted(c.tree)
		}
	}
	t.unlock()
}

// Tentative offers the answer of a call whose effects its server holds back until
// the caller's word has come: the call takes until now, and what it takes for the
// word to get there and back is no part of it. nil stands for an error, which is no prediction.
func (a *Attempt) Tentative(v any) {
	t := a.call.task
	t.mu.Lock()
	a.answered = momentOf(t.clock())
	t.mu.Unlock()
	if v != nil {
		a.Predict(v)
	}
}

// Withdraw takes back a prediction that nobody offers any more. Runs that stand
// on it are discarded.
func (a *Attempt) Withdraw(v any) {
	c, t := a.call, a.call.task
	var few [4]any
	t.mu.Lock()
	known, gone := append(few[:0], c.predictions...), c.withdrawn
	t.mu.Unlock()
	i := c.indexOf(known, gone, v)
	if i < 0 {
		return
	}
	t.mu.Lock()
	if !a.finished && c.attempt == a && !c.abandoned {
		if t.tree.Withdraw(c.tree, i) {
			c.withdrawn = append(c.withdrawn[:len(c.withdrawn):len(c.withdrawn)], i)
		}
	}
	t.unlock()
}

// OnResolve sets the resolver, in place of an earlier one that has not been called.
// It is called exactly once, perhaps at once: with true when the caller's assumptions held, with
// false when nobody wants the attempt any more. It must not block for long.
func (a *Attempt) OnResolve(f func(confirmed bool)) {
	t := a.call.task
	t.mu.Lock()
	a.resolver = f
	now := a.resolved
	t.mu.Unlock()
	if now {
		f(a.verdict)
	}
}

// Begin tells that the attempt begins only now: it had to wait for its turn.
func (a *Attempt) Begin() {
	a.call.task.mu.Lock()
	defer a.call.task.mu.Unlock()
	a.launched = now()
}

// Hold tells that nothing ran at the server, or that a call without side
// effects was lost. It returns nil when the call may be made plainly, and
// ErrMisspeculated when nobody wants it any more.
func (a *Attempt) Hold(reason string) error {
	c, t := a.call, a.call.task
	t.mu.Lock()
	if c.abandoned || t.tree.Over() || c.attempt != a {
		t.mu.Unlock()
		return ErrMisspeculated
	}
	c.op.CallSite.Engine().Counts().Refused.Add(1)
	if t.shadowOf != nil { // it was not sent after all
		t.ledger.sent--
		t.ledger.waited -= a.launched.time().Sub(t.shadowOf.began)
	}
	t.notUnderWay(a)
	held := make(chan struct{})
	a.held = held
	a.resolver, a.resolved = nil, false
	t.tree.Refused(c.tree, reason)
	t.unlock()
	<-held
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.abandoned {
		return ErrMisspeculated
	}
	return nil
}

// Finish gives the actual result, exactly once.
func (a *Attempt) Finish(v any, err error) {
	if t := a.call.task; err != nil && t.watched && t.overdue() {
		a.finishLater(v, err)
		return
	}
	a.finish(v, err)
}

func (a *Attempt) finish(v any, err error) {
	c, t := a.call, a.call.task
	if err != nil && t.watched && t.ctx.Err() != nil {
		t.cancelled() // which may be why: the task must know it first
	}
	var few [4]any
	for {
		t.mu.Lock()
		known, gone := append(few[:0], c.predictions...), c.withdrawn
		stale := c.attempt != a || a.finished || c.abandoned
		t.mu.Unlock()
		match := spectree.Actual
		if err == nil && !stale {
			match = c.match(known, gone, v)
		}
		guess := c.guess
		if guess != nil && !stale {
			compared := *guess // nobody changes it before the call has its result
			compared.compare(&a.outside, c.op, v, err)
			guess = &compared
		}
		t.mu.Lock()
		if len(c.predictions) != len(known) || len(c.withdrawn) != len(gone) {
			t.mu.Unlock()
			continue
		}
		if c.attempt == a && !a.finished {
			t.notUnderWay(a)
			a.finished, c.late = true, err != nil && t.ending != nil
			a.assumed = nil // which would keep all that it stood on, and so on
			c.value, c.err, c.finished = v, err, now()
			if c.ended = a.ended(err); c.ended != nil {
				t.tree.Ended(c.tree)
			}
			if c.op.Domain != nil && (c.ended != nil || c.late) { // its server may carry it out all the same
				t.tree.Unsure(c.tree)
			}
			c.looks.complete()
			c.guess = guess
			c.told()
			c.returnPermit()
			if err == nil {
				c.op.CallSite.Engine().Quickest().Took(a.launched.time(), c.finished.time())
				if a.want {
					c.op.CallSite.Engine().Offers().Heard(a.offered.Load())
				}
			}
			if t.rec != nil {
				t.rec.answered(c, match)
			}
			t.tree.Answered(c.tree, match)
		}
		release := a.resolver == nil && a.cancel != nil
		t.unlock()
		if release {
			a.cancel()
		}
		return
	}
}

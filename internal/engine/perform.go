package engine

import (
	"context"
	"errors"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/spectree"
	"github.com/foresay/foresay/internal/usercode"
)

// Perform makes a call as a transport describes it, for the run that ctx
// belongs to: it returns a predicted response at once if there is one, and the
// actual result otherwise. The value is shared by runs and must not be changed.
// Without a run in ctx it panics: see InTask. The error is the transport's own,
// ErrMisspeculated, ErrDiverged, or an error that wraps ctx's if ctx ended while
// the code waited.
func Perform(ctx context.Context, op *Operation) (any, error) {
	l := laneOf(ctx)
	if l == nil {
		panic("foresay: Perform needs a context of a task")
	}
	t := l.run.task
	spec, q := t.describe(l, op)
	if ctx.Err() != nil && l.run.ctx.Err() == nil {
		if err := t.comesLate(ctx, l, op, &spec); err != nil {
			return nil, err
		}
	}
	var f found
	for again := l.run.tree.ID > 1; ; again = true {
		if again { // the first run mostly finds nothing
			f = t.identify(ctx, l, op, &spec)
		}
		if !f.sent {
			t.ask(ctx, op, &q)
		}
		q.asked.note(l.outlasting(ctx), t, l)
		v, err := t.make(ctx, l, op, &spec, q, &f)
		if err != errUnprepared {
			return v, err
		}
	}
}

// quest is what is guessed about a call before it is made.
type quest struct {
	mode        control.Mode
	kept        bool     // the operation is the transport's own
	guessed     bool     // whoever guesses has been asked, or is not to be
	predictions []any    // to go on with
	guess       guessing // to compare with
	asked       askedAt
}

// askedAt is when the code asked for a call, and what its time limit left then: before waits that
// plain code has not.
type askedAt struct {
	known           bool
	apart           bool      // its context may not end when the run's does
	began, at       time.Time // the first if somebody counts, for the other one see lane.asks
	limit, deadline time.Duration
}

// waiter is a run's part in a call: what it waits with, and the arguments for the call, used if
// this run is the first to make it.
type waiter struct {
	ready chan struct{}
	run   *run // if it is the task's sole
	op    *Operation
	ctx   context.Context
	limit time.Duration
	// deadline is ctx's, since the task began; 0 for none. That of the waiter of the call's
	// maker is the call's.
	deadline time.Duration
	lane     *lane
	began    moment // when the code asked, if somebody counts
	asked    moment // the same, see lane.asks
}

// describe describes the call to the tree, and says what is to be done about predictions of it.
func (t *task) describe(l *lane, op *Operation) (spectree.CallSpec, quest) {
	site := op.CallSite.Engine()
	deep := op.config().Limits.Depth > 0 && tooDeep(&op.config().Limits, t.depth(l))
	switch {
	case !site.Guesses():
	case site.Tries():
		t.asked.CompareAndSwap(noGuesses, triedGuesses)
	default:
		t.asked.Store(takesGuesses)
	}
	mode := site.Decide(t.request, t.luck)
	if t.shadowOf != nil && mode == control.ModeShadow {
		mode = control.ModeOn
	}
	spec := spectree.CallSpec{
		Op: op.key(), Effect: op.class(), Conflict: op.conflict(), Domain: op.Domain.of(),
		Ordered: op.config().Ordered, NoPrediction: deep || op.Observed || mode != control.ModeOn,
		NoSpeculation: deep || op.Observed || !op.CanSpeculate,
	}
	if t.shadowOf != nil && spec.Effect != spectree.None {
		spec.NoSpeculation = true // what a server stages for it would be in the way of others
	}
	if deep {
		t.mu.Lock()
		t.limitedBy(op.CallSite, control.LimitCallSiteDepth)
		t.mu.Unlock()
	}
	return spec, quest{mode: mode, guessed: deep}
}

// class maps the call site's effect class to the tree's.
func (op *Operation) class() spectree.Effect {
	switch op.config().Effect {
	case control.EffectNone:
		return spectree.None
	case control.EffectStaged:
		return spectree.Staged
	case control.EffectPredicated:
		if op.Domain == nil { // whose server could not check anything
			return spectree.Immediate
		}
		return spectree.Predicated
	default:
		return spectree.Immediate
	}
}

func (op *Operation) conflict() string {
	key := ""
	if f := op.config().ConflictKey; f != nil {
		usercode.Contain(op.config().Name, nil, "conflict key", func() { key = f(op.Request) })
	}
	return key
}

// depth returns on how many open assumptions the lane's run stands.
func (t *task) depth(l *lane) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return l.tree.Depth()
}

// comesLate deals with a call whose code's context has ended, and the run's has not. It returns an
// error if the call is not made.
func (t *task) comesLate(ctx context.Context, l *lane, op *Operation, spec *spectree.CallSpec) error {
	if t.endsPlainly(ctx, l) {
		if err := l.outwait(ctx); err != nil {
			return err
		}
		if err := l.outrun(ctx); err != nil {
			return err
		}
		if !t.late(ctx, l, spec) {
			return contextError(ctx, t.where(op, 0))
		}
	}
	spec.NoPrediction = true
	return nil
}

// late reports whether the call is made although its code's context ended.
func (t *task) late(ctx context.Context, l *lane, s *spectree.CallSpec) bool {
	if givenUp(ctx) {
		return s.Effect != spectree.None
	}
	t.mu.Lock()
	defer t.unlock()
	return t.tree.Late(l.tree, s)
}

// ask has the transport make the operation its own, and the code and the call site's predictors
// guess, as the mode wants it; each once, and not deeper in the stack: both run code of the user's
// messages.
func (t *task) ask(ctx context.Context, op *Operation, q *quest) {
	if k, ok := op.Transport.(Keeper); ok && !q.kept {
		q.kept = true
		k.Keep()
	}
	if q.guessed {
		return
	}
	q.guessed = true
	switch {
	case op.Observed || q.mode == control.ModeOff:
	case q.mode == control.ModeOn && t.tree.Replayable():
		q.predictions = op.collect(ctx)
		if len(q.predictions) > 0 {
			t.goesOn(op.CallSite)
		}
	case op.CallSite.Engine().Samples():
		q.guess = op.guess(ctx)
	}
}

// goesOn notes that a call has predictions to go on with. Of a shadow nothing is
// judged.
func (t *task) goesOn(s *control.CallSite) {
	if t.shadowOf != nil {
		return
	}
	s.Engine().GoesOn(t.request)
}

// errUnprepared says that the record changed since somebody looked for the call.
var errUnprepared = errors.New("foresay: the record of calls changed")

// make makes the call and waits for its answer. If it would use another call than
// was found, it returns errUnprepared; f is nil for a call that its Op tells whole.
func (t *task) make(
	ctx context.Context, l *lane, op *Operation, spec *spectree.CallSpec, q quest, f *found,
) (any, error) {
	if l.givenUp() && spec.Effect == spectree.None {
		return nil, unneeded(t.where(op, 0))
	}
	ctx = l.outlasting(ctx)
	if t.shadowOf != nil {
		if v, err, done := t.foresee(ctx, l, &op, spec, &q); done {
			return v, err
		}
	}
	q.asked.note(ctx, t, l)
	if err := t.enter(ctx, l, op, spec); err != nil {
		return nil, err
	}
	if f != nil && (f.sent && !t.tree.Recorded(l.tree, spec) || !t.tree.Alone() && !t.stillFound(ctx, l, spec, f)) {
		t.mu.Unlock()
		return nil, errUnprepared
	}
	u, c, w := t.place(ctx, l, op, spec, &q)
	if u == nil {
		t.unlock()
		return nil, ErrDiverged
	}
	v, err := t.answer(ctx, l, c, u, w, &q.asked)
	return t.agree(ctx, l, c, v, err)
}

// note records the time, once: looking the call up again is no time that plain code would have
// waited.
func (a *askedAt) note(ctx context.Context, t *task, l *lane) {
	if !a.known {
		limit := t.ownLimit(ctx, l) // which has an effect on asks
		*a = askedAt{true, l.mayCancel(ctx), t.clock(), l.asks(), limit, t.sinceBegan(ctx)}
	}
}

// enter waits until the call may be made. It returns with mu held, or with an error and mu
// released.
func (t *task) enter(ctx context.Context, l *lane, op *Operation, spec *spectree.CallSpec) error {
	ended := ctx.Err() != nil
	t.mu.Lock()
	l.beside()
	for waited := false; ; {
		if err := l.run.check(); err != nil {
			return err
		}
		if !ended && !waited && t.tree.GivesWay(l.tree, spec) {
			waited = true
			ended = t.giveWay(ctx, l)
			continue
		}
		if waited && ended {
			t.tree.Skip(l.tree, spec)
			where := t.where(op, 0)
			t.unlock()
			return contextError(ctx, where)
		}
		if t.ending != nil && !t.inTime(l, spec) {
			if b := l.run.belated(); b != nil {
				ended = t.wait(ctx, l, b)
				continue
			}
			if ended {
				where := t.where(op, 0)
				t.mu.Unlock()
				return op.ended(contextError(ctx, where))
			}
		}
		if !t.tree.MustPin(l.tree, spec) {
			return nil
		}
		if err := t.barrier(ctx, l); err != nil {
			return err
		}
		t.mu.Lock()
	}
}

// place makes the call in the tree. It returns the lane's use of it, the call, which may be one
// that another run made, and what the lane waits with, if it is known; no use if the call diverged,
// and the task with it. Under mu.
func (t *task) place(
	ctx context.Context, l *lane, op *Operation, spec *spectree.CallSpec, q *quest,
) (*spectree.Use, *call, *waiter) {
	permit := len(q.predictions) > 0 && t.takePermit(op.CallSite)
	if permit {
		spec.Predictions = len(q.predictions)
	} else {
		q.predictions = nil
	}
	limit := q.asked.limit
	u := t.tree.Call(l.tree, spec)
	if u.Call == nil {
		if permit {
			op.CallSite.Engine().ReturnPermit()
		}
		return nil, nil, nil
	}
	c, _ := u.Call.Data.(*call)
	if permit && c != nil { // its predictions are counted already
		op.CallSite.Engine().ReturnPermit()
	}
	var w *waiter
	if c == nil {
		c = t.newCall(ctx, limit, u.Call, l, op, q)
		c.permit, c.apart, c.waiter.deadline = permit, q.asked.apart, q.asked.deadline
		if q.mode == control.ModeShadow {
			t.cast(l, c)
		}
	} else if c.attempts == 0 {
		w = &waiter{op: op, ctx: withoutOffers(ctx), limit: limit, deadline: q.asked.deadline}
		u.Data = w
	}
	if w == nil && limit != 0 {
		w = &waiter{limit: limit}
		u.Data = w
	}
	t.used(u, c)
	t.mayWait(u)
	return u, c, w
}

func (t *task) newCall(
	ctx context.Context, limit time.Duration, tc *spectree.Call, l *lane, op *Operation, q *quest,
) *call {
	c := &t.firstCall
	if c.task != nil {
		c = new(call)
	}
	*c = call{task: t, tree: tc, maker: l.run, op: op, mode: q.mode, predictions: q.predictions, guess: q.guess.kept(),
		ctx: withoutOffers(ctx), limit: limit}
	tc.Data = c
	if _, c.phantom = op.Transport.(unanswered); c.phantom {
		return c
	}
	op.CallSite.Engine().Counts().Calls.Add(1)
	if op.CallSite.Engine().Quickest().Least() != 0 {
		t.newest.Store(op.CallSite)
	}
	return c
}

// used notes that a run made a call. Under mu.
func (t *task) used(u *spectree.Use, c *call) {
	if t.rec != nil {
		t.rec.used(u, c)
	}
	r := u.Run.Data.(*run)
	if r.leaving && c.tree.Effect() != spectree.None {
		t.todo = append(t.todo, duty{kind: dutyGiveUp, of: r}) // it may have been waiting for this
	}
	if b := r.belated(); b != nil {
		b.arrived = b.arrived || u.Answer() == spectree.Waiting || c.maker == r
		r.mayEnd(b)
	}
}

// answer returns what a use of the lane goes on with: at once if there is an actual result or a
// prediction to take, and otherwise when there is. It waits in the way that costs least. It is
// called under mu, and releases it.
func (t *task) answer(ctx context.Context, l *lane, c *call, u *spectree.Use, w *waiter, asked *askedAt) (any, error) {
	if u.Answer() != spectree.Waiting {
		return t.take(ctx, l, c, u, asked.began, asked.at)
	}
	if w == nil {
		if w = &c.waiter; w.lane != nil {
			w = new(waiter)
		}
		u.Data = w
	}
	ready := make(chan struct{})
	w.ready, w.lane, w.began, w.asked = ready, l, momentOf(asked.began), momentOf(asked.at)
	// after that, cancelled may be over
	sole := t.watched && t.sole == nil && ctx == context.Context(&l.run.ctx) && t.ending == nil
	if sole {
		t.sole, w.run = w, l.run
	}
	t.unlock()
	if sole { // the context that it waits with need not be made
		<-ready
		t.mu.Lock()
		if u.Answer() != spectree.Waiting {
			return t.take(ctx, w.lane, c, u, w.began.time(), w.asked.time())
		}
		t.mu.Unlock()
	}
	return t.await(ctx, l, c, u, w)
}

// await waits for the answer of a use, or for the end of the code's wish for it.
func (t *task) await(ctx context.Context, l *lane, c *call, u *spectree.Use, w *waiter) (any, error) {
	gone, stop := l.gone(), l.run.ctx.Done()
	for {
		var err error
		select {
		case <-w.ready:
			t.mu.Lock()
			return t.take(ctx, w.lane, c, u, w.began.time(), w.asked.time())
		case <-gone:
			gone = nil
			err = t.letGo(l, c, u)
		case <-ctx.Done():
			err = t.interrupted(ctx, l, c, u, w)
		case <-stop: // ctx need not end with it
			if ctx.Err() == nil && stop == l.run.ctx.Done() {
				stop = l.run.stopped()
				continue
			}
			err = t.interrupted(&l.run.ctx, l, c, u, w)
		}
		if err != nil {
			return nil, err
		}
	}
}

// take returns the answer that a use of the lane goes on with. It is called under mu, and
// releases it.
func (t *task) take(ctx context.Context, l *lane, c *call, u *spectree.Use, began, asked time.Time) (any, error) {
	answer := u.Answer()
	v, err := c.take(u, l, began, asked)
	t.unlock()
	l.wentOn(ctx, c, u, answer)
	return v, err
}

// take returns the answer that a use of the lane goes on with. Under mu.
func (c *call) take(u *spectree.Use, l *lane, began, asked time.Time) (any, error) {
	idx := u.Answer()
	if idx >= 0 {
		c.goesOn(l.run)
	}
	l.account(c, began, idx >= 0 && c.finished == 0)
	l.answered(asked, c.plainly(idx))
	v, err := c.answer(idx)
	u.Take()
	c.forget()
	return v, err
}

// interrupt wakes the sole waiter before there is an answer. Under mu.
func (t *task) interrupt() {
	w := t.sole
	t.sole = nil
	close(w.ready)
	w.ready = make(chan struct{})
}

// interrupted deals with the end of ctx while the code waits. It returns nil
// once there is an answer after all.
func (t *task) interrupted(ctx context.Context, l *lane, c *call, u *spectree.Use, w *waiter) error {
	end := endingOf(ctx)
	unneeded, outlived := end.cause == errNotNeeded, l.run.ctx.Err() == nil
	t.mu.Lock()
	if u.Answer() != spectree.Waiting {
		t.mu.Unlock()
		return nil
	}
	if err := l.run.check(); err != nil {
		return err
	}
	if !unneeded && end.err == context.Canceled && outlived {
		t.tree.Insist(u)
	}
	// The whole run counts: it may be another lane's code that ended ctx, on a
	// guess of its own.
	firm := !l.run.tree.Speculative()
	switch {
	case outlived && (end.err == context.DeadlineExceeded || unneeded && c.tree.Effect() != spectree.None ||
		c.isHeldAct()):
		// The call's attempt has the time limit, from when it is really made on,
		// and its end is the call's result. Without speculation the code might not
		// even have come here yet. An effect that was begun comes to its end. An Act
		// would have begun before the code cancelled it, see endsInTime.
		t.mu.Unlock()
		select {
		case <-w.ready:
			return nil
		case <-l.run.ctx.Done():
			return t.interrupted(&l.run.ctx, l, c, u, w)
		}
	case firm && c.attempt != nil && c.tree.Uses() == 1 && c.attempt.endsWith(end):
		// As in plain code: the attempt ends, and its error is the call's result.
		if end.err == context.Canceled { // a deadline ends it by itself
			c.attempt.cut = !unneeded
			t.todo = append(t.todo, duty{kind: dutyCancel, of: c.attempt})
		}
		over := t.over()
		t.unlock()
		return t.outlast(l, u, w, over)
	case outlived && !unneeded && end.err == context.Canceled && t.tree.Outrun(l.tree):
		t.wasOutrun()
		t.unlock()
		return ErrMisspeculated
	}
	t.tree.Drop(u, unneeded)
	where := t.whereOf(c.tree)
	t.unlock()
	return end.error(where)
}

// isHeldAct reports whether the call is an Act that waits. Under mu.
func (c *call) isHeldAct() bool {
	_, ok := c.op.Transport.(*act)
	return ok && c.attempt == nil
}

// outlast waits for the answer of a use whose attempt ends, or for the task to be over: the
// run may have taken a guess at another goroutine's call since, and then the task ends with
// its context, and nobody takes the answer.
func (t *task) outlast(l *lane, u *spectree.Use, w *waiter, over <-chan struct{}) error {
	select {
	case <-w.ready:
		return nil
	case <-over:
	}
	t.mu.Lock()
	if u.Answer() == spectree.Waiting {
		if err := l.run.check(); err != nil {
			return err
		}
	}
	t.mu.Unlock()
	<-w.ready
	return nil
}

// outlasting returns a context for a call that is made although nobody needs what its
// code computes.
func (l *lane) outlasting(ctx context.Context) context.Context {
	if givenUp(ctx) {
		return &outlasting{ctx, &l.run.ctx}
	}
	return ctx
}

// outlasting is a context that has the end of another one.
type outlasting struct {
	context.Context
	end context.Context
}

func (o *outlasting) Deadline() (time.Time, bool) { return o.end.Deadline() }
func (o *outlasting) Done() <-chan struct{}       { return o.end.Done() }
func (o *outlasting) Err() error                  { return o.end.Err() }

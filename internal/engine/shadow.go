package engine

import (
	"context"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/spectree"
)

// shadow is a task that runs ahead of another one for no one: it takes the
// prediction for which the other waits, and ends when the actual response is in.
// It is a task whose caller is never confirmed. So nothing that it does takes
// effect, and it passes no Barrier; what the other task did before is answered
// from that one's record.
type shadow struct {
	of     *task
	at     *call // for whose response the other task waits
	began  time.Time
	ctx    context.Context
	cancel context.CancelFunc
	made   map[spot]int // calls so far
}

// spot is a place in the program where calls are made.
type spot struct {
	run      int
	lane, op string
}

// cast starts a shadow of the task at a call that waits for its actual response although there is a
// guess, unless the task has had one. Only a run that stands on nothing casts one. Under mu; the
// shadow begins once it is released.
func (t *task) cast(l *lane, c *call) {
	t.shadows = true
	if c.guess == nil || len(c.guess.values) == 0 || t.shadowed || t.shadowOf != nil || t.forgetful ||
		l.run.tree.Speculative() || !t.tree.Replayable() || t.fn == nil {
		return
	}
	t.shadowed = true
	c.op.CallSite.Engine().Counts().Shadows.Add(1)
	t.todo = append(t.todo, duty{kind: dutyCast, of: c})
}

// castNow starts the shadow.
func (t *task) castNow(c *call) {
	// What the shadow is given has no handler to answer and no request to count for.
	base := context.WithValue(control.Engine().Detach(context.WithoutCancel(t.ctx)), handlerKey{}, (*Handler)(nil))
	sh := &shadow{of: t, at: c, began: time.Now(), made: make(map[spot]int)}
	if d, ok := t.ctx.Deadline(); ok {
		sh.ctx, sh.cancel = context.WithDeadline(base, d)
	} else {
		sh.ctx, sh.cancel = context.WithCancel(base)
	}
	own := *t.cfg
	own.report = nil
	s := &task{ctx: sh.ctx, fn: t.fn, cfg: &own, done: make(chan struct{}, 1), shadowOf: sh}
	s.lot.Store(t.luck())
	if t.request != nil {
		s.lot.Store(t.request.Engine().Luck())
	}
	s.setUp(spectree.Config{Replayable: true, CallerOpen: true})
	t.mu.Lock()
	over := t.ended || c.answered()
	if !over {
		t.shadow = s
	}
	t.mu.Unlock()
	if over {
		sh.cancel()
		return
	}
	s.mu.Lock()
	if !s.ended { // it may be thrown away already
		s.tree.Start()
	}
	s.unlock()
}

// answered reports whether the actual response is in. Under mu.
func (c *call) answered() bool { return c.finished != 0 }

// uncast has the task's shadow thrown away. Under mu.
func (t *task) uncast() {
	if t.shadow != nil {
		t.todo = append(t.todo, duty{kind: dutyUncast, of: t.shadow})
		t.shadow = nil
	}
}

// thrownAway ends a shadow, and counts what it did in vain.
func (s *task) thrownAway() {
	s.end(ErrMisspeculated)
	s.shadowOf.cancel()
	s.mu.Lock()
	sent, waited := s.ledger.sent, s.ledger.waited
	s.mu.Unlock()
	site := s.shadowOf.at.op.CallSite
	site.Engine().Counts().Wasted.Add(int64(sent))
	site.Engine().Counts().WastedNanos.Add(int64(sent)*int64(time.Since(s.shadowOf.began)) - int64(waited))
}

// foresee answers a call of a shadow from what the other task did before. It
// reports false if the other task has not made the call, or waits for it and
// there is a prediction: then op and q are what the shadow's own call is made with.
func (s *task) foresee(ctx context.Context, l *lane, op **Operation, spec *spectree.CallSpec, q *quest) (v any, err error, done bool) { //nolint:revive // done says whether there is an answer
	sh := s.shadowOf
	t := sh.of
	s.mu.Lock()
	at := spot{l.run.tree.ID, l.tree.ID(), spec.Op}
	occurrence := sh.made[at]
	sh.made[at]++
	s.mu.Unlock()
	t.mu.Lock()
	var c *call
	if tc := t.tree.At(l.tree.ID(), spec, occurrence); tc != nil {
		c, _ = tc.Data.(*call)
	}
	if c == nil {
		t.mu.Unlock()
		return nil, nil, false
	}
	guessed := c.mode == control.ModeShadow && c.guess != nil && len(c.guess.values) > 0
	if !c.answered() && !guessed {
		ready := make(chan struct{})
		c.watchers = append(c.watchers, ready)
		t.mu.Unlock()
		select {
		case <-ready:
		case <-ctx.Done():
			return nil, contextError(ctx, ""), true
		case <-sh.ctx.Done():
			return nil, ErrMisspeculated, true
		}
		t.mu.Lock()
	}
	defer t.mu.Unlock()
	if c.answered() {
		match, _ := c.tree.Answered()
		v, err = c.answer(match)
		return v, err, true
	}
	*op = &Operation{CallSite: (*op).CallSite, Conn: (*op).Conn, Identity: (*op).Identity, Whole: (*op).Whole,
		Request: (*op).Request, CanSpeculate: true, Transport: unanswered{(*op).Transport}}
	q.mode, q.predictions = control.ModeOn, c.guess.values[:1]
	spec.NoPrediction, spec.NoSpeculation, spec.Effect = false, false, spectree.None
	return nil, nil, false
}

// unanswered is the transport of a call whose actual response would come too late.
type unanswered struct{ Transport }

// Start waits until nobody wants the attempt any more.
func (unanswered) Start(ctx context.Context, a *Attempt) {
	go func() {
		<-ctx.Done()
		a.Finish(nil, ErrMisspeculated)
	}()
}

package engine

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/spectree"
)

// Barrier is foresay.Barrier.
func Barrier(ctx context.Context) error { return BarrierBefore(ctx, control.WaitBarrier, "") }

// barrier waits until the lane's run is confirmed.
func (l *lane) barrier(ctx context.Context) error {
	t := l.run.task
	t.mu.Lock()
	spent := l.waited > 0
	t.mu.Unlock()
	if spent || ctx.Err() == context.DeadlineExceeded { // what follows may use ctx by itself
		if err := l.renew(ctx); err != nil {
			return err
		}
	}
	bounded := l.limited.Load() || t.bounded(ctx)
	t.mu.Lock()
	if err := l.run.check(); err != nil {
		return err
	}
	began, asked := t.clock(), l.asks()
	if bounded {
		t.tree.Renew(l.tree)
	}
	err := t.barrier(ctx, l)
	t.passed(l, began)
	l.heldUp(asked)
	return err
}

// passed notes that the lane's code waited at a barrier, where code without
// speculation does not.
func (t *task) passed(l *lane, began time.Time) {
	if began.IsZero() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l.pause(began, pause{})
}

// barrier is called with mu held and releases it.
func (t *task) barrier(ctx context.Context, l *lane) error {
	if t.tree.Barrier(l.tree) {
		t.unlock()
		return nil
	}
	passed := make(chan struct{})
	l.barriers = append(l.barriers, passed)
	l.run.left = now()
	t.mayBeHeldUp(l)
	l.run.rests()
	t.unlock()
	select {
	case <-passed:
		return nil
	case <-ctx.Done():
	case <-l.run.ctx.Done(): // ctx need not end with it
		ctx = &l.run.ctx
	}
	if l.run.ctx.Err() == nil && !givenUp(ctx) {
		// A context that the code itself has ended does not count: without speculation
		// there would have been nothing to wait for.
		select {
		case <-passed:
			return nil
		case <-l.run.ctx.Done():
			ctx = &l.run.ctx
		case <-l.gone():
		}
	}
	t.mu.Lock()
	if isClosed(passed) {
		t.mu.Unlock()
		return nil
	}
	if err := l.run.check(); err != nil {
		return err
	}
	if i := slices.Index(l.barriers, passed); i >= 0 {
		l.barriers = slices.Delete(l.barriers, i, i+1)
	}
	if len(l.barriers) == 0 {
		t.tree.Unpark(l.tree)
	}
	t.mu.Unlock()
	return contextError(ctx, t.named("Barrier"))
}

// pass lets those go on that wait at a barrier of the lane. Under mu.
func (l *lane) pass() {
	for _, b := range l.barriers {
		close(b)
	}
	l.barriers = nil
}

// Act is foresay.Act.
func Act[T any](ctx context.Context, key string, f func(ctx context.Context) (T, error)) (T, error) {
	l := laneOf(ctx)
	if l == nil {
		began := time.Now()
		defer func() { control.RequestOf(ctx).Engine().Waits(control.WaitAct, key, began, 0) }()
		return f(ctx)
	}
	if l.mayCancel(ctx) && l.run.ctx.Err() == nil && !givenUp(ctx) {
		e := &endsInTime{of: ctx, asked: time.Now()}
		defer e.watch()()
		act := f
		f = func(ctx context.Context) (T, error) {
			ctx, cancel := e.shift(ctx)
			defer cancel()
			return act(ctx)
		}
		if ctx.Err() == context.Canceled { // only f may look at that
			ctx = &outlasting{ctx, &l.run.ctx}
		}
	}
	mine := &act{ended: make(chan struct{}), f: func(ctx context.Context) (any, error) {
		v, err := f(ctx)
		return acted[T]{v}, err
	}}
	op := &Operation{CallSite: actCallSite(), Identity: key, Transport: mine}
	spec := &spectree.CallSpec{Op: "act\x00" + key, Effect: spectree.Immediate, NoPrediction: true, NoSpeculation: true,
		Once: true}
	v, err := l.run.task.make(ctx, l, op, spec, quest{mode: control.ModeOff}, nil)
	if err != nil {
		l.run.task.outlasts(mine)
	}
	if p, ok := v.(*PanicError); ok && err == errPanicked {
		panic(p)
	}
	switch v := v.(type) {
	case acted[T]:
		return v.value, err
	case typed:
		err = otherType[T]("Act", key, v.typ())
	}
	var zero T
	return zero, err
}

// endsInTime has the function of an Act see the code's own context end as late as in plain
// code, where there is nothing to wait for before the function begins: as long after it
// began as after the Act was asked for.
type endsInTime struct {
	of    context.Context
	asked time.Time

	mu    sync.Mutex
	after time.Duration // when of was cancelled, since the Act was asked for
	over  bool          // it was
}

// watch notes when the code cancels its context, until stop is called.
func (e *endsInTime) watch() (stop func() bool) {
	if e.of.Err() != nil { // before the Act
		e.over = e.of.Err() == context.Canceled
		return func() bool { return false }
	}
	return context.AfterFunc(e.of, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.after, e.over = time.Since(e.asked), e.of.Err() == context.Canceled
	})
}

// shift returns the context for a function that begins now. If the code cancels its context
// from now on, that ends the function's attempt.
func (e *endsInTime) shift(ctx context.Context) (context.Context, context.CancelFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.over {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	end := func() { cancel(context.Cause(e.of)) }
	if e.after == 0 {
		end()
		return ctx, func() {}
	}
	timer := time.AfterFunc(e.after, end)
	return ctx, func() { timer.Stop(); cancel(nil) }
}

// acted is the result of an Act, with its type.
type acted[T any] struct{ value T }

type typed interface{ typ() reflect.Type }

func (acted[T]) typ() reflect.Type { return reflect.TypeFor[T]() }

// otherType is the error of a key that is used for one type and then for another.
func otherType[T any](what, key string, first reflect.Type) error {
	return fmt.Errorf("foresay: %s: key %q is of type %v in this task and cannot be used for type %v", what, key, first,
		reflect.TypeFor[T]())
}

// act is the transport of Act: it carries a call to a local function.
type act struct {
	f     func(context.Context) (any, error)
	begun bool          // under the task's mu
	ended chan struct{} // closed when f has ended
}

// outlasts waits for the function of an Act if it has begun. Its run may have been discarded
// meanwhile, but code that went on beside it would change what the function works with.
func (t *task) outlasts(a *act) {
	t.mu.Lock()
	begun := a.begun
	t.mu.Unlock()
	if begun {
		<-a.ended
	}
}

func (a *act) Start(ctx context.Context, at *Attempt) {
	go func() {
		v, err := any(nil), errGoexit
		defer func() {
			if p := recover(); p != nil {
				v, err = asPanic(p), errPanicked
			}
			close(a.ended)
			at.Finish(v, err)
		}()
		v, err = a.f(plain(ctx))
	}()
}

func (a *act) Equal(_, _ any) bool      { return false }
func (a *act) Same(_, _ any) bool       { return false }
func (a *act) Accept(v any) (any, bool) { return v, true }

func actCallSite() *control.CallSite {
	return control.Engine().LocalCallSite(control.CallSiteConfig{Name: "act", Mode: control.ModeOff,
		Effect: control.EffectImmediate})
}

// memo is a recorded value, or one that is being computed.
type memo struct {
	ready chan struct{}
	took  time.Duration
	value any
	typ   reflect.Type // that it was asked for as
	err   error
	valid bool
}

// Memo is foresay.Memo.
func Memo[T any](ctx context.Context, key string, f func(ctx context.Context) (T, error)) (T, error) {
	var zero T
	l := laneOf(ctx)
	if l == nil {
		return f(ctx)
	}
	t := l.run.task
	if sh := t.shadowOf; sh != nil {
		// f runs once, for the task: it must not wait for a shadow, nor see what that
		// computes. So a shadow that comes to a value first has come to its end.
		if t = sh.of; !t.remembers(key) {
			select {
			case <-ctx.Done():
				return zero, contextError(ctx, t.named(fmt.Sprintf("Memo of key %q", key)))
			case <-sh.ctx.Done():
				return zero, ErrMisspeculated
			}
		}
	}
	for {
		l.run.task.mu.Lock()
		if err := l.run.check(); err != nil {
			return zero, err
		}
		l.run.task.mu.Unlock()
		t.mu.Lock()
		m := t.memos[key]
		if m == nil {
			m = &memo{ready: make(chan struct{}), typ: reflect.TypeFor[T]()}
			if t.memos == nil {
				t.memos = make(map[string]*memo)
			}
			t.memos[key] = m
			t.mu.Unlock()
			return compute(ctx, t, key, m, f)
		}
		t.mu.Unlock()
		began := l.run.task.clock()
		select {
		case <-m.ready:
		case <-l.run.ctx.Done(): // not the code's own context, which f need not look at
			if !isClosed(m.ready) {
				return zero, contextError(&l.run.ctx, t.named(fmt.Sprintf("Memo of key %q", key)))
			}
		}
		if m.valid {
			l.remembered(began, m)
			if m.typ != reflect.TypeFor[T]() {
				return zero, otherType[T]("Memo", key, m.typ)
			}
			out, _ := m.value.(T) // not ok for a nil of an interface type
			return out, m.err
		}
	}
}

// remembers reports whether the task has a value of this key, or computes it.
func (t *task) remembers(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.memos[key] != nil
}

// compute fills a memo. If f panics, the next run computes it anew.
func compute[T any](ctx context.Context, t *task, key string, m *memo, f func(context.Context) (T, error)) (T, error) {
	defer func() {
		if !m.valid {
			t.mu.Lock()
			delete(t.memos, key)
			t.mu.Unlock()
		}
		close(m.ready)
	}()
	// The value is the task's: the end of this run must not spoil it.
	began := t.clock()
	v, err := f(plain(context.WithoutCancel(ctx)))
	if !began.IsZero() {
		m.took = time.Since(began)
	}
	m.value, m.err, m.valid = v, err, true
	return v, err
}

// BarrierBefore is Barrier for a transport, which has something to do that cannot
// be done on a guess: its kind and name tell reports what the code waits for.
func BarrierBefore(ctx context.Context, kind control.WaitKind, name string) error {
	number := 0
	if l := laneOf(ctx); l != nil {
		if err := l.barrier(ctx); err != nil {
			return err
		}
		number = int(l.run.task.ledger.number)
	}
	control.RequestOf(ctx).Engine().Waits(kind, name, time.Now(), number)
	return nil
}

// hooks is one step of a lane's commit hooks: a function, or the place where
// the hooks of other lanes belong, because the lane waited for them or went on
// with a guess at their result.
type hooks struct {
	f      func()
	lanes  []*lane
	future *future
}

// OnCommit is foresay.OnCommit.
func OnCommit(ctx context.Context, f func()) {
	l := laneOf(ctx)
	if l == nil {
		began := time.Now()
		f()
		control.RequestOf(ctx).Engine().Waits(control.WaitHooks, "", began, 0)
		return
	}
	l.hook(hooks{f: f})
}

func (l *lane) hook(h hooks) {
	t := l.run.task
	t.mu.Lock()
	defer t.mu.Unlock()
	if !l.run.tree.Discarded() && !t.ended { // what has ended calls its hooks now, and code that outlives it adds none
		l.commit = append(l.commit, h)
		l.run.hooked = l.run.hooked || h.f != nil
	}
}

// release runs the commit hooks of a confirmed run, in order.
func (r *run) release() {
	if !r.hooked {
		return
	}
	r.hooked = false
	began := time.Now()
	defer func() { r.task.request.Engine().Waits(control.WaitHooks, "", began, int(r.task.ledger.number)) }()
	done := make(map[*lane]bool)
	r.main.release(done)
	r.task.mu.Lock()
	forked := r.forked // code that outlives its task may add to them
	r.task.mu.Unlock()
	for _, l := range forked { // those that nobody waited for
		l.release(done)
	}
}

func (l *lane) release(done map[*lane]bool) {
	if done[l] {
		return
	}
	done[l] = true
	l.run.task.mu.Lock()
	commit := l.commit // as above
	l.run.task.mu.Unlock()
	for _, h := range commit {
		lanes := h.lanes
		if h.future != nil {
			lanes = h.future.lanes
		}
		for _, other := range lanes {
			other.release(done)
		}
		if h.f != nil {
			h.f()
		}
	}
}

// OnRollback is foresay.OnRollback.
func OnRollback(ctx context.Context, f func()) {
	l := laneOf(ctx)
	if l == nil {
		return
	}
	t := l.run.task
	t.mu.Lock()
	if l.run.tree.Discarded() {
		t.mu.Unlock()
		t.contain("rollback hook", f)
		return
	}
	x := l.run.rarely()
	x.rollback = append(x.rollback, f)
	t.mu.Unlock()
}

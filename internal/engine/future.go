package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/spectree"
)

// Future is foresay.Future.
type Future[T any] struct{ f *future }

// Go is foresay.Go.
func Go[T any](ctx context.Context, f func(ctx context.Context) (T, error), opts ...CallOption) *Future[T] {
	cfg := with(defaults(ctx), opts)
	fn := func(ctx context.Context) (any, error) { return f(ctx) }
	if l := laneOf(ctx); l != nil {
		return &Future[T]{goInRun(ctx, l, cfg, fn)}
	}
	return &Future[T]{goTask(ctx, cfg, fn)}
}

// Then is foresay.Then.
func Then[T, U any](future *Future[T], f func(ctx context.Context, v T) (U, error), opts ...CallOption) *Future[U] {
	ctx := context.Background()
	if future != nil && future.f != nil {
		ctx = future.f.ctx
	}
	return Go(ctx, func(ctx context.Context) (U, error) {
		v, err := future.Wait(ctx)
		if err != nil {
			var zero U
			return zero, err
		}
		return f(ctx, v)
	}, opts...)
}

// Wait is that of foresay.Future.
func (f *Future[T]) Wait(ctx context.Context) (T, error) {
	if f == nil || f.f == nil {
		var zero T
		return zero, fmt.Errorf("foresay: Wait of a *Future[%v] that is nil", reflect.TypeFor[T]())
	}
	v, err := f.f.await(ctx)
	out, _ := v.(T)
	return out, err
}

// future is a result that comes, with predictions for it that come before.
type future struct {
	ctx  context.Context // where what depends on it runs
	task *task           // that computes it, if it is a task of its own
	run  *run            // the run that it is part of, if any
	name string          // within the run: the same in each run
	lane *lane           // whose code computes it there; nil for a combination
	// computed are the lanes of the run whose code computes it.
	computed []string
	members  []*future // of a combination
	equal    func(prediction, actual any) bool
	ready    chan struct{}

	mu          sync.Mutex
	predictions []any
	backers     []int      // how many runs offer each prediction, 1 more if it was a Guess
	bases       [][]*basis // on which of them do, as far as that is known
	effectful   []any      // predictions of runs that made calls with effects
	subscribers []subscriber
	settled     bool

	// In a run, see needed.
	owner   *future            // whose code made it, if it was not the run's own
	gone    chan struct{}      // closed when the computation is given up; nil for a combination
	cancel  context.CancelFunc // ends its code's context then
	stop    func() bool        // has that not be done any more
	waiting int                // lanes that wait for it, and combinations that it may decide
	lost    bool               // a combination was decided without it

	// Set before ready is closed.
	value   any
	err     error
	failed  *PanicError
	effects bool    // calls with side effects were made for it
	unknown bool    // it says nothing about guesses: its task ended before it was done
	lanes   []*lane // whose assumptions it depends on, in a run
	// plainEnd is when tasks of its own would have had the result without speculation,
	// if somebody counts.
	plainEnd time.Time
}

// guess offers values that are never withdrawn. It is called before the future
// is shared.
func (f *future) guess(values []any) {
	f.predictions, f.backers = values, make([]int, len(values))
	for i := range values {
		f.backers[i] = 1
	}
}

// subscriber is told of a future's predictions and then of its result.
type subscriber interface {
	predicted(v any)
	withdrawn(v any)
	completed()
}

func newFuture(ctx context.Context, equal func(p, a any) bool) *future {
	if equal == nil {
		equal = equalValues
	}
	return &future{ctx: ctx, equal: equal, ready: make(chan struct{})}
}

func equalValues(a, b any) bool {
	if sa, ok := a.(loopState); ok {
		sb, ok := b.(loopState)
		return ok && sa.done == sb.done && equalValues(sa.value, sb.value)
	}
	if pa, ok := a.(proto.Message); ok {
		if pb, ok := b.(proto.Message); ok {
			return proto.Equal(pa, pb)
		}
	}
	return reflect.DeepEqual(a, b)
}

// predict offers a value for the result, which stands on b, if that is known. It reports false if
// it was offered already and counts as another one, since there were effects in one case only.
func (f *future) predict(v any, b *basis) bool {
	f.mu.Lock()
	_, effects := b.of()
	for i, p := range f.predictions {
		known := equalValues(p, v)
		if known && effects != f.isEffectful(v) {
			f.mu.Unlock()
			return false
		}
		if f.settled || known && f.backers[i] > 0 {
			f.backers[i]++
			f.stand(i, b)
			f.mu.Unlock()
			return true
		}
	}
	f.predictions = append(f.predictions, v)
	f.backers = append(f.backers, 1)
	f.stand(len(f.predictions)-1, b)
	if effects {
		f.effectful = append(f.effectful, v)
	}
	subs := f.subscribers
	f.mu.Unlock()
	for _, s := range subs {
		if mayHear(s, effects) {
			s.predicted(v)
		}
	}
	return true
}

// mayHear reports whether a subscriber is told of a prediction: one for which there were effects is
// for code that keeps what follows behind these.
func mayHear(s subscriber, effects bool) bool {
	_, follows := s.(follower)
	return follows || !effects
}

// follower is a subscriber that is told of predictions for which there were effects.
type follower interface{ follows() }

// hadEffects reports whether calls with effects were made for a prediction.
func (f *future) hadEffects(v any) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.isEffectful(v)
}

// isEffectful is hadEffects under mu.
func (f *future) isEffectful(v any) bool {
	return slices.ContainsFunc(f.effectful, func(p any) bool { return equalValues(p, v) })
}

// stand notes what one of those who offer a prediction stands on. Under mu.
func (f *future) stand(i int, b *basis) {
	if b == nil {
		return
	}
	for len(f.bases) <= i {
		f.bases = append(f.bases, nil)
	}
	f.bases[i] = append(f.bases[i], b)
}

// withdraw takes back one offer of a value. Once nobody offers it any more,
// what stands on it gives its place to what stands on better guesses.
func (f *future) withdraw(v any, b *basis) {
	f.mu.Lock()
	var subs []subscriber
	for i, p := range f.predictions {
		if !f.settled && f.backers[i] > 0 && equalValues(p, v) {
			f.backers[i]--
			if i < len(f.bases) && len(f.bases[i]) > 1 { // the last is for those who go on with it all the same
				f.bases[i] = slices.DeleteFunc(slices.Clone(f.bases[i]), func(o *basis) bool { return o == b })
			}
			if f.backers[i] == 0 {
				subs = f.subscribers
			}
			break
		}
	}
	effects := f.isEffectful(v)
	f.mu.Unlock()
	for _, s := range subs {
		if mayHear(s, effects) {
			s.withdrawn(v)
		}
	}
}

// settle closes the future; set has filled in the result. It must not lock a task: who has locked
// one may ask what became of a future.
func (f *future) settle(set func()) bool {
	f.mu.Lock()
	if f.settled {
		f.mu.Unlock()
		return false
	}
	set()
	f.settled = true
	subs := f.subscribers
	f.subscribers = nil
	if f.stop != nil {
		f.stop()
	}
	close(f.ready)
	f.mu.Unlock()
	for _, s := range subs {
		s.completed()
	}
	return true
}

func (f *future) subscribe(s subscriber) {
	f.mu.Lock()
	settled := f.settled
	var known []any
	for i, p := range f.predictions {
		if f.backers[i] > 0 && mayHear(s, f.isEffectful(p)) {
			known = append(known, p)
		}
	}
	if !settled {
		f.subscribers = append(f.subscribers, s)
	}
	f.mu.Unlock()
	if settled {
		s.completed()
		return
	}
	for _, p := range known {
		s.predicted(p)
	}
}

// goTask runs fn as a task of its own.
func goTask(ctx context.Context, cfg *taskConfig, fn func(context.Context) (any, error)) *future {
	f := newFuture(ctx, cfg.equal)
	f.guess(cfg.predictions)
	t := newTask(ctx, function[any](fn))
	t.cfg = cfg
	t.setUp(spectree.Config{Replayable: true})
	f.task = t
	t.watched = true
	sink := &futureSink{f: f, task: t}
	t.out = sink
	if ctx.Done() == nil {
		t.start()
		return f
	}
	started := make(chan struct{})
	sink.stop = context.AfterFunc(ctx, func() {
		<-started
		t.cancelled()
	})
	t.start()
	close(started)
	return f
}

// futureSink passes a task's results on to its future.
type futureSink struct {
	f    *future
	task *task
	stop func() bool // ends the watch over the task's context, if that can end

	mu      sync.Mutex
	offered map[*run]*basis // what is offered, and on what it stands
}

func (s *futureSink) offer(r *run) {
	if r.failed != nil || r.goexit || r.err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, offered := s.offered[r]; offered {
		return
	}
	b, ok := s.task.standsOn(r)
	if !ok || !s.f.predict(r.value, b) {
		return
	}
	if s.offered == nil {
		s.offered = make(map[*run]*basis)
	}
	s.offered[r] = b
}

func (s *futureSink) withdraw(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, offered := s.offered[r]; offered {
		delete(s.offered, r)
		s.f.withdraw(r.value, b)
	}
}

func (s *futureSink) complete(r *run, err error) {
	if s.stop != nil {
		s.stop()
	}
	if r != nil && r.hooked {
		go s.release(r) // user code, not for a transport's goroutine
		return
	}
	s.finish(r, err, nil)
}

func (s *futureSink) release(r *run) {
	var failed *PanicError
	defer func() {
		if p := recover(); p != nil {
			failed = asPanic(p)
		}
		s.finish(r, nil, failed)
	}()
	r.release()
}

func (s *futureSink) finish(r *run, err error, failed *PanicError) {
	s.task.reported()
	if r != nil {
		r.ctx.cancel(context.Canceled)
	}
	s.task.mu.Lock()
	late := s.task.ending != nil
	var unsure error
	if r != nil {
		unsure = r.unsure()
	}
	s.task.mu.Unlock()
	s.f.settle(func() {
		s.f.err, s.f.unknown = err, late || r == nil
		if r == nil {
			return
		}
		s.f.plainEnd = s.task.ledger.plainEnd.time()
		s.f.value, s.f.err, s.f.failed = r.value, cmp.Or(unsure, r.err), r.failed
		s.f.effects = r.tree.HasEffects()
		if failed != nil {
			s.f.failed = failed
		}
		if r.goexit {
			s.f.err = errGoexit
		}
	})
}

// result returns a settled future's result to the lane's code, each time as the caller's
// own copy.
func (f *future) result(l *lane) (any, error) {
	if f.failed != nil {
		return nil, l.raise(f.failed)
	}
	return own(f.value), f.err
}

func own(v any) any {
	if s, ok := v.(loopState); ok {
		return loopState{own(s.value), s.done}
	}
	if m, ok := v.(proto.Message); ok && m != nil {
		return proto.Clone(m)
	}
	return v
}

// await waits for the result as the code that holds ctx sees it.
func (f *future) await(ctx context.Context) (any, error) {
	l := laneOf(ctx)
	switch {
	case l == nil && f.run == nil:
		select {
		case <-f.ready:
			if f.task != nil {
				control.RequestOf(ctx).Engine().Waits(control.WaitResult, f.task.cfg.name, time.Now(), 0)
			}
			return f.result(nil)
		case <-ctx.Done():
			return nil, unfinished{contextError(ctx, f.describe())}
		}
	case l != nil && f.run == nil:
		return f.awaitTask(ctx, l)
	case l != nil && f.run == l.run:
		return f.awaitLane(ctx, l)
	}
	return nil, ErrForeignFuture
}

// awaitTask makes the other task's result a call of this one.
func (f *future) awaitTask(ctx context.Context, l *lane) (any, error) {
	op := &Operation{CallSite: futureCallSite(), Identity: fmt.Sprintf("%p", f), Transport: &futureTransport{f}}
	spec := &spectree.CallSpec{Op: "future\x00" + op.Identity, Followed: true, NoPrediction: l.run.task.killed()}
	v, err := l.run.task.make(ctx, l, op, spec, quest{mode: control.ModeOn}, nil)
	if err == errPanicked {
		return nil, l.raise(f.failed)
	}
	if isClosed(f.ready) && f.effects {
		t := l.run.task
		t.mu.Lock()
		t.tree.Touch(l.tree, spec.Op)
		t.mu.Unlock()
	}
	gaveUp := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if gaveUp && !isClosed(f.ready) {
		err = unfinished{err}
	}
	return own(v), err
}

func futureCallSite() *control.CallSite {
	return control.Engine().LocalCallSite(control.CallSiteConfig{Name: "future", Mode: control.ModeOn,
		Effect: control.EffectNone})
}

// futureTransport carries a call to another task.
type futureTransport struct{ f *future }

func (ft *futureTransport) Start(_ context.Context, a *Attempt) {
	ft.f.subscribe(&futureAttempt{ft.f, a})
}

func (ft *futureTransport) Equal(p, a any) bool {
	return ft.f.effects == ft.f.hadEffects(p) && ft.f.equal(p, a)
}
func (ft *futureTransport) Same(a, b any) bool       { return equalValues(a, b) }
func (ft *futureTransport) Accept(v any) (any, bool) { return v, true }

// Ended returns what the call comes to that the other task waits for.
func (ft *futureTransport) Ended(err error) error {
	t := ft.f.task
	if t == nil {
		return err
	}
	t.mu.Lock()
	op, ended := opOf(t.tree.Awaited()), t.err
	if op == nil { // its last call has just ended, most likely as this one does
		op = t.firstCall.op
	}
	t.mu.Unlock()
	if ended != nil { // with the same context, most likely
		return ended
	}
	return op.ended(err)
}

type futureAttempt struct {
	f *future
	a *Attempt
}

func (s *futureAttempt) follows()        {}
func (s *futureAttempt) predicted(v any) { s.a.Predict(v) }
func (s *futureAttempt) withdrawn(v any) { s.a.Withdraw(v) }

func (s *futureAttempt) completed() {
	if s.f.failed != nil {
		s.a.Finish(nil, errPanicked)
		return
	}
	if s.f.unknown {
		s.a.unsure()
	}
	s.a.Finish(s.f.value, s.f.err)
}

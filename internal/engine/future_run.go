package engine

import (
	"context"
	"slices"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/spectree"
)

// goInRun runs fn as a part of the run that ctx belongs to.
func goInRun(ctx context.Context, l *lane, cfg *taskConfig, fn func(context.Context) (any, error)) *future {
	child := l.fork()
	own, cancel := context.WithCancelCause(ctx)
	f := newFuture(ctx, cfg.equal)
	f.gone, f.cancel = make(chan struct{}), func() { cancel(errNotNeeded) }
	f.run, f.name, f.owner = l.run, child.tree.ID(), l.future
	f.lane, f.computed = child, []string{f.name}
	child.future = f
	l.run.started(f)
	f.guess(cfg.predictions)
	go func() {
		var v any
		err := errGoexit
		var failed *PanicError
		defer func() {
			if p := recover(); p != nil {
				failed = asPanic(p)
				l.run.strayed(failed)
			}
			effects := child.hasEffects()
			f.settle(func() {
				f.value, f.err, f.failed = v, err, failed
				f.lanes = []*lane{child}
				f.effects = effects
			})
			child.idle.Store(true)
			child.left()
			child.ended(own)
			l.run.giveUp()
			l.run.lanes.Done()
		}()
		v, err = fn(&laneContext{own, child})
	}()
	return f
}

// started keeps a future of the run.
func (r *run) started(f *future) {
	r.task.mu.Lock()
	defer r.task.mu.Unlock()
	x := r.rarely()
	x.futures = append(x.futures, f)
}

// ended tells that the lane's code returned. If the code itself ended the
// lane's context, other code raced with it: what the lane did in another run and
// not in this one may have been too late this time. If the task's context has
// ended there is no such excuse: what took effect before may not be denied by a
// run that came too late for it, and the task ends with the context's error.
func (l *lane) ended(ctx context.Context) {
	t := l.run.task
	if ctx.Err() == nil && !l.givenUp() || t.ctx.Err() != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tree.CutShort(l.tree)
}

// waits notes that so many lanes or combinations more, or fewer, wait for the future.
func (f *future) waits(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting += n
}

// decided tells that a combination has its result and waits for the future no
// more. If it has not counted the future, it did without it.
func (f *future) decided(counted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting--
	f.lost = f.lost || !counted
}

// didWithout notes if a combination of the run has its result without some member.
func (r *run) didWithout(some bool) {
	r.task.mu.Lock()
	defer r.task.mu.Unlock()
	if some {
		r.rarely().lost = true
	}
}

// needed reports whether the run has to wait for the future: code computes it, and it is no part of
// what a combination did without. So one is needed that nobody ever waited for: its effects are the
// function's. As long as a guess at it counts, the run is not firm.
func (f *future) needed() bool {
	f.mu.Lock()
	spare := f.lost || f.waiting > 0 // by others, which are needed or not
	f.mu.Unlock()
	return f.computing() && !spare && !f.owner.isLost()
}

// computing reports whether code of the run still computes the future, or what it combines. A
// combination of what has ended may be open all the same, until guesses are known: see completed.
func (f *future) computing() bool {
	return !isClosed(f.ready) && (f.gone != nil || slices.ContainsFunc(f.members, (*future).computing))
}

// spare reports whether the run may do without what the lane computes.
func spare(l *spectree.Lane) bool { return l.Data.(*lane).future.isLost() }

// isLost reports whether the future, or the one whose code made it, was lost.
func (f *future) isLost() bool {
	for ; f != nil; f = f.owner {
		f.mu.Lock()
		lost := f.lost
		f.mu.Unlock()
		if lost {
			return true
		}
	}
	return false
}

// giveUp ends what Any and Quorum did without, and what only that waits for,
// once the run's function has returned and waits for nothing else. The lanes'
// reads fail then, while their calls with side effects are carried out. It must
// not make a difference which run's lanes are given up: the run must stand on no
// guess, so that no other can be right, and must have repeated what took effect.
func (r *run) giveUp() {
	t := r.task
	t.mu.Lock()
	var futures []*future
	var grouped []*lane
	lost := false
	if x := r.rare; x != nil {
		for len(x.futures) > 0 && isClosed(x.futures[0].ready) {
			x.futures = x.futures[1:]
		}
		futures, grouped, lost = x.futures, slices.Clone(x.grouped), x.lost
	}
	leaving := r.leaving
	t.mu.Unlock()
	// All have to be expendable: one that is not may wait for those that are.
	if !leaving || !lost && !slices.ContainsFunc(futures, (*future).computing) ||
		slices.ContainsFunc(futures, (*future).needed) ||
		slices.ContainsFunc(grouped, func(l *lane) bool { return !l.future.isLost() }) {
		return
	}
	t.mu.Lock()
	firm := t.tree.Firm(r.tree, spare) && !t.tree.Owes(r.tree)
	t.unlock()
	if !firm {
		return
	}
	for _, f := range futures {
		f.giveUp()
	}
}

// giveUp has reads fail that the future's code waits for, or makes. The code's
// context ends only after a while, for the sake of code that waits for that: it could
// not be told then whether the code itself has ended a context that it derived, with
// which no call is made any more.
func (f *future) giveUp() {
	if f.gone == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.settled && !isClosed(f.gone) {
		close(f.gone)
		f.stop = time.AfterFunc(endsWithin, f.cancel).Stop
	}
}

// givenUp reports whether the code that holds ctx is not needed any more.
func givenUp(ctx context.Context) bool {
	return ctx.Err() != nil && context.Cause(ctx) == errNotNeeded
}

func (l *lane) hasEffects() bool {
	l.run.task.mu.Lock()
	defer l.run.task.mu.Unlock()
	return l.tree.HasEffects()
}

// awaitLane waits for a part of the same run. Its predictions are taken as
// those of a local call, which the run itself answers.
func (f *future) awaitLane(ctx context.Context, l *lane) (any, error) {
	v, err := f.fromLane(ctx, l)
	l.hear(f.name, v, err)
	return v, err
}

func (f *future) fromLane(ctx context.Context, l *lane) (any, error) {
	l.hook(hooks{future: f})
	began := l.run.task.clock()
	if isClosed(f.ready) {
		l.joined(began, f) // without speculation it might not be
	} else {
		f.waits(1)
		v, err, predicted := f.awaitCall(ctx, l)
		l.joined(began, f)
		if predicted {
			f.waits(-1)
			return v, nil
		}
		f.waits(-1)
		if err != nil {
			return nil, err
		}
	}
	t := l.run.task
	cut := l.run.cutOff(f.ctx)
	t.mu.Lock()
	if cut {
		t.doubtNow(f.lanes)
	}
	for _, from := range f.lanes {
		t.tree.Join(l.tree, from.tree)
	}
	if l.run.stray == f.failed {
		l.run.stray = nil // raised here instead
	}
	t.unlock()
	return f.result(l)
}

// joined notes that the lane's code waited for a future of the run, or went on with a prediction of
// it.
func (l *lane) joined(began time.Time, f *future) {
	l.run.task.mu.Lock()
	defer l.run.task.mu.Unlock()
	l.pause(began, pause{future: f})
}

// awaitCall waits for a prediction or for the end of the future.
func (f *future) awaitCall(ctx context.Context, l *lane) (v any, err error, predicted bool) {
	t := l.run.task
	op := &Operation{CallSite: futureCallSite(), Identity: f.name, Transport: &futureTransport{f}}
	mayEnd := l.mayCancel(f.ctx)
	t.mu.Lock()
	if err := l.run.check(); err != nil {
		return nil, err, false
	}
	u := t.tree.Call(l.tree, &spectree.CallSpec{Op: "local\x00" + f.name, Local: true, Lanes: f.computed,
		NoPrediction: t.killed() || mayEnd && t.doubts != nil && t.doubts.outrun})
	c := t.newCall(ctx, 0, u.Call, l, op, &quest{mode: control.ModeOn})
	w := &waiter{ready: make(chan struct{})}
	u.Data = w
	if t.rec != nil {
		t.rec.used(u, c)
	}
	b := l.run.belated()
	if b != nil {
		b.asking++
	}
	t.unlock()
	f.subscribe(&localCall{f, c, u})
	if b != nil {
		t.mu.Lock()
		b.asking--
		l.run.rests()
		t.unlock()
	}
	var ended context.Context
	select {
	case <-w.ready:
	case <-l.gone():
		if err := t.letGo(l, c, u); err != nil {
			return nil, err, false
		}
		<-w.ready
	case <-ctx.Done():
		ended = ctx
	case <-l.run.ctx.Done(): // ctx need not end with it
		ended = &l.run.ctx
	}
	if ended != nil && !isClosed(w.ready) {
		if err := l.outwait(ended); err != nil {
			return nil, err, false
		}
		if err := l.outrun(ended); err != nil {
			return nil, err, false
		}
		t.mu.Lock()
		if err := l.run.check(); err != nil {
			return nil, err, false
		}
		if u.Answer() == spectree.Waiting {
			t.tree.Drop(u, true)
			awaited := f.awaited()
			t.unlock()
			return nil, unfinished{awaited.ended(contextError(ended, t.where(op, 0)))}, false
		}
		t.mu.Unlock()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if idx := u.Answer(); idx >= 0 {
		return own(c.predictions[idx]), nil, true
	}
	return nil, nil, false
}

// awaited returns a call that code of the run waits for which computes the future, or nil: Wait
// fails as it does when the context ends. Under mu.
func (f *future) awaited() *Operation {
	if f.lane != nil && !isClosed(f.ready) {
		return opOf(f.lane.tree.Awaited())
	}
	for _, m := range f.members {
		if op := m.awaited(); op != nil {
			return op
		}
	}
	return nil
}

// localCall passes a future's results on to a run's use of it.
type localCall struct {
	f *future
	c *call
	u *spectree.Use
}

func (s *localCall) predicted(v any) {
	t := s.c.task
	t.mu.Lock()
	s.c.predictions = append(s.c.predictions, v)
	if t.rec != nil {
		t.rec.predicted(s.c)
	}
	t.tree.Predicted(s.c.tree)
	t.unlock()
}

// Predictions of a part of a run come and go with the run.
func (s *localCall) withdrawn(any) {}

func (s *localCall) completed() {
	t := s.c.task
	t.mu.Lock()
	predictions := s.c.predictions
	t.mu.Unlock()
	match := spectree.Actual
	if s.f.failed == nil && s.f.err == nil && !s.f.effects {
		match = s.c.match(predictions, nil, s.f.value)
	}
	t.mu.Lock()
	if t.rec != nil {
		t.rec.answered(s.c, match)
	}
	if s.u.Answer() == spectree.Waiting {
		t.tree.Answered(s.c.tree, spectree.Actual)
	} else {
		var lanes []*spectree.Lane
		for _, l := range s.f.lanes {
			lanes = append(lanes, l.tree)
		}
		t.tree.Resolve(s.c.tree, lanes, match)
	}
	t.unlock()
}

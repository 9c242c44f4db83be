package foresay

import (
	"context"
	"time"

	"github.com/foresay/foresay/internal/spectree"
)

// goInRun runs fn as a part of the run that ctx belongs to.
func goInRun(ctx context.Context, l *lane, cfg *taskConfig, fn func(context.Context) (any, error)) *future {
	child := l.fork()
	own, cancel := context.WithCancelCause(ctx)
	f := newFuture(ctx, cfg.equal)
	f.cancel = func() { cancel(errNotNeeded) }
	l.started(f)
	f.run, f.name = l.run, child.tree.ID()
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
			f.settle(func() {
				f.value, f.err, f.failed = v, err, failed
				f.lanes = []*lane{child}
				f.effects = child.hasEffects()
			})
			child.left(own)
			l.run.endIdle()
			l.run.lanes.Done()
		}()
		v, err = fn(&laneContext{own, child})
	}()
	return f
}

// started keeps a future that the lane's code started.
func (l *lane) started(f *future) {
	l.run.task.mu.Lock()
	defer l.run.task.mu.Unlock()
	l.run.futures = append(l.run.futures, f)
}

// use tells that the result is needed: by code that waits for it or went on
// with a prediction of it, or by a combination that is needed.
func (f *future) use() {
	f.mu.Lock()
	f.users++
	var members []*future
	if f.users == 1 {
		members = f.members
	}
	f.mu.Unlock()
	for _, m := range members {
		m.use()
	}
}

// unuse takes a use back.
func (f *future) unuse() {
	f.mu.Lock()
	f.users--
	var members []*future
	if f.users == 0 {
		members = f.members
	}
	f.mu.Unlock()
	for _, m := range members {
		m.unuse()
	}
	if f.run != nil {
		f.run.endIdle()
	}
}

// disband tells that a combination is decided and needs its members no more.
func (f *future) disband() {
	f.mu.Lock()
	members := f.members
	f.members = nil
	needed := f.users > 0
	f.mu.Unlock()
	if needed {
		for _, m := range members {
			m.unuse()
		}
	}
}

// endIdle ends the run's futures that nobody needs, once its function has
// returned and no code that could still wait for them runs: that of groups, and
// of futures that are needed.
func (r *run) endIdle() {
	t := r.task
	t.mu.Lock()
	futures := r.futures
	wait := !r.leaving || r.grouped > 0
	t.mu.Unlock()
	if wait {
		return
	}
	for _, f := range futures {
		if f.computing() {
			return
		}
	}
	for _, f := range futures {
		f.cancel()
	}
}

// computing reports whether the future is needed and not settled.
func (f *future) computing() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.users > 0 && !f.settled
}

func (l *lane) hasEffects() bool {
	l.run.task.mu.Lock()
	defer l.run.task.mu.Unlock()
	return l.tree.HasEffects()
}

// awaitLane waits for a part of the same run. Its predictions are taken as
// those of a local call, which the run itself answers.
func (f *future) awaitLane(ctx context.Context, l *lane) (any, error) {
	l.hook(hooks{future: f})
	began := l.run.task.clock()
	if isClosed(f.ready) {
		l.joined(began, f) // without speculation it might not be
	} else {
		f.use()
		v, err, predicted := f.awaitCall(ctx, l)
		l.joined(began, f)
		if predicted {
			return v, nil // and f is needed to the end
		}
		f.unuse()
		if err != nil {
			return nil, err
		}
	}
	t := l.run.task
	t.mu.Lock()
	for _, from := range f.lanes {
		t.tree.Join(l.tree, from.tree)
	}
	if l.run.stray == f.failed {
		l.run.stray = nil // raised here instead
	}
	t.mu.Unlock()
	return f.result()
}

// joined notes that the lane's code waited for a future of the run, or went on with a prediction of it.
func (l *lane) joined(began time.Time, f *future) {
	l.run.task.mu.Lock()
	defer l.run.task.mu.Unlock()
	l.pause(began, pause{future: f})
}

// awaitCall waits for a prediction or for the end of the future.
func (f *future) awaitCall(ctx context.Context, l *lane) (v any, err error, predicted bool) {
	t := l.run.task
	op := &Operation{Site: futureSite(), Identity: f.name, Transport: &futureTransport{f}}
	t.mu.Lock()
	if err := l.run.check(); err != nil {
		return nil, err, false
	}
	u := t.tree.Call(l.tree, &spectree.CallSpec{Op: "local\x00" + f.name, Local: true, NoPrediction: t.killed()})
	c := t.newCall(ctx, 0, u.Call, l, op, quest{mode: ModeOn})
	w := &waiter{ready: make(chan struct{})}
	u.Data = w
	if t.rec != nil {
		t.rec.used(u, c)
	}
	t.unlock()
	f.subscribe(&localCall{f, c, u})
	select {
	case <-w.ready:
	case <-ctx.Done():
		t.mu.Lock()
		if err := l.run.check(); err != nil {
			return nil, err, false
		}
		if u.Answer() == spectree.Waiting {
			t.tree.Drop(u, true)
			t.unlock()
			return nil, contextError(ctx, t.where(op, 0)), false
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

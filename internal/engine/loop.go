package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/control"
)

// Loop is foresay.Loop.
//
// Each turn is a task of its own, whose first call is for the state that the turn before comes to:
// a future, with predictions. So a wrong guess repeats the turn that went on with it, and those
// after it if the state that they began with was wrong, and none before it. A turn that is
// confirmed is let go of: the one after it has its state.
func Loop[S any](
	ctx context.Context, state S, step func(ctx context.Context, state S) (next S, done bool, err error), opts ...Option,
) (S, error) {
	if InTask(ctx) {
		for {
			next, done, err := step(ctx, state)
			if done || err != nil {
				return next, err
			}
			state = next
		}
	}
	l := &loop{ctx: ctx, cfg: with(defaults(ctx), opts), news: make(chan struct{}, 1)}
	l.step = func(ctx context.Context, state any) (any, bool, error) {
		s, _ := state.(S)
		return step(ctx, s)
	}
	v, err := l.run(state)
	out, _ := v.(S)
	return out, err
}

// loopState is what a turn comes to.
type loopState struct {
	value any
	done  bool
}

// loop is a Loop that runs.
type loop struct {
	ctx   context.Context
	cfg   *taskConfig
	step  func(ctx context.Context, state any) (any, bool, error)
	turns []*turn       // that are not confirmed, the oldest first
	news  chan struct{} // has room for one: somebody may go on
}

// turn is one turn of a loop.
type turn struct {
	loop   *loop
	first  *loopState // that it begins with, if that is known; else
	before *future    // comes to it: what the turn before does
	f      *future
	goesOn atomic.Bool // there is another turn, as far as is known
}

// run runs the loop from a state. It returns when nothing of it executes any more.
func (l *loop) run(state any) (any, error) {
	began := time.Now()
	l.start(&turn{first: &loopState{value: state}})
	for {
		oldest := l.turns[0]
		if !isClosed(oldest.f.ready) {
			l.goOn(oldest)
			continue
		}
		l.turns = l.turns[1:]
		s, _ := oldest.f.value.(loopState)
		if oldest.f.err != nil || oldest.f.failed != nil || s.done {
			err := l.end()
			control.RequestOf(l.ctx).Engine().Waits(control.WaitResult, l.cfg.name, began, 0)
			if _, failed := oldest.f.result(nil); err == nil {
				err = failed
			}
			return s.value, err
		}
		if len(l.turns) == 0 {
			l.start(&turn{first: &s})
		}
	}
}

// goOn starts another turn on what the newest is guessed to come to, or waits for news.
func (l *loop) goOn(oldest *turn) {
	newest := l.turns[len(l.turns)-1]
	if len(l.turns) < treeLimits(l.cfg.limits).Depth && newest.goesOn.Load() {
		l.start(&turn{before: newest.f})
		return
	}
	select {
	case <-l.news:
	case <-oldest.f.ready:
	}
}

// end waits for the turns that were begun on a guess that there is another one. Its error says that
// it is not known what became of calls that they made, if their tasks did not find out.
func (l *loop) end() (unknown error) {
	for _, t := range l.turns {
		<-t.f.ready
		if unknown == nil && errors.Is(t.f.err, ErrUnfinished) {
			unknown = t.f.err
		}
	}
	return unknown
}

// start begins a turn. Its future does not know its task: else each turn would hold all before it.
func (l *loop) start(t *turn) {
	t.loop = l
	l.turns = append(l.turns, t)
	t.f = goTask(l.ctx, l.cfg, t.run)
	t.f.task = nil
	t.f.subscribe(t)
}

// run is a turn's function.
func (t *turn) run(ctx context.Context) (any, error) {
	s := t.first
	if s == nil {
		v, err := t.before.await(ctx)
		if err != nil {
			return loopState{}, err
		}
		known, _ := v.(loopState)
		s = &known
	}
	if s.done {
		return *s, nil
	}
	next, done, err := t.loop.step(ctx, own(s.value))
	return loopState{next, done}, err
}

// A turn hears what it is guessed to come to itself.
func (t *turn) predicted(v any) {
	s, _ := v.(loopState)
	t.hear(!s.done)
}

func (t *turn) withdrawn(any) {}

func (t *turn) completed() {
	s, _ := t.f.value.(loopState)
	t.hear(!s.done && t.f.err == nil && t.f.failed == nil)
}

func (t *turn) follows() {}

func (t *turn) hear(more bool) {
	if more {
		t.goesOn.Store(true)
	}
	select {
	case t.loop.news <- struct{}{}:
	default:
	}
}

package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/spectree"
)

type laneKey struct{}

// lane is one goroutine's sequence of calls within a run.
type lane struct {
	tree *spectree.Lane
	run  *run
	// barriers are the goroutines that wait until the run is confirmed.
	barriers []chan struct{}
	commit   []hooks     // in the order of the program
	idle     atomic.Bool // its code has ended, or waits for a Group's, see watchdog
	parent   *lane       // that forked it, or nil
	path     *lanePath   // see trail
	future   *future     // that its code computes, or works for; nil in a run's own code
	// What its code waited for its guesses, and since when that counts; under mu. See ownLimit.
	limited atomic.Bool // limits is not empty
	endless atomic.Bool // a context that ended before did not end again, see awaitEnd
	limits  []held
	waited  time.Duration
}

// laneContext carries the lane without the cost of context.WithValue's lookup
// for every key.
type laneContext struct {
	context.Context
	lane *lane
}

func (c *laneContext) Value(key any) any {
	if key == (laneKey{}) {
		return c.lane
	}
	return c.Context.Value(key)
}

func laneOf(ctx context.Context) *lane {
	switch l := ctx.Value(laneKey{}).(type) {
	case *lane:
		return l
	case *light:
		return l.lane()
	}
	return nil
}

// plain returns ctx outside of its task.
func plain(ctx context.Context) context.Context {
	if !InTask(ctx) {
		return ctx
	}
	return &laneContext{ctx, nil}
}

// outside is a context's values, outside of its task. It ends with a task's
// context, or never.
type outside struct {
	ctx   context.Context
	ends  *task    // or nil
	looks *lookups // nil if nobody need know what is looked up
}

func (*outside) Deadline() (deadline time.Time, ok bool) { return }

func (o *outside) Done() <-chan struct{} {
	if o.ends == nil {
		return nil
	}
	return o.ends.ctx.Done()
}

func (o *outside) Err() error {
	if o.ends == nil {
		return nil
	}
	return o.ends.ctx.Err()
}

// Value also answers package context, which asks for what it can derive a
// context from, or its cause, by a key of type *int.
func (o *outside) Value(key any) any {
	switch key.(type) {
	case laneKey:
		return (*lane)(nil)
	case *int:
		if o.ends != nil {
			return o.ends.ctx.Value(key)
		}
	}
	if o.looks != nil {
		return o.looks.value(key)
	}
	return o.ctx.Value(key)
}

// OwnKey reports whether a key of context values is the engine's own: what is under
// it is no part of what a call sends.
func OwnKey(key any) bool {
	switch key.(type) {
	case laneKey, defaultsKey, handlerKey, predictingKey:
		return true
	}
	return control.OwnKey(key)
}

// InTask reports whether ctx belongs to a run of a task, so that calls made
// with it may be predicted, held and replayed.
func InTask(ctx context.Context) bool {
	switch l := ctx.Value(laneKey{}).(type) {
	case *lane:
		return l != nil
	case *light:
		return true
	}
	return false
}

// Lane returns a value that is the same for all code of one goroutine of a run,
// and another one for every other goroutine; nil outside of a task. A library
// that keeps what it computed can tell by it whether others would use a value
// on whose guesses they do not stand: they must wait, with Barrier, before.
func Lane(ctx context.Context) any {
	if l := laneOf(ctx); l != nil {
		return l
	}
	return nil
}

// ExecutionState is foresay.ExecutionState.
type ExecutionState struct {
	InTask      bool // in a Do, a Then or a speculative handler
	Speculative bool // the run, or its caller, stands on an open assumption
	Discarded   bool // one of them was wrong
	Depth       int  // open assumptions, those of callers on other nodes included
	Run         int  // which run of the task this is, from 1
}

// State is foresay.State.
func State(ctx context.Context) ExecutionState {
	l := laneOf(ctx)
	if l == nil {
		return ExecutionState{}
	}
	t := l.run.task
	t.mu.Lock()
	defer t.mu.Unlock()
	r := l.run.tree
	return ExecutionState{
		InTask: true, Speculative: r.Speculative(), Discarded: r.Discarded(),
		Depth: l.tree.Depth(), Run: r.ID,
	}
}

type predictingKey struct{}

// predicting is a context that offers values.
type predicting struct {
	context.Context
	values []any
}

func (c *predicting) Value(key any) any {
	if key == (predictingKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Predicting is foresay.Predicting.
func Predicting(ctx context.Context, values ...any) context.Context {
	return &predicting{ctx, values}
}

func offered(ctx context.Context) []any {
	if c, ok := ctx.Value(predictingKey{}).(*predicting); ok {
		return c.values
	}
	return nil
}

// withoutOffers returns ctx without what was offered last, which is of no use to a
// call that has its predictions, and may be large.
func withoutOffers(ctx context.Context) context.Context {
	for {
		c, ok := ctx.(*predicting)
		if !ok {
			return ctx
		}
		ctx = c.Context
	}
}

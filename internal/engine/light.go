package engine

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/spectree"
)

// A task costs more than a guess at one of its calls. So Do makes none for a function whose
// calls took no guesses lately, because their call sites are in modes that only observe, or have
// tripped: the function runs in Do's goroutine, with a context that knows of no run, and its
// calls are plain ones. Whoever asks for more, by OnCommit, Group, Act or a call that may be
// predicted, makes a task of it: one that is not replayable, as that of a server's handler,
// since nobody recorded the calls so far. It takes no guesses, so that they are lost once;
// the function's next calls of Do are tasks from their beginning.

// light is a call of Do that is no task yet. It is the context of its function.
type light struct {
	runContext // of no run
	fn         body
	cfg        *taskConfig
	habit      *habit
	began      time.Time
	request    *control.Request // that it belongs to, or nil
	number     int              // in it

	task atomic.Pointer[run] // of the task that it became
	over atomic.Bool         // its function has ended

	mu     sync.Mutex // held while it becomes one
	breaks bool       // it ended its function's habit
}

func newLight(ctx context.Context, fn body, cfg *taskConfig, habit *habit) *light {
	l := &light{runContext: runContext{from: ctx}, fn: fn, cfg: cfg, habit: habit, began: time.Now(),
		request: control.RequestOf(ctx)}
	if l.request != nil {
		l.number = l.request.Engine().Number()
	}
	return l
}

func (l *light) Value(key any) any {
	switch key.(type) {
	case laneKey:
		if r := l.task.Load(); r != nil {
			return &r.main
		}
		return l
	case *int:
		return l.waitable().Value(key)
	}
	return l.from.Value(key)
}

// lane makes a task of it, and returns the lane of its function's code.
func (l *light) lane() *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.task.Load(); r != nil {
		return &r.main
	}
	l.breaks = l.habit.broken()
	t := newTask(l.from, l.fn)
	t.cfg, t.inline, t.ledger.number = l.cfg, true, int32(l.number)
	t.setUp(spectree.Config{})
	t.began = l.began
	t.start()
	r := &t.first
	if t.ledger.counted {
		t.ledger.start, r.began = momentOf(l.began), momentOf(l.began)
	}
	switch {
	case !l.over.Load():
		if l.from.Err() != nil {
			t.cancelled()
		}
	default:
		r.returned() // calls that come now are told that the task has ended
		r.ctx.cancel(context.Canceled)
	}
	l.task.Store(r)
	return &r.main
}

// do runs the function to its end, whatever end that is, and returns its result.
func (l *light) do() (v any, err error) {
	normal := false
	defer func() {
		var failed *PanicError
		if !normal {
			if p := recover(); p != nil {
				failed = asPanic(p)
			}
		}
		defer l.cancel(context.Canceled)
		if r := l.close(); r != nil {
			r.value, r.err, r.failed, r.goexit = v, err, failed, !normal && failed == nil
			if l.breaks {
				l.habit.lostBy(r.task.asked.Load())
			}
			v, err = r.conclude()
			return
		}
		l.reported()
		if failed != nil {
			panic(failed)
		}
	}()
	v, err = l.fn.run(l)
	normal = true
	return v, err
}

// close ends it, and returns its run if it has become a task.
func (l *light) close() *run {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over.Store(true)
	return l.task.Load()
}

// conclude ends a run whose function has returned in Do's own goroutine, and returns its
// task's result.
func (r *run) conclude() (any, error) {
	t := r.task
	r.returned()
	select {
	case <-t.done:
	case <-t.ctx.Done():
		t.cancelled()
		<-t.done
	}
	return t.result()
}

// reported enters it into its request.
func (l *light) reported() {
	if l.request == nil {
		return
	}
	end := time.Now()
	l.request.Engine().Waits(control.WaitResult, l.cfg.name, end, 0)
	l.request.Engine().AddTask(control.TaskRecord{
		Number: l.number, Name: l.cfg.name, Start: l.began.Sub(l.request.Engine().Start()),
		End: end.Sub(l.request.Engine().Start()),
	})
}

// Plainly reports whether the call is to be made as in plain code, with the context that it
// returns: it is made outside of tasks, or in one that has nothing to do with it. The result
// of such a call is that of its code, and Watched may observe it.
func (op *Operation) Plainly(ctx context.Context) (outside context.Context, ok bool) {
	switch l := ctx.Value(laneKey{}).(type) {
	case *lane:
		return ctx, l == nil
	case *light:
		if ctx.Err() != nil || op.CallSite.Engine().Guesses() {
			return ctx, false
		}
		op.light = l
		return l.outside(ctx), true
	}
	return ctx, true
}

// outside returns a context of the function's outside of the task. What only offers values
// is left out.
func (l *light) outside(ctx context.Context) context.Context {
	if ctx = withoutOffers(ctx); ctx == context.Context(l) {
		return l.from // the call ends before its function
	}
	return plain(ctx)
}

// habit is what the calls of Do with one function wanted lately.
type habit struct {
	plain  atomic.Int32 // tasks in a row whose calls took no guesses
	wanted atomic.Int64 // tasks some of whose calls did
	lost   atomic.Int64 // times that calls would have, and could not, for want of a task
}

// Whether call sites of a task's calls take guesses.
const (
	noGuesses    = iota
	triedGuesses // only some that had tripped, to see whether they pay again: to lose one is no loss
	takesGuesses
)

const (
	// plainEnough is how many tasks of a function in a row took no guesses before it has none, and
	// triedEnough how many after one whose call sites only tried some.
	plainEnough = 64
	triedEnough = 8
	// wantedPerLost is how many tasks that take guesses there must be to one that loses its own.
	wantedPerLost = 16
)

// habits are those of functions by where their code is, as a profile of the program. They are the
// process's, since Do has no receiver and its Control is optional: nothing narrower is sure to
// outlive a call.
var habits sync.Map //tidy:ok it changes what calls cost, never what they do

func habitOf[T any](f func(context.Context) (T, error)) *habit {
	code := reflect.ValueOf(f).Pointer()
	if h, ok := habits.Load(code); ok {
		return h.(*habit)
	}
	h, _ := habits.LoadOrStore(code, new(habit))
	return h.(*habit)
}

// light reports whether the function needs no task.
func (h *habit) light(ctx context.Context, cfg *taskConfig) bool {
	if h.plain.Load() < plainEnough || h.wanted.Load() < wantedPerLost*h.lost.Load() {
		return false
	}
	if cfg.report != nil || cfg.logger != nil {
		return false
	}
	c, _ := control.Of(ctx)
	return c == nil || c.Engine().Tracer() == nil && !c.Engine().MayRecord()
}

// had notes how a task of the function ended.
func (h *habit) had(guesses int32) {
	switch {
	case guesses == takesGuesses:
		h.wanted.Add(1)
		h.plain.Store(0)
	case guesses == triedGuesses:
		h.plain.Store(plainEnough - triedEnough)
	case h.plain.Load() < plainEnough:
		h.plain.Add(1)
	}
}

// lostBy notes that a call of Do, the first in a while, was no task when it began.
func (h *habit) lostBy(guesses int32) {
	switch guesses {
	case takesGuesses:
		h.lost.Add(1)
	case triedGuesses:
		h.had(triedGuesses)
	}
}

// broken notes that a call of Do became a task, and reports whether it is the first since it was
// the habit to make none: others may be under way.
func (h *habit) broken() (first bool) { return h.plain.Swap(0) >= plainEnough }

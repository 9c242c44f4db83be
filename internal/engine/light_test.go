package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/report"
)

// lightCase is code in whose calls of Do there may be no task, and what happened in it.
type lightCase struct {
	t     *testing.T
	ctx   context.Context // of the function
	sites map[string]*control.CallSite
	light bool

	mu  sync.Mutex
	log []string
}

func (c *lightCase) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, fmt.Sprintf(format, args...))
}

// call makes a call as a transport does: plainly where that will do.
func (c *lightCase) call(ctx context.Context, name string) {
	tr := &fakeTransport{5 * ms, func() (any, error) {
		if name == "failing" {
			return nil, errors.New("failed")
		}
		return name, nil
	}}
	op := Operation{CallSite: c.sites[name], Identity: name, CanSpeculate: true, Transport: tr}
	outside, ok := op.Plainly(ctx)
	if !ok {
		v, err := Perform(ctx, &op)
		c.note("%s: %v, %v", name, v, err)
		return
	}
	if InTask(outside) {
		c.t.Errorf("%s: the plain call is in the task", name)
	}
	var w Watched
	watches := w.Begin(outside, op)
	v, err := any(nil), outside.Err()
	if err == nil {
		select {
		case <-time.After(tr.delay):
			v, err = tr.answer()
		case <-outside.Done():
			err = outside.Err()
		}
	}
	if watches {
		w.Done(v, err)
	}
	c.note("%s: %v, %v", name, v, err)
}

// isLight reports whether the code's context is of no task.
func isLight(ctx context.Context) bool {
	_, ok := ctx.Value(laneKey{}).(*light)
	return ok
}

// lightCases are functions given to Do, whose calls take no guesses but "on"'s.
func lightCases() map[string]func(c *lightCase, ctx context.Context) (string, error) {
	return map[string]func(c *lightCase, ctx context.Context) (string, error){
		"nothing":        func(*lightCase, context.Context) (string, error) { return "v", nil },
		"error":          func(*lightCase, context.Context) (string, error) { return "", errors.New("broken") },
		"value of error": func(*lightCase, context.Context) (string, error) { return "v", errors.New("broken") },
		"calls": func(c *lightCase, ctx context.Context) (string, error) {
			c.call(ctx, "off")
			c.call(Predicting(ctx, "guess"), "observe")
			c.call(ctx, "failing")
			return "v", nil
		},
		"a call that may be guessed": func(c *lightCase, ctx context.Context) (string, error) {
			c.call(ctx, "off")
			c.call(ctx, "on")
			c.call(ctx, "off")
			return "v", nil
		},
		"panic": func(*lightCase, context.Context) (string, error) { panic("ouch") },
		"panic of a task": func(_ *lightCase, ctx context.Context) (string, error) {
			OnCommit(ctx, func() {})
			panic("ouch")
		},
		"goexit": func(*lightCase, context.Context) (string, error) { runtime.Goexit(); return "", nil },
		"goexit of a task": func(_ *lightCase, ctx context.Context) (string, error) {
			State(ctx)
			runtime.Goexit()
			return "", nil
		},
		"hooks before calls": hooked(true),
		"hooks after calls":  hooked(false),
		"rollback": func(c *lightCase, ctx context.Context) (string, error) {
			OnRollback(ctx, func() { c.note("rolled back") })
			return "v", nil
		},
		"group": func(c *lightCase, ctx context.Context) (string, error) {
			c.call(ctx, "off")
			g := NewGroup(ctx)
			g.Go(func(ctx context.Context) error { c.call(ctx, "off"); return nil })
			g.Go(func(ctx context.Context) error { time.Sleep(ms); c.call(ctx, "observe"); return errors.New("part") })
			return "v", g.Wait()
		},
		"act": func(c *lightCase, ctx context.Context) (string, error) {
			return Act(ctx, "k", func(ctx context.Context) (string, error) {
				c.note("acts, in a task %v", InTask(ctx))
				return "acted", nil
			})
		},
		"memo": func(c *lightCase, ctx context.Context) (string, error) {
			for range 2 {
				_, _ = Memo(ctx, "k", func(context.Context) (int, error) { c.note("computes"); return 1, nil })
			}
			return "v", nil
		},
		"barrier": func(c *lightCase, ctx context.Context) (string, error) {
			c.call(ctx, "off")
			err := Barrier(ctx)
			c.call(ctx, "off")
			return "v", err
		},
		"nested": func(c *lightCase, ctx context.Context) (string, error) {
			return Do(ctx, func(ctx context.Context) (string, error) { c.call(ctx, "off"); return "inner", nil })
		},
		"state": func(c *lightCase, ctx context.Context) (string, error) {
			c.note("%v %+v %v %v", InTask(ctx), State(ctx), Lane(ctx) != nil, Lane(ctx) == Lane(ctx))
			return "v", nil
		},
		"future": func(c *lightCase, ctx context.Context) (string, error) {
			f := Go(ctx, func(ctx context.Context) (string, error) { c.call(ctx, "off"); return "later", nil })
			return f.Wait(ctx)
		},
		"future without wait": func(c *lightCase, ctx context.Context) (string, error) {
			Go(ctx, func(ctx context.Context) (string, error) { time.Sleep(10 * ms); c.call(ctx, "off"); return "", nil })
			return "v", nil
		},
		"goroutines on one context": func(c *lightCase, ctx context.Context) (string, error) {
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					time.Sleep(time.Duration(i) * ms)
					c.call(ctx, "off")
					OnCommit(ctx, func() { c.note("commit %d", i) })
				})
			}
			wg.Wait()
			return "v", nil
		},
		"own deadline": func(c *lightCase, ctx context.Context) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, 2*ms)
			defer cancel()
			c.call(ctx, "off")
			return "v", context.Cause(ctx)
		},
		"own cancellation": func(c *lightCase, ctx context.Context) (string, error) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(2*ms, func() { cancel(errors.New("enough")) })
			c.call(ctx, "off")
			return "v", context.Cause(ctx)
		},
		"the caller's deadline": func(c *lightCase, ctx context.Context) (string, error) {
			for range 25 {
				c.call(ctx, "off")
			}
			return "v", ctx.Err()
		},
		"waits for its end": func(_ *lightCase, ctx context.Context) (string, error) {
			<-ctx.Done()
			return "v", context.Cause(ctx)
		},
	}
}

func hooked(first bool) func(c *lightCase, ctx context.Context) (string, error) {
	return func(c *lightCase, ctx context.Context) (string, error) {
		if !first {
			c.call(ctx, "off")
		}
		OnCommit(ctx, func() { c.note("first hook") })
		c.call(ctx, "observe")
		OnCommit(ctx, func() { c.note("second hook") })
		c.note("returns")
		return "v", nil
	}
}

// run executes a function, in a request, and returns what there is to know about it.
func (c *lightCase) run(ctx context.Context, f func(c *lightCase, ctx context.Context) (string, error)) (told string) {
	var record *control.RequestRecord
	ctl := mustControl(c.t, control.Config{Recent: -1,
		OnRequest: []func(*control.RequestRecord){func(r *control.RequestRecord) { record = r }}})
	c.sites = make(map[string]*control.CallSite)
	for name, mode := range map[string]control.Mode{"off": control.ModeOff, "observe": control.ModeObserve,
		"failing": control.ModeObserve, "on": control.ModeOn} {
		c.sites[name] = callSiteCase(c.t, ctl, control.CallSiteConfig{Name: name, Mode: mode, Effect: control.EffectNone,
			Predictors: []control.Predictor{constant{name}}})
	}
	ctx, r := ctl.Begin(ctx, "request", "")
	fn := func(ctx context.Context) (string, error) {
		c.ctx = ctx
		if isLight(ctx) != c.light {
			c.t.Errorf("light: %v, want %v", isLight(ctx), c.light)
		}
		return f(c, ctx)
	}
	h := habitOf(fn)
	h.plain.Store(0)
	if c.light {
		h.plain.Store(plainEnough)
		h.lost.Store(0)
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				c.note("panic %T %v", p, p.(*PanicError).Value)
			}
		}()
		defer c.note("Do is over")
		v, err := Do(ctx, fn)
		c.note("Do: %q, %v", v, err)
	})
	ended.Wait()
	synctest.Wait()
	c.note("afterwards: %v, %v", c.ctx.Err(), context.Cause(c.ctx))
	op := Operation{CallSite: c.sites["off"], Identity: "late", CanSpeculate: true,
		Transport: &fakeTransport{ms, func() (any, error) { return 0, nil }}}
	if _, ok := op.Plainly(c.ctx); ok {
		c.t.Error("a call of code that goes on after its task has ended is plain")
	} else {
		_, err := Perform(c.ctx, &op)
		c.note("a late call: %v", err)
	}
	r.End(nil)
	for _, name := range []string{"failing", "observe", "off", "on"} {
		st := c.sites[name].Stats()
		if st.Plain != 0 {
			c.t.Errorf("%s: %d calls outside of tasks", name, st.Plain)
		}
		if name != "on" {
			c.note("%s: calls %d, would be right %d, wrong %d, learnt %d", name, st.Calls, st.WouldBeRight, st.WouldBeWrong,
				st.Learnt)
		}
	}
	record.Start, record.ID = time.Time{}, ""
	if c.sites["on"].Stats().Calls == 0 { // else the record tells of a guess that was lost
		c.note("%+v", *record)
	}
	return strings.Join(c.log, "\n")
}

// TestLight: without a task, functions have the results, effects, hooks, panics and records
// that they have in one.
func TestLight(t *testing.T) {
	for name, f := range lightCases() {
		t.Run(name, func(t *testing.T) {
			var told [2]string
			for i, light := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeoutCause(t.Context(), 98*ms, errors.New("too late"))
					defer cancel()
					told[i] = (&lightCase{t: t, light: light}).run(ctx, f)
				})
			}
			if told[0] != told[1] {
				t.Errorf("in a task\n%s\nwithout\n%s", told[0], told[1])
			}
		})
	}
}

// TestHabits: a function has tasks again as soon as a call may be guessed, and loses few guesses.
func TestHabits(t *testing.T) {
	c := mustControl(t, control.Config{Budget: -1})
	s := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a", Effect: control.EffectNone,
		Predictors: []control.Predictor{constant{"a"}}})
	lights := 0
	f := func(ctx context.Context) (any, error) {
		if isLight(ctx) {
			lights++
		}
		op := Operation{CallSite: s, Identity: "a", CanSpeculate: true, Transport: &fakeTransport{0, func() (any, error) {
			return "a", nil
		}}}
		if _, ok := op.Plainly(ctx); ok {
			return "a", nil
		}
		return Perform(ctx, &op)
	}
	do := func(n int) {
		for range n {
			if _, err := Do(t.Context(), f); err != nil {
				t.Fatal(err)
			}
		}
	}
	h := habitOf(f)
	defer habits.Delete(reflect.ValueOf(f).Pointer()) // the next test begins anew
	do(100)
	if want := 100 - plainEnough; lights != want {
		t.Errorf("%d of 100 were no tasks, want %d", lights, want)
	}
	if err := c.SetMode("/s/a", control.ModeOn, 0); err != nil {
		t.Fatal(err)
	}
	before := s.Stats().Predicted
	lights = 0
	do(100)
	if n := s.Stats().Predicted - before; n != 99 || lights != 1 {
		t.Errorf("%d of 100 were guessed, %d were no tasks", n, lights)
	}
	for range 10 { // many that are not guessed, one that is
		if err := c.SetMode("/s/a", control.ModeOff, 0); err != nil {
			t.Fatal(err)
		}
		do(200)
		if err := c.SetMode("/s/a", control.ModeOn, 0); err != nil {
			t.Fatal(err)
		}
		do(1)
	}
	if lost, wanted := h.lost.Load(), h.wanted.Load(); lost < 2 || lost > 1+wanted/wantedPerLost {
		t.Errorf("%d lost their guesses, %d did not", lost, wanted)
	}
}

// TestHabitOutlivesTrials: a call site that rests, and tries a few guesses now and then, changes
// little about a function's habit, however often it does.
func TestHabitOutlivesTrials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustControl(t, control.Config{})
		s := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a", Mode: control.ModeOn, Effect: control.EffectNone,
			Predictors: []control.Predictor{constant{"a"}}})
		tasks := 0
		f := func(ctx context.Context) (any, error) { // of its calls each waits for the one before
			if !isLight(ctx) {
				tasks++
			}
			for i := range 4 {
				op := Operation{CallSite: s, Identity: fmt.Sprint(i), Transport: &fakeTransport{ms, val("a")}}
				if outside, ok := op.Plainly(ctx); ok {
					var w Watched
					w.Begin(outside, op)
					time.Sleep(ms)
					w.Done("a", nil)
				} else if _, err := Perform(ctx, &op); err != nil {
					return nil, err
				}
			}
			return nil, nil
		}
		defer habits.Delete(reflect.ValueOf(f).Pointer()) // the next test begins anew
		do := func(n int) int {
			tasks = 0
			for range n {
				if _, err := Do(t.Context(), f); err != nil {
					t.Fatal(err)
				}
			}
			return tasks
		}
		do(1000)
		for i := range 100 {
			time.Sleep(c.Config().Retry)
			if n := do(200); n > enough+triedEnough {
				t.Fatalf("trial %d: %d of 200 were tasks", i, n)
			}
		}
	})
}

// TestRecordedTasks: who wants to know what happens in tasks has tasks.
func TestRecordedTasks(t *testing.T) {
	reports := 0
	f := func(ctx context.Context) (bool, error) { return isLight(ctx), nil }
	for name, ctx := range map[string]context.Context{
		"report":  WithDefaults(t.Context(), WithReport(func(*report.Report) { reports++ })),
		"control": mustControl(t, control.Config{RecentEvery: -1}).Context(t.Context()),
	} {
		habitOf(f).plain.Store(plainEnough)
		if light, err := Do(ctx, f); light || err != nil {
			t.Errorf("%s: light %v, %v", name, light, err)
		}
	}
	if reports != 1 {
		t.Errorf("%d reports", reports)
	}
}

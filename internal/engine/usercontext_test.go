package engine

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
)

// asking is a context of a user's own type. Its methods ask the engine, which must not
// hold a lock then, and its Done makes the channel when it is first called.
type asking struct {
	context.Context
	locks *locks
	once  sync.Once
	done  chan struct{}
}

func (c *asking) Deadline() (time.Time, bool) { c.locks.ask("Deadline"); return c.Context.Deadline() }
func (c *asking) Err() error                  { c.locks.ask("Err"); return c.Context.Err() }
func (c *asking) Value(key any) any           { c.locks.ask("Value"); return c.Context.Value(key) }

func (c *asking) Done() <-chan struct{} {
	c.locks.ask("Done")
	c.once.Do(func() {
		c.done = make(chan struct{})
		context.AfterFunc(c.Context, func() { close(c.done) })
	})
	return c.done
}

// locks are those of a task and its runs.
type locks struct {
	t    *testing.T
	mu   sync.Mutex
	all  []*sync.Mutex
	told bool
}

// of adds the locks of the run that ctx belongs to.
func (l *locks) of(ctx context.Context) context.Context {
	r := laneOf(ctx).run
	l.mu.Lock()
	l.all = append(l.all, &r.task.mu, &r.ctx.mu)
	l.mu.Unlock()
	return &asking{Context: ctx, locks: l}
}

// ask fails the test if a lock is held, and not only by another goroutine for a while.
func (l *locks) ask(method string) {
	l.mu.Lock()
	all, told := l.all, l.told
	l.mu.Unlock()
	for _, m := range all {
		for tries := 0; !told && !m.TryLock(); tries++ {
			if tries < heldFor {
				runtime.Gosched()
				continue
			}
			l.mu.Lock()
			l.told = true
			l.mu.Unlock()
			l.t.Errorf("%s is called under a lock:\n%s", method, debug.Stack())
			return
		}
		if told {
			return
		}
		m.Unlock()
	}
}

// heldFor is how often a lock is tried, which takes about a second.
const heldFor = 3_000_000

// TestContextsOfUsersTypes: the methods of a context that the code made itself, or that it
// was given, may ask the engine: none is called under a lock.
func TestContextsOfUsersTypes(t *testing.T) {
	programs := map[string]func(ctx context.Context, p *asked) error{
		"calls": func(ctx context.Context, p *asked) error {
			_ = p.get(ctx, "a", 10*ms)
			_ = p.get(ctx, "b", 10*ms)
			return p.put(ctx, "c")
		},
		"a time limit": func(ctx context.Context, p *asked) error {
			_ = p.get(ctx, "a", 10*ms)
			d, cancel := context.WithTimeout(ctx, 15*ms)
			defer cancel()
			d = p.locks.of(d)
			_ = p.get(d, "b", 40*ms)
			_ = p.put(d, "c")
			_ = Barrier(d)
			return p.put(ctx, "d")
		},
		"a context that is cancelled": func(ctx context.Context, p *asked) error {
			_ = p.get(ctx, "a", 10*ms)
			d, cancel := context.WithCancel(ctx)
			defer time.AfterFunc(30*ms, cancel).Stop()
			d = p.locks.of(d)
			_ = p.get(d, "b", 400*ms)
			_ = p.get(d, "c", 400*ms)
			return p.put(ctx, "d")
		},
		"a barrier and a hook": func(ctx context.Context, p *asked) error {
			_ = p.get(ctx, "a", 10*ms)
			OnCommit(ctx, func() {})
			if err := Barrier(ctx); err != nil {
				return err
			}
			return p.get(ctx, "b", 10*ms)
		},
		"Act and Memo": func(ctx context.Context, p *asked) error {
			_ = p.get(ctx, "a", 10*ms)
			if _, err := Memo(ctx, "m", func(context.Context) (int, error) { return 1, nil }); err != nil {
				return err
			}
			_, err := Act(ctx, "x", func(context.Context) (int, error) { return 1, nil })
			return err
		},
		"a group and futures": func(ctx context.Context, p *asked) error {
			g := NewGroup(ctx)
			for _, key := range []string{"a", "b"} {
				g.Go(func(ctx context.Context) error { return p.get(p.locks.of(ctx), key, 10*ms) })
			}
			member := func(key string, delay time.Duration) *Future[int] {
				return Go(ctx, func(ctx context.Context) (int, error) { return 1, p.get(p.locks.of(ctx), key, delay) }, Guess(1))
			}
			if _, err := Any(member("c", 10*ms), member("d", 500*ms)).Wait(ctx); err != nil {
				return err
			}
			if err := g.Wait(); err != nil {
				return err
			}
			return p.put(ctx, "e")
		},
		"goroutines on one context": func(ctx context.Context, p *asked) error {
			var wg sync.WaitGroup
			for _, key := range []string{"a", "a", "b"} {
				wg.Go(func() { _ = p.get(ctx, key, 10*ms) })
			}
			wg.Wait()
			return p.put(ctx, "c")
		},
	}
	ways := map[string]func(ctx context.Context, f func(ctx context.Context) (int, error)) error{
		"Do": func(ctx context.Context, f func(ctx context.Context) (int, error)) error {
			_, err := Do(ctx, f)
			return err
		},
		"Go": func(ctx context.Context, f func(ctx context.Context) (int, error)) error {
			_, err := Go(ctx, f).Wait(ctx)
			return err
		},
		"a handler": func(ctx context.Context, f func(ctx context.Context) (int, error)) error {
			h := NewHandler(ctx, HandlerConfig{Speculative: true, Replayable: true})
			time.AfterFunc(5*ms, h.Confirm)
			if _, err := h.Run(func(ctx context.Context) (any, error) { return f(ctx) }); err != nil {
				return err
			}
			return h.Finish()
		},
	}
	for name, program := range programs {
		for how, way := range ways {
			t.Run(name+"/"+how, func(t *testing.T) {
				for guesses := range 9 {
					for _, end := range []time.Duration{0, 5 * ms, 25 * ms} {
						synctest.Test(t, func(t *testing.T) { runAsked(t, program, way, guesses, end) })
					}
				}
			})
		}
	}
}

// runAsked runs a program whose task's context ends after a while, or never.
func runAsked(t *testing.T, program func(context.Context, *asked) error,
	way func(context.Context, func(context.Context) (int, error)) error, guesses int, end time.Duration,
) {
	l := &locks{t: t}
	p := &asked{locks: l, site: mustCallSite(t, control.CallSiteConfig{Name: "/kv/Get", Effect: control.EffectNone}),
		writes: mustCallSite(t, control.CallSiteConfig{Name: "/kv/Put", Effect: control.EffectStaged}), guesses: guesses}
	ctx := context.Context(&asking{Context: t.Context(), locks: l})
	if end > 0 {
		outer, cancel := context.WithTimeout(ctx, end)
		defer cancel()
		ctx = &asking{Context: outer, locks: l}
	}
	err := way(ctx, func(ctx context.Context) (int, error) { return 1, program(l.of(ctx), p) })
	if err != nil && end == 0 {
		t.Errorf("guesses %d: %v", guesses, err)
	}
	time.Sleep(time.Second)
}

// asked makes the calls of a program, of which the first two are guessed as told: not,
// right or wrong.
type asked struct {
	locks        *locks
	site, writes *control.CallSite
	guesses      int
}

func (p *asked) get(ctx context.Context, key string, delay time.Duration) error {
	guess := 0
	switch key {
	case "a":
		guess = p.guesses % 3
	case "b":
		guess = p.guesses / 3
	}
	switch guess {
	case 1:
		ctx = Predicting(ctx, key)
	case 2:
		ctx = Predicting(ctx, "wrong", "wrong, too")
	}
	_, err := Perform(ctx, read(p.site, key, delay, val(key)))
	return err
}

func (p *asked) put(ctx context.Context, key string) error {
	_, err := Perform(ctx, read(p.writes, key, 10*ms, val(key)))
	return err
}

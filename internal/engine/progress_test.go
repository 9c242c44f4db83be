package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/processors"
	"github.com/foresay/foresay/report"
)

// lab is a server whose calls take as long as the test says. A staged call that
// is made for a speculative caller answers tentatively, and takes effect once it
// is confirmed.
type lab struct {
	plain     bool              // no predictions
	get, slow *control.CallSite // free of side effects; of one it is known that its calls may be quick
	put       *control.CallSite // its effects are immediate
	stage     *control.CallSite
}

func newLab(t *testing.T) *lab {
	return &lab{
		get:   mustCallSite(t, control.CallSiteConfig{Name: "/lab/Get", Effect: control.EffectNone}),
		put:   mustCallSite(t, control.CallSiteConfig{Name: "/lab/Put", Effect: control.EffectImmediate}),
		stage: mustCallSite(t, control.CallSiteConfig{Name: "/lab/Stage", Effect: control.EffectStaged}),
		slow:  mustCallSite(t, control.CallSiteConfig{Name: "/lab/Slow", Effect: control.EffectNone}),
	}
}

// call makes a call that takes so long and returns its own name. Predictions
// are right if they are the name.
func (l *lab) call(
	ctx context.Context, site *control.CallSite, name string, took time.Duration, predictions ...any,
) (string, error) {
	if !l.plain {
		ctx = Predicting(ctx, predictions...)
	}
	v, err := Perform(ctx, &Operation{
		CallSite: site, Identity: name, CanSpeculate: site.Engine().Config().Effect != control.EffectImmediate,
		Transport: &labCall{name, took, site.Engine().Config().Effect == control.EffectStaged},
	})
	if err != nil {
		return "", err
	}
	return v.(string), nil
}

type labCall struct {
	name   string
	took   time.Duration
	staged bool
}

func (c *labCall) Equal(p, a any) bool      { return p == a }
func (c *labCall) Same(a, b any) bool       { return a == b }
func (c *labCall) Accept(v any) (any, bool) { _, ok := v.(string); return v, ok }

func (c *labCall) Start(ctx context.Context, a *Attempt) {
	word := make(chan bool, 1)
	speculative := a.Speculative()
	if speculative {
		a.OnResolve(func(yes bool) { word <- yes })
	}
	go func() {
		if !c.work(ctx, a) {
			return
		}
		if speculative && c.staged {
			a.Predict(c.name) // the tentative answer
			if !<-word {
				a.Finish(nil, context.Canceled)
				return
			}
			if !c.work(ctx, a) {
				return
			}
		}
		a.Finish(c.name, nil)
	}()
}

func (c *labCall) work(ctx context.Context, a *Attempt) bool {
	select {
	case <-time.After(c.took):
		return true
	case <-ctx.Done():
		a.Finish(nil, ctx.Err())
		return false
	}
}

// stalls are programs that once came to their end late, or never.
func stalls() []stall {
	return []stall{
		{name: "a replay pins at an early write before it has reached what it chose", busy: false,
			f: func(ctx context.Context, l *lab) error {
				if _, err := l.call(ctx, l.put, "append", time.Millisecond); err != nil {
					return err
				}
				g := NewGroup(ctx)
				g.Go(func(ctx context.Context) error {
					x, err := l.call(ctx, l.get, "x", 50*ms, "x")
					if err != nil {
						return err
					}
					_, err = l.call(ctx, l.stage, "append "+x, ms)
					return err
				})
				g.Go(func(ctx context.Context) error {
					time.Sleep(3 * ms)
					if _, err := l.call(ctx, l.get, "y", 10*ms, "wrong"); err != nil {
						return err
					}
					for range 2 {
						if _, err := l.call(ctx, l.get, "z", 10*ms, "z"); err != nil {
							return err
						}
					}
					return nil
				})
				return g.Wait()
			}},
		{name: "a held call that a replay has chosen has no user", busy: true, f: func(ctx context.Context, l *lab) error {
			if _, err := l.call(ctx, l.put, "append", ms); err != nil {
				return err
			}
			if _, err := l.call(ctx, l.get, "a", 8*ms, "wrong"); err != nil {
				return err
			}
			b, err := l.call(ctx, l.get, "b", 8*ms, "p1", "p2", "b")
			if err != nil {
				return err
			}
			if _, err := l.call(ctx, l.slow, "echo"+b, 2*ms, "echo"+b); err != nil {
				return err
			}
			if _, err := l.call(ctx, l.get, "a", ms, "wrong"); err != nil {
				return err
			}
			for range 2 {
				if _, err := l.call(ctx, l.get, "z", 10*ms, "z"); err != nil {
					return err
				}
			}
			return nil
		}},
	}
}

type stall struct {
	name string
	busy bool // goroutines queue for the processors
	f    func(ctx context.Context, l *lab) error
}

// run executes the program, and returns how long that took and how often it was
// stuck.
func (s *stall) run(t *testing.T, l *lab) (took time.Duration, stalls int) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
	defer cancel()
	ctx = processors.Pretend(ctx, func() (wait time.Duration) {
		if s.busy {
			wait = ms
		}
		return wait
	})
	start := time.Now()
	report := WithReport(func(r *report.Report) { stalls = r.Stalls })
	if _, err := Do(ctx, func(ctx context.Context) (int, error) { return 0, s.f(ctx, l) }, report); err != nil {
		t.Error(err)
	}
	return time.Since(start), stalls
}

// TestNobodyWaitsForWhatWaits: no program takes longer than without predictions.
func TestNobodyWaitsForWhatWaits(t *testing.T) {
	eachStall(t, func(t *testing.T, took, plain time.Duration, stalls int) {
		if took > plain || stalls > 0 {
			t.Errorf("took %v, without predictions %v; stuck %d times", took, plain, stalls)
		}
	})
}

// TestStuckTasksGoOn: where such a program is stuck after all, it goes on without
// predictions, soon. Package randtest takes away the rules that keep it from
// being stuck.
func TestStuckTasksGoOn(t *testing.T) {
	stuck := 0
	eachStall(t, func(t *testing.T, took, plain time.Duration, stalls int) {
		// What was begun in vain is done again, one thing after the other.
		if limit := plain + time.Duration(stalls)*(3*stallTime+plain); took > limit {
			t.Errorf("took %v, without predictions %v; stuck %d times", took, plain, stalls)
		}
		stuck += stalls
	})
	t.Logf("stuck %d times", stuck)
}

func eachStall(t *testing.T, judge func(t *testing.T, took, plain time.Duration, stalls int)) {
	for _, s := range stalls() {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				quick := func(ctx context.Context) (string, error) { return l.call(ctx, l.get, "quick", 100*time.Microsecond) }
				if _, err := Do(t.Context(), quick); err != nil { // from now on the site's calls are taken to be quick
					t.Fatal(err)
				}
				l.plain = true
				plain, _ := s.run(t, l)
				l.plain = false
				took, stalls := s.run(t, l)
				judge(t, took, plain, stalls)
			})
		})
	}
}

// TestEndsOfContextsAreNoStall: a replay whose code waits until a context of its own has
// ended again, while other code waits for that code, is not stuck.
func TestEndsOfContextsAreNoStall(t *testing.T) {
	const limit = 100 * ms
	guess := func(ctx context.Context, l *lab, took time.Duration) error {
		_, err := l.call(ctx, l.get, "x", took, "wrong")
		return err
	}
	await := func(ctx context.Context, f *Future[string]) error {
		if v, err := f.Wait(ctx); err == nil {
			return errors.New("a call that never answers: " + v)
		}
		return nil
	}
	for name, f := range map[string]func(ctx context.Context, l *lab) error{
		"by a time limit": func(ctx context.Context, l *lab) error {
			f := Go(ctx, func(ctx context.Context) (string, error) {
				ctx, cancel := context.WithTimeout(ctx, limit)
				defer cancel()
				return l.call(ctx, l.get, "never", time.Hour)
			})
			return errors.Join(guess(ctx, l, limit+10*ms), await(ctx, f))
		},
		"by a cancel function": func(ctx context.Context, l *lab) error {
			f := Go(ctx, func(ctx context.Context) (string, error) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(limit, cancel)
				return l.call(ctx, l.get, "never", time.Hour)
			})
			return errors.Join(await(ctx, f), guess(ctx, l, 10*ms))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				took, stalls := (&stall{f: f}).run(t, newLab(t))
				// The second run begins once x is known, and waits for the end once more.
				if want := 2*limit + 10*ms; took != want || stalls > 0 {
					t.Errorf("took %v, want %v; stuck %d times", took, want, stalls)
				}
			})
		})
	}
}

// TestDeadlineIsNoDivergence: a replay that is on its way through what took effect when the
// task's deadline is over repeats that first. What it comes to then fails, as in plain code,
// which would have come there earlier.
func TestDeadlineIsNoDivergence(t *testing.T) {
	for _, more := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t)
			ctx, cancel := context.WithTimeout(t.Context(), 8*ms)
			defer cancel()
			_, err := Do(ctx, func(ctx context.Context) (string, error) {
				time.Sleep(3 * ms)
				if err := ctx.Err(); err != nil {
					return "", err
				}
				if _, err := l.call(ctx, l.put, "append", ms); err != nil {
					return "", err
				}
				v, err := l.call(ctx, l.get, "a", 2*ms, "wrong")
				if more && err == nil {
					return l.call(ctx, l.get, "b of "+v, 4*ms)
				}
				return v, err
			})
			if more && !errors.Is(err, context.DeadlineExceeded) || !more && err != nil {
				t.Errorf("with more to do %v: got %v", more, err)
			}
		})
	}
}

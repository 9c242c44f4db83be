package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
)

// detained is code one goroutine of which waits for what it has guessed, while another one goes
// on with the guess at a call that is never answered.
type detained struct {
	name string
	code func(ctx context.Context, m *detention) error
}

// detention is what the code works with.
type detention struct {
	lab  *lab
	site *control.CallSite // of the call that is never answered
	mark func(what string) // notes that something has taken effect
}

// lost makes the call that is never answered.
func (m *detention) lost(ctx context.Context) error {
	_, err := m.lab.call(ctx, m.site, "lost", unending, "lost")
	return err
}

// unending is how long a call takes that is not answered before the task's context ends.
const unending = time.Hour

// twice makes two equal calls that a right guess answers, so that they overlap.
func (m *detention) twice(ctx context.Context) error {
	for range 2 {
		if _, err := m.lab.call(ctx, m.lab.get, "z", 20*ms, "z"); err != nil {
			return err
		}
	}
	return nil
}

// guesses makes calls one after the other, each with a right guess.
func (m *detention) guesses(ctx context.Context, name string) error {
	for i := range 7 {
		id := fmt.Sprint(name, i)
		if _, err := m.lab.call(ctx, m.lab.put, id, 20*ms, id); err != nil {
			return err
		}
	}
	return nil
}

func (m *detention) write(ctx context.Context, site *control.CallSite, name string) error {
	v, err := m.lab.call(ctx, site, name, ms)
	if err == nil {
		m.mark(v)
	}
	return err
}

func detainedPrograms() []detained {
	type C = context.Context
	return []detained{
		{"a relative's write", func(ctx C, m *detention) error {
			g := NewGroup(ctx)
			g.Go(m.lost)
			time.Sleep(ms)
			if err := m.write(ctx, m.lab.put, "w1"); err != nil {
				return err
			}
			if err := m.write(ctx, m.lab.put, "w2"); err != nil {
				return err
			}
			return g.Wait()
		}},
		{"a barrier after a relative's write", func(ctx C, m *detention) error {
			g := NewGroup(ctx)
			g.Go(m.lost)
			time.Sleep(ms)
			if err := m.write(ctx, m.lab.put, "w"); err != nil {
				return err
			}
			if err := Barrier(ctx); err != nil {
				return err
			}
			m.mark("passed")
			return g.Wait()
		}},
		{"a goroutine's writes behind guesses", func(ctx C, m *detention) error {
			if err := m.guesses(ctx, "g"); err != nil {
				return err
			}
			g := NewGroup(ctx)
			g.Go(func(ctx C) error {
				if err := m.guesses(ctx, "h"); err != nil {
					return err
				}
				for _, w := range []string{"w1", "w2"} {
					if err := m.write(ctx, m.lab.put, w); err != nil {
						return err
					}
				}
				return nil
			})
			return errors.Join(m.lost(ctx), g.Wait())
		}},
		beside("a write whose place is not certain", func(ctx C, m *detention) error {
			if err := m.twice(ctx); err != nil {
				return err
			}
			return m.write(ctx, m.lab.put, "w")
		}),
		beside("a staged write whose place is not certain", func(ctx C, m *detention) error {
			if err := m.twice(ctx); err != nil {
				return err
			}
			return m.write(ctx, m.lab.stage, "w")
		}),
		beside("an Act", func(ctx C, m *detention) error {
			if err := m.twice(ctx); err != nil {
				return err
			}
			_, err := Act(ctx, "k", func(C) (int, error) { m.mark("act"); return 0, nil })
			return err
		}),
		beside("a barrier", func(ctx C, m *detention) error {
			if err := m.twice(ctx); err != nil {
				return err
			}
			err := Barrier(ctx)
			if err == nil {
				m.mark("passed")
			}
			return err
		}),
		beside("a barrier after a guess of its own", func(ctx C, m *detention) error {
			if _, err := m.lab.call(ctx, m.lab.get, "own", 50*ms, "own"); err != nil {
				return err
			}
			err := Barrier(ctx)
			if err == nil {
				m.mark("passed")
			}
			return err
		}),
		beside("a barrier with a time limit", func(ctx C, m *detention) error {
			ctx, cancel := context.WithTimeout(ctx, 100*ms)
			defer cancel()
			if err := m.twice(ctx); err != nil {
				return err
			}
			if err := Barrier(ctx); err != nil {
				return err
			}
			m.mark("passed")
			return m.write(ctx, m.lab.put, "w")
		}),
		beside("a panic in a group", func(ctx C, m *detention) (err error) {
			defer func() {
				if recover() != nil {
					err = m.write(ctx, m.lab.put, "w")
				}
			}()
			g := NewGroup(ctx)
			g.Go(func(C) error { panic("p") })
			return g.Wait()
		}),
		beside("writes in turn", func(ctx C, m *detention) error {
			for _, w := range []string{"w1", "w2", "w3"} {
				if err := m.twice(ctx); err != nil {
					return err
				}
				if err := m.write(ctx, m.lab.put, w); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

// beside is code of a lane that goes on beside the one that makes the lost call.
func beside(name string, code func(ctx context.Context, m *detention) error) detained {
	return detained{name, func(ctx context.Context, m *detention) error {
		g := NewGroup(ctx)
		g.Go(m.lost)
		g.Go(func(ctx context.Context) error {
			time.Sleep(ms)
			return code(ctx, m)
		})
		return g.Wait()
	}}
}

// run runs the code, with or without guesses, until the task's context ends. It returns what took
// effect and when, and how the task ended.
func (p detained) run(t *testing.T, guessed, writes bool) (log []string, at []time.Duration, err error) {
	m := &detention{lab: newLab(t)}
	m.lab.plain = !guessed
	if m.site = m.lab.get; writes {
		m.site = m.lab.put
	}
	start := time.Now()
	var mu sync.Mutex // two runs may come to one place at once
	m.mark = func(what string) {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(log, what) { // else another run's code has come here, too
			log, at = append(log, what), append(at, time.Since(start))
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = Do(ctx, func(ctx context.Context) (int, error) { return 0, p.code(ctx, m) })
	time.Sleep(time.Second)
	return log, at, err
}

// TestLanesAreNotHeldUp checks that a goroutine comes as far as in plain code, and as soon but for
// the time after which the code is run once more, although another one's guess is never confirmed.
func TestLanesAreNotHeldUp(t *testing.T) {
	for _, p := range detainedPrograms() {
		for _, writes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, lost write %v", p.name, writes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					want, plain, end := p.run(t, false, writes)
					if len(want) == 0 || !errors.Is(end, context.DeadlineExceeded) {
						t.Fatal(want, end)
					}
					log, at, err := p.run(t, true, writes)
					if !slices.Equal(log, want) || !errors.Is(err, context.DeadlineExceeded) {
						t.Fatalf("%q, %v; want %q", log, err, want)
					}
					for i, when := range at {
						if late := when - plain[i]; late > time.Duration(len(at))*(patience+codeTakes) {
							t.Errorf("%s after %v, plainly after %v", log[i], when, plain[i])
						}
					}
				})
			})
		}
	}
}

// TestHandlersAreNotHeldUp checks the same of a handler, counted from when its caller turns out
// right: before, there is no other run, and its other goroutines go on with their guesses.
func TestHandlersAreNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lab := newLab(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var runs atomic.Int32
		var passed atomic.Int64
		h := NewHandler(ctx, HandlerConfig{Name: "/x/Y", Speculative: true, Replayable: true})
		start := time.Now()
		time.AfterFunc(100*ms, func() {
			if n := runs.Load(); n != 1 {
				t.Errorf("%d runs before the caller's word", n)
			}
			h.Confirm()
		})
		_, err := h.Run(func(ctx context.Context) (any, error) {
			runs.Add(1)
			g := NewGroup(ctx)
			g.Go(func(ctx context.Context) error {
				_, err := lab.call(ctx, lab.get, "lost", unending, "lost")
				return err
			})
			g.Go(func(ctx context.Context) error {
				time.Sleep(ms)
				err := Barrier(ctx)
				if err == nil {
					passed.Store(int64(time.Since(start)))
				}
				return err
			})
			return nil, g.Wait()
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if late := time.Duration(passed.Load()) - 100*ms; late < 0 || late > patience+codeTakes {
			t.Errorf("the barrier was passed after %v, the caller's word came after 100ms", time.Duration(passed.Load()))
		}
		_ = h.Finish()
	})
}

// TestHeldUpOnce: other goroutines guess wrong one after the other. What waits for that waits for
// so long in all, not for so long each time.
func TestHeldUpOnce(t *testing.T) {
	test := func(goesOn func(ctx context.Context, p *player) error) func(*testing.T) {
		return func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &player{t, newWorld(20 * ms), testCallSites(t), [3]time.Duration{}}
				start := time.Now()
				_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
					for i := range 5 {
						delay := time.Duration(i+1) * patience * 3 / 4
						Go(ctx, func(ctx context.Context) (int, error) {
							return perform(Predicting(ctx, 2), read(p.s.get, fmt.Sprint("a", i), delay, val(1)))
						})
					}
					time.Sleep(ms / 2) // until they have guessed
					return 0, goesOn(ctx, p)
				})
				if took := time.Since(start); err != nil || took > ms+20*ms+patience {
					t.Errorf("took %v, %v; want little more than 20ms", took, err)
				}
				time.Sleep(time.Second)
			})
		}
	}
	t.Run("write", test(func(ctx context.Context, p *player) error { _, err := p.put(ctx, "x"); return err }))
	t.Run("barrier", test(func(ctx context.Context, _ *player) error {
		err := Barrier(ctx)
		time.Sleep(20 * ms)
		return err
	}))
}

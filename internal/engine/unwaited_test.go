package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/internal/seed"
)

// laneProgram is a function whose goroutines outlive what waits for them. Its
// effects are its calls of put, its result the actual answer of its last read.
type laneProgram struct {
	name string
	want []string // what takes effect, in any order
	race bool     // plain code may leave out any of them, too
	code func(ctx context.Context, p *player) error
}

// player makes a program's calls. The delays of its reads are what a test varies.
type player struct {
	t     *testing.T
	w     *world
	s     sites
	delay [3]time.Duration
}

var errNo = errors.New("no")

// get reads v, or fails if v is 0.
func (p *player) get(ctx context.Context, id string, n int, v int) (int, error) {
	return perform(ctx, read(p.s.get, id, p.delay[n], func() (any, error) {
		if v == 0 {
			return nil, errNo
		}
		return v, nil
	}))
}

func (p *player) put(ctx context.Context, what string) (int, error) {
	return perform(ctx, p.w.op(p.t, p.s.put, "put %s 1", what))
}

// future is a future of a read, if v says so, and then of a write, if there is one.
func (p *player) future(ctx context.Context, id string, n int, v int, what string) *Future[int] {
	return Go(ctx, func(ctx context.Context) (int, error) {
		if id != "" {
			if v, err := p.get(ctx, id, n, v); err != nil {
				return v, err
			}
		}
		if what == "" {
			return v, nil
		}
		return p.put(ctx, what)
	})
}

var lanePrograms = []laneProgram{
	{"all fails", []string{"x"}, false, func(ctx context.Context, p *player) error {
		_, err := All(p.future(ctx, "a", 0, 0, ""), p.future(ctx, "", 0, 0, "x")).Wait(ctx)
		return expect(err)
	}},
	{"all fails before a read that a write follows", []string{"x"}, false, func(ctx context.Context, p *player) error {
		_, err := All(p.future(ctx, "a", 0, 0, ""), p.future(ctx, "b", 1, 2, "x")).Wait(ctx)
		return expect(err)
	}},
	{"nobody waits", []string{"x", "y"}, false, func(ctx context.Context, p *player) error {
		p.future(ctx, "", 0, 0, "x")
		p.future(ctx, "b", 1, 2, "y")
		return nil
	}},
	{"nobody waits for a continuation", []string{"x", "y"}, false, func(ctx context.Context, p *player) error {
		Then(p.future(ctx, "b", 1, 2, "x"), func(ctx context.Context, _ int) (int, error) { return p.put(ctx, "y") })
		return nil
	}},
	{"nobody waits for a group's future", []string{"x"}, false, func(ctx context.Context, p *player) error {
		g := NewGroup(ctx)
		g.Go(func(ctx context.Context) error {
			p.future(ctx, "b", 1, 2, "x")
			return nil
		})
		return g.Wait()
	}},
	{"any has another", []string{"x"}, false, func(ctx context.Context, p *player) error {
		_, err := Any(p.future(ctx, "a", 0, 1, ""), p.future(ctx, "", 0, 0, "x")).Wait(ctx)
		return err
	}},
	{"any has another, and a read before its write", []string{"x"}, true, func(ctx context.Context, p *player) error {
		_, err := Any(p.future(ctx, "a", 0, 1, ""), p.future(ctx, "b", 1, 2, "x")).Wait(ctx)
		return err
	}},
	{"any fails", []string{"x"}, false, func(ctx context.Context, p *player) error {
		f := p.future(ctx, "", 0, 0, "x")
		_, err := Any(p.future(ctx, "a", 0, 0, ""), p.future(ctx, "b", 1, 0, "")).Wait(ctx)
		_ = f
		return expect(err)
	}},
	{"quorum fails early", []string{"x"}, false, func(ctx context.Context, p *player) error {
		_, err := Quorum(2, nil, p.future(ctx, "a", 0, 0, ""), p.future(ctx, "b", 1, 0, ""),
			p.future(ctx, "", 0, 0, "x")).Wait(ctx)
		return expect(err)
	}},
	{"a failure cancels a write", []string{"x"}, true, func(ctx context.Context, p *player) error {
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		p.future(inner, "", 0, 0, "x")
		_, err := p.future(ctx, "a", 0, 0, "").Wait(ctx)
		cancel()
		return expect(err)
	}},
	{"a failure cancels a read that a write follows", []string{"x"}, true, func(ctx context.Context, p *player) error {
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		p.future(inner, "b", 1, 2, "x")
		_, err := p.future(ctx, "a", 0, 0, "").Wait(ctx)
		cancel()
		return expect(err)
	}},
	{"a failure cancels code that waits", []string{"x"}, true, func(ctx context.Context, p *player) error {
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		g := NewGroup(inner)
		g.Go(func(ctx context.Context) error {
			select {
			case <-time.After(p.delay[1]):
				_, err := p.put(ctx, "x")
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		_, err := p.future(ctx, "a", 0, 0, "").Wait(ctx)
		cancel()
		_ = g.Wait()
		return expect(err)
	}},
}

// expect returns an error unless the program failed as it should.
func expect(err error) error {
	if errors.Is(err, errNo) {
		return nil
	}
	return fmt.Errorf("got %w; want it to fail", err)
}

// TestLanesNobodyWaitsFor: what a path begins that turns out right takes effect
// once, whoever waits for it, however often the function runs, and no function
// that plain goroutines could carry out diverges.
func TestLanesNobodyWaitsFor(t *testing.T) {
	delays := []time.Duration{0, 3 * ms, 9 * ms, 15 * ms}
	for _, prog := range lanePrograms {
		t.Run(prog.name, func(t *testing.T) {
			for i := 0; i < 2*4*4*4*2; i += seed.Every(5) {
				p := &player{t: t, w: newWorld(10 * ms), s: testCallSites(t)}
				for n := range p.delay {
					p.delay[n] = delays[i>>(2*n)&3] + ms + time.Duration(n)*17*time.Microsecond
				}
				before, late := i&64 != 0, i&128 != 0
				synctest.Test(t, func(t *testing.T) {
					got, err := Do(t.Context(), func(ctx context.Context) (int, error) {
						if before {
							if v, err := p.get(Predicting(ctx, 8), "before", 2, 7); err != nil {
								return v, err
							}
						}
						if err := prog.code(ctx, p); err != nil {
							return 0, err
						}
						if !late {
							return p.get(Predicting(ctx, 8), "after", 2, 9)
						}
						return 9, nil
					})
					if err != nil || got != 9 {
						t.Errorf("delays %v, a wrong guess before %v, after %v: got %v, %v; took effect: %v", p.delay, before, !late, got,
							err, p.w.log)
						return
					}
					if !effects(p.w.log, prog.want, prog.race) {
						t.Errorf("delays %v, a wrong guess before %v, after %v: took effect: %v; want %v once each", p.delay, before,
							!late, p.w.log, prog.want)
					}
				})
				if t.Failed() {
					return
				}
			}
		})
	}
}

// effects reports whether each of these took effect once, or at most once.
func effects(log, want []string, race bool) bool {
	log = slices.Sorted(slices.Values(log))
	if len(slices.Compact(slices.Clone(log))) < len(log) {
		return false
	}
	for _, what := range want {
		if i := slices.Index(log, "put "+what+" 1"); i >= 0 {
			log = slices.Delete(log, i, i+1)
		} else if !race {
			return false
		}
	}
	return len(log) == 0
}

// TestQuorumChoosesAgain: members that agreed on a wrong guess are no quorum
// where they disagree.
func TestQuorumChoosesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testCallSites(t)
		got, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			v, err := perform(Predicting(ctx, 1), read(s.get, "which", 20*ms, val(2)))
			if err != nil {
				return 0, err
			}
			var members []*Future[int]
			for i, answer := range map[int][3]int{1: {5, 5, 6}, 2: {4, 6, 6}}[v] {
				members = append(members, Go(ctx, func(ctx context.Context) (int, error) {
					return perform(ctx, read(s.get, fmt.Sprint("replica", i, v), time.Duration(i+1)*ms, val(answer)))
				}))
			}
			return Quorum(2, nil, members...).Wait(ctx)
		})
		if got != 6 || err != nil {
			t.Errorf("got %v, %v; want 6, which two of three hold", got, err)
		}
	})
}

// TestQuorumFailsTheSame: that a quorum cannot be reached is decided by those that had answered by
// then, in each run, so that code that does something about it repeats that.
func TestQuorumFailsTheSame(t *testing.T) {
	for failed := range 3 {
		synctest.Test(t, func(t *testing.T) {
			p := &player{t: t, w: newWorld(10 * ms), s: testCallSites(t), delay: [3]time.Duration{5 * ms, 7 * ms, 9 * ms}}
			p.delay[failed] = ms
			got, err := Do(t.Context(), func(ctx context.Context) (int, error) {
				var members []*Future[int]
				for i := range 3 {
					v := 4
					if i == failed {
						v = 0
					}
					members = append(members, p.future(ctx, fmt.Sprint("replica", i), i, v, ""))
				}
				_, err := Quorum(3, nil, members...).Wait(ctx)
				if _, err := p.put(ctx, strings.ReplaceAll(err.Error(), " ", "-")); err != nil {
					return 0, err
				}
				return p.get(Predicting(ctx, 8), "after", 0, 9)
			})
			if err != nil || got != 9 || len(p.w.log) != 1 {
				t.Errorf("member %d fails first: got %v, %v; took effect: %q, want one write", failed, got, err, p.w.log)
			}
		})
	}
}

// TestFutureEndsWhileItsTaskIsLocked: a future that comes to its end does not wait for its task's
// lock with its own: who has the task's asks which futures are needed.
func TestFutureEndsWhileItsTaskIsLocked(t *testing.T) {
	_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
		end := make(chan struct{})
		f := Go(ctx, func(context.Context) (int, error) { <-end; return 1, nil })
		task := laneOf(ctx).run.task
		task.mu.Lock()
		close(end)
		time.Sleep(20 * time.Millisecond) // it comes to wait
		if f.f.mu.TryLock() {
			f.f.mu.Unlock()
		} else {
			t.Error("it waits with its own lock")
		}
		task.mu.Unlock()
		return f.Wait(ctx)
	})
	if err != nil {
		t.Error(err)
	}
}

// TestDoneWithoutInEachRun: what a combination did without in one run nobody waits for in another
// one, in which it comes to its end first.
func TestDoneWithoutInEachRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &player{t: t, w: newWorld(10 * ms), s: testCallSites(t), delay: [3]time.Duration{10 * ms, 20 * ms, 200 * ms}}
		began := time.Now()
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			fails := Go(ctx, func(ctx context.Context) (int, error) {
				p.future(ctx, "open", 2, 1, "")
				return p.get(ctx, "fails", 1, 0)
			})
			succeeds := Go(ctx, func(ctx context.Context) (int, error) {
				v, err := p.get(ctx, "succeeds", 0, 1)
				if State(ctx).Run > 1 {
					time.Sleep(ms)
				}
				return v, err
			})
			if _, err := Any(fails, succeeds).Wait(ctx); err != nil {
				return 0, err
			}
			return p.get(Predicting(ctx, 2), "guess", 1, 1)
		})
		if took := time.Since(began); err != nil || took > 40*ms {
			t.Errorf("%v after %v", err, took)
		}
	})
}

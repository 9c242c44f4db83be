package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestAllMembersPanic: a combination of which no member returns ends with their panic.
func TestAllMembersPanic(t *testing.T) {
	combine := map[string]func(ctx context.Context, fs ...*Future[int]) error{
		"All": func(ctx context.Context, fs ...*Future[int]) error { _, err := All(fs...).Wait(ctx); return err },
		"Any": func(ctx context.Context, fs ...*Future[int]) error { _, err := Any(fs...).Wait(ctx); return err },
		"Quorum": func(ctx context.Context, fs ...*Future[int]) error {
			_, err := Quorum(2, nil, fs...).Wait(ctx)
			return err
		},
	}
	boom := func(ctx context.Context) *Future[int] {
		return Go(ctx, func(context.Context) (int, error) { panic("boom") })
	}
	for name, wait := range combine {
		for _, inTask := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/inTask=%v", name, inTask), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					defer func() {
						if p, ok := recover().(*PanicError); !ok || p.Value != "boom" {
							t.Errorf("Wait panicked with %v; want boom", p)
						}
					}()
					program := func(ctx context.Context) (int, error) { return 0, wait(ctx, boom(ctx), boom(ctx)) }
					var err error
					if inTask {
						_, err = Do(t.Context(), program)
					} else {
						_, err = program(t.Context())
					}
					t.Errorf("Wait returned %v; want a panic", err)
				})
			})
		}
	}
}

// TestCombinatorMisuse: what cannot be combined gives an error that tells what is wrong.
func TestCombinatorMisuse(t *testing.T) {
	value := func(ctx context.Context, v int) *Future[int] {
		return Go(ctx, func(context.Context) (int, error) { return v, nil })
	}
	tests := []struct {
		name string
		call func(ctx context.Context) error
		want string
	}{
		{"Any of none", func(ctx context.Context) error {
			_, err := Any[int]().Wait(ctx)
			return err
		}, "foresay: Any: no futures given"},
		{"Any of nil", func(ctx context.Context) error {
			_, err := Any(value(ctx, 1), nil).Wait(ctx)
			return err
		}, "foresay: Any: future 2 of 2 is nil"},
		{"All of nil", func(ctx context.Context) error {
			_, err := All(nil, value(ctx, 1)).Wait(ctx)
			return err
		}, "foresay: All: future 1 of 2 is nil"},
		{"Quorum of nil", func(ctx context.Context) error {
			_, err := Quorum(1, nil, new(Future[int])).Wait(ctx)
			return err
		}, "foresay: Quorum: future 1 of 1 is nil"},
		{"Quorum of 0", func(ctx context.Context) error {
			_, err := Quorum(0, nil, value(ctx, 1)).Wait(ctx)
			return err
		}, "foresay: Quorum: want 0 that agree, of 1 futures"},
		{"Quorum of more", func(ctx context.Context) error {
			_, err := Quorum(2, nil, value(ctx, 1)).Wait(ctx)
			return err
		}, "foresay: Quorum: want 2 that agree, of 1 futures"},
		{"Quorum of none", func(ctx context.Context) error {
			_, err := Quorum[int](1, nil).Wait(ctx)
			return err
		}, "foresay: Quorum: want 1 that agree, of 0 futures"},
		{"Then of nil", func(ctx context.Context) error {
			_, err := Then(nil, func(context.Context, int) (int, error) { return 1, nil }).Wait(context.Background())
			return err
		}, ""}, // within a task: a future of no task's
		{"Wait of nil", func(ctx context.Context) error {
			var f *Future[int]
			_, err := f.Wait(ctx)
			return err
		}, "foresay: Wait of a *Future[int] that is nil"},
		{"disagreement", func(ctx context.Context) error {
			_, err := Quorum(2, nil, value(ctx, 1), value(ctx, 2), value(ctx, 3)).Wait(ctx)
			if err != nil && !errors.Is(err, ErrNoQuorum) {
				return fmt.Errorf("%w does not wrap ErrNoQuorum", err)
			}
			return err
		}, "foresay: no quorum: 1 of 3 agree, want 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				check := func(err error) {
					if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "%!") {
						t.Errorf("got error %v; want %s", err, tt.want)
					}
				}
				check(tt.call(t.Context()))
				_, err := Do(t.Context(), func(ctx context.Context) (int, error) { return 0, tt.call(ctx) })
				check(err)
			})
		})
	}
}

// heard lists what a future predicts and withdraws.
type heard []string

func (h *heard) predicted(v any) { *h = append(*h, fmt.Sprint("+", v)) }
func (h *heard) withdrawn(v any) { *h = append(*h, fmt.Sprint("-", v)) }
func (h *heard) completed()      {}

// TestWithdrawnByOneMember: a combination's prediction stands as long as one
// member offers it, and then gives its place to another one's.
func TestWithdrawnByOneMember(t *testing.T) {
	var members []*Future[int]
	for range 3 {
		members = append(members, &Future[int]{newFuture(t.Context(), nil)})
	}
	var got heard
	Any(members...).f.subscribe(&got)
	expect := func(want string) {
		t.Helper()
		if s := strings.Join(got, " "); s != want {
			t.Fatalf("heard %q; want %q", s, want)
		}
	}
	members[0].f.predict(1, nil)
	members[1].f.predict(1, nil)
	members[2].f.predict(2, nil)
	members[2].f.predict(3, nil)
	members[2].f.withdraw(3, nil) // nobody heard of it
	members[0].f.withdraw(1, nil)
	expect("+1")
	members[1].f.withdraw(1, nil)
	expect("+1 -1 +2")
	members[2].f.withdraw(2, nil)
	members[0].f.predict(4, nil)
	expect("+1 -1 +2 -2 +4")
}

// TestChoiceOfTwoRuns: a run rests on the members on which another one rested that turns out to be
// wrong, and its own replays rest on them too: what followed has happened.
func TestChoiceOfTwoRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(5*ms), testCallSites(t)
		began := time.Now()
		member := func(ctx context.Context, id string, delay, pause time.Duration, v int) *Future[int] {
			return Go(ctx, func(ctx context.Context) (int, error) {
				_, err := perform(ctx, read(s.get, id, delay, val(v)))
				time.Sleep(pause)
				return v, err
			})
		}
		got, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			first, err := perform(Predicting(ctx, 1, 2), read(s.get, "two guesses", 15*ms, val(1)))
			if err != nil {
				return 0, err
			}
			a, b := member(ctx, "sooner", 10*ms, ms, 1), member(ctx, "later", 20*ms, 0, 2) // in a replay b is sooner
			if first == 1 {
				time.Sleep(time.Until(began.Add(12 * ms))) // the run on the wrong guess has chosen by then
			}
			v, err := Any(a, b).Wait(ctx)
			if err != nil {
				return 0, err
			}
			if _, err := perform(ctx, w.op(t, s.put, "put x %d", v)); err != nil {
				return 0, err
			}
			_, err = perform(Predicting(ctx, 2), read(s.get, "wrong", 15*ms, val(1)))
			return v, err
		})
		if got != 1 || err != nil || len(w.log) != 1 {
			t.Errorf("got %d, %v, took effect: %q; want 1 and one effect", got, err, w.log)
		}
		time.Sleep(time.Second)
	})
}

// TestGuessesOfWhatIsSpare: a task does not wait for what is guessed in a goroutine that a
// combination did without, however its runs stand on it.
func TestGuessesOfWhatIsSpare(t *testing.T) {
	for name, tt := range map[string]struct {
		code func(ctx context.Context, p *player, guess func(ctx context.Context, id string, delay time.Duration))
		want time.Duration
	}{
		// The replay's function returns before the goroutine comes to the guess that it is to take.
		"yet to be taken": {func(ctx context.Context, p *player, guess func(context.Context, string, time.Duration)) {
			_, _ = Any(
				Go(ctx, func(ctx context.Context) (int, error) {
					time.Sleep(ms)
					guess(ctx, "long", time.Second)
					return p.get(ctx, "after", 1, 1)
				}),
				Go(ctx, func(ctx context.Context) (int, error) {
					_, err := p.get(ctx, "before", 0, 1)
					guess(ctx, "wrong", 20*ms)
					return 1, err
				}),
			).Wait(ctx)
		}, 25 * ms},
		// One that was told what was guessed goes on where plain code, and a doubter, do not.
		"handed on": {func(ctx context.Context, p *player, guess func(context.Context, string, time.Duration)) {
			var told atomic.Bool
			_, _ = Any(p.future(ctx, "a", 0, 1, ""), Go(ctx, func(ctx context.Context) (int, error) {
				guess(ctx, "wrong", time.Second)
				told.Store(true)
				return 1, nil
			})).Wait(ctx)
			_, _ = p.put(ctx, "x")
			if told.Load() {
				_, _ = p.get(ctx, "b", 1, 1)
			}
		}, 15 * ms},
		// Code may have cancelled a call on that guess, and then a combination of it is open.
		"beside what is cancelled": {func(
			ctx context.Context, p *player, guess func(context.Context, string, time.Duration),
		) {
			inner, cancel := context.WithCancel(ctx)
			Any(p.future(inner, "b", 1, 1, ""))
			_, _ = Any(p.future(ctx, "a", 0, 1, ""), Go(ctx, func(ctx context.Context) (int, error) {
				guess(ctx, "long", time.Second)
				return 1, nil
			})).Wait(ctx)
			cancel()
		}, 5 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &player{t, newWorld(10 * ms), testCallSites(t), [3]time.Duration{5 * ms, time.Second}}
				guess := func(ctx context.Context, id string, delay time.Duration) {
					value := 1
					if id == "wrong" {
						value = 2
					}
					_, _ = perform(Predicting(ctx, value), read(p.s.get, id, delay, val(1)))
				}
				start := time.Now()
				_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
					tt.code(ctx, p, guess)
					return 0, nil
				})
				if took := time.Since(start); err != nil || took > tt.want+patience {
					t.Errorf("took %v, %v; want %v", took, err, tt.want)
				}
				time.Sleep(2 * time.Second)
			})
		})
	}
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/seed"
)

// TestCombinationInAContextOfItsOwn: code that goes on with a prediction of what it combines
// ends the members' context on its way, which plain code would only have ended later.
func TestCombinationInAContextOfItsOwn(t *testing.T) {
	reads := func(delays ...time.Duration) (out []part) {
		for i, d := range delays {
			out = append(out, part{reads: []fetch{{fmt.Sprint("k", i), d, 0}}, value: 1})
		}
		return out
	}
	twice := reads(20*ms, 22*ms)
	twice[1].reads = append(twice[1].reads, fetch{"again", 8 * ms, 0})
	predicted := reads(20*ms, 30*ms, 5*time.Second)
	for i := range predicted {
		predicted[i].reads[0].guess = 1
	}
	apart := reads(20*ms, 30*ms, 40*ms)
	apart[0].value = 2
	programs := map[string]struct {
		step combining
		want time.Duration
	}{
		"quorum":             {combining{how: byQuorum, n: 2, parts: reads(20*ms, 30*ms)}, 30 * ms},
		"quorum of three":    {combining{how: byQuorum, n: 2, parts: reads(20*ms, 30*ms, 90*ms)}, 30 * ms},
		"of predictions":     {combining{how: byQuorum, n: 2, parts: predicted}, 30 * ms},
		"any of predictions": {combining{how: byAny, parts: predicted}, 20 * ms},
		"a member's second":  {combining{how: byQuorum, n: 2, parts: twice}, 30 * ms},
		"a wrong prediction": {combining{how: byQuorum, n: 2, parts: apart}, 40 * ms},
		"guessed":            {combining{how: guessed, parts: reads(30 * ms)}, 30 * ms},
		"guessed wrong":      {combining{how: guessed, wrong: true, parts: reads(30 * ms)}, 30 * ms},
		"long":               {combining{how: byQuorum, n: 2, parts: reads(20*ms, time.Second)}, time.Second},
		"any of quorums": {combining{how: byAny, parts: []part{
			{inner: &combining{how: byQuorum, n: 2, parts: reads(20*ms, 30*ms), ends: endsDeferred}},
		}}, 30 * ms},
	}
	for name, prog := range programs {
		for _, end := range []ends{endsDeferred, endsLimit, endsAtOnce} {
			t.Run(fmt.Sprint(name, "/", end), func(t *testing.T) {
				prog.step.ends = end
				p := &combiningProgram{steps: []combining{prog.step}}
				synctest.Test(t, func(t *testing.T) {
					got, took, _ := p.run(t, control.ModeOn, nil)
					if got != "1" || took != prog.want {
						t.Errorf("got %v in %v; want 1 in %v", got, took, prog.want)
					}
				})
			})
		}
	}
}

// TestEffectAfterACancelOnAGuess: code whose context was cancelled on a wrong guess, by whomever,
// has no effect for that reason.
func TestEffectAfterACancelOnAGuess(t *testing.T) {
	for _, late := range []bool{false, true} { // the context has ended before the read
		for _, how := range []string{"all", "group", "sibling", "timer"} {
			synctest.Test(t, func(t *testing.T) {
				w, s := newWorld(10*ms), testCallSites(t)
				got, err := Do(t.Context(), func(ctx context.Context) (string, error) {
					inner, cancel := context.WithCancel(ctx)
					defer cancel()
					guesses := func(ctx context.Context) (int, error) {
						v, err := perform(Predicting(ctx, 2), read(s.get, "a", 20*ms, val(1)))
						if err == nil && v != 1 {
							err = errNo
						}
						return v, err
					}
					reads := func(ctx context.Context) (int, error) {
						if late {
							time.Sleep(ms)
						}
						v, err := perform(ctx, read(s.get, "b", 5*ms, val(1)))
						if err != nil {
							return perform(context.WithoutCancel(ctx), w.op(t, s.put, "put instead 1"))
						}
						return v, err
					}
					switch how {
					case "all":
						_, err := All(Go(inner, guesses), Go(inner, reads)).Wait(ctx)
						return "done", err
					case "group":
						f := Go(inner, guesses)
						g := NewGroup(inner)
						g.Go(func(ctx context.Context) error { _, err := reads(ctx); return err })
						if _, err := f.Wait(ctx); err != nil {
							cancel()
						}
						return "done", g.Wait()
					case "sibling":
						g := NewGroup(inner)
						g.Go(func(ctx context.Context) error {
							_, err := guesses(ctx)
							if err != nil {
								cancel()
							}
							return err
						})
						g.Go(func(ctx context.Context) error { _, err := reads(ctx); return err })
						return "done", g.Wait()
					}
					f := Go(inner, reads)
					if _, err := guesses(ctx); err != nil {
						time.AfterFunc(0, cancel)
						time.Sleep(2 * ms)
					}
					_, err := f.Wait(ctx)
					return "done", err
				})
				if err != nil || got != "done" || len(w.log) > 0 {
					t.Errorf("late %v, %s: got %v, %v; took effect: %v", late, how, got, err, w.log)
				}
			})
		}
	}
}

// TestRandomCombinations: programs that combine futures, in contexts that they end, take as long
// as without speculation, at most, and come to the same.
func TestRandomCombinations(t *testing.T) {
	first := seed.First(t, 0)
	for n := first; n < first+uint64(seed.Count(t, 2000)); n++ {
		program := func() *combiningProgram { return newCombiningProgram(rand.New(rand.NewPCG(n, 0xc0b1))) }
		p := program()
		var want, got string
		var plainly, took time.Duration
		var came map[string]time.Duration
		synctest.Test(t, func(t *testing.T) { want, plainly, _ = p.run(t, control.ModeOff, nil) })
		synctest.Test(t, func(t *testing.T) { got, took, came = p.run(t, control.ModeOn, nil) })
		if took > plainly+patience {
			plainly = max(plainly, hasty(t, program, came))
		}
		if got != want || took > plainly+patience {
			t.Fatalf("seed %d: got %v in %v; plainly %v in %v\n%v", n, got, took, want, plainly, p)
		}
	}
}

// hasty returns the longest that the program takes plainly where what is guessed is answered
// sooner, which is what guesses do, and where what runs on wrong guesses had begun to read is
// there when it came in the execution that was speculative. Another member of a combination may
// come in first then, and leave the task more to wait for: plain code, too, may be slower on a
// faster network.
func hasty(t *testing.T, program func() *combiningProgram, came map[string]time.Duration) (longest time.Duration) {
	for sooner := time.Duration(0); sooner <= 40*ms; sooner += ms {
		for _, there := range []map[string]time.Duration{nil, came} {
			p := program()
			for i := range p.steps {
				for f := range p.steps[i].fetches {
					if f.guess > 0 {
						f.delay = max(0, f.delay-sooner)
					}
				}
			}
			synctest.Test(t, func(t *testing.T) {
				_, took, _ := p.run(t, control.ModeOff, there)
				longest = max(longest, took)
			})
		}
	}
	return longest
}

// TestCancelledBesideAGuess: code of one goroutine fails, and what the others do is cancelled, one
// of which went on with a guess. Plain code would have waited in that goroutine, and seen the end
// of its context, so nobody waits for the guess, right or wrong.
func TestCancelledBesideAGuess(t *testing.T) {
	for _, how := range []string{"all", "group", "nested"} {
		for _, guess := range []int{1, 2} {
			t.Run(fmt.Sprint(how, " guess ", guess), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := testCallSites(t)
					fails := func(ctx context.Context) (int, error) {
						if _, err := perform(ctx, read(s.get, "a", 10*ms, val(1))); err != nil {
							return 0, err
						}
						return 0, errNo
					}
					guesses := func(ctx context.Context) (int, error) {
						return perform(Predicting(ctx, guess), read(s.get, "b", 5*time.Second, val(1)))
					}
					began := time.Now()
					_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
						inner, cancel := context.WithCancel(ctx)
						defer cancel()
						if how == "group" {
							f := Go(inner, fails)
							g := NewGroup(inner)
							g.Go(func(ctx context.Context) error { _, err := guesses(ctx); return err })
							if _, err := f.Wait(ctx); err != nil {
								cancel()
								_ = g.Wait()
								return 0, err
							}
							return 0, g.Wait()
						}
						b := Go(inner, guesses)
						if how == "nested" {
							b = Go(inner, func(ctx context.Context) (int, error) { return Go(ctx, guesses).Wait(ctx) })
						}
						_, err := All(Go(inner, fails), b).Wait(ctx)
						return 0, err
					})
					if took := time.Since(began); err != errNo || took > 12*ms {
						t.Errorf("%v after %v, want %v after 10ms", err, took, errNo)
					}
				})
			})
		}
	}
}

// TestDoubtOutlivesReplays: runs that end by other guesses come to a call that the code cancels.
// That it takes long counts from the first of them on: none is there long enough to be doubted.
func TestDoubtOutlivesReplays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testCallSites(t)
		began := time.Now()
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			time.Sleep(time.Second)
			over, cancel := context.WithCancel(ctx)
			var slow error
			g := NewGroup(ctx)
			g.Go(func(ctx context.Context) error {
				d, end := context.WithCancel(ctx)
				defer end()
				defer context.AfterFunc(over, end)()
				_, slow = perform(Predicting(d, 2), read(s.get, "slow", 20*time.Second, val(1)))
				return nil
			})
			g.Go(func(context.Context) error {
				time.Sleep(ms) // the call comes first
				cancel()
				return nil
			})
			if err := g.Wait(); err != nil {
				return 0, err
			}
			if _, err := perform(Predicting(ctx, 2), read(s.get, "b", 10*ms, val(1))); err != nil {
				return 0, err
			}
			return 0, slow
		})
		if took := time.Since(began); !errors.Is(err, context.Canceled) || took > 6*time.Second {
			t.Errorf("%v after %v, want %v after some seconds", err, took, context.Canceled)
		}
		time.Sleep(time.Second) // runs that were given up end
	})
}

// lingering takes a while to end after its context has, as a call with an interceptor may.
type lingering struct{ fakeTransport }

func (l *lingering) Blocking() {}

func (l *lingering) Start(ctx context.Context, a *Attempt) {
	select {
	case <-time.After(l.delay):
		a.Finish(l.answer())
	case <-ctx.Done():
		time.Sleep(10 * ms)
		a.Finish(nil, ctx.Err())
	}
}

// TestCancelledBesideOthers: a goroutine whose call is cancelled, and waits for the end of it,
// takes nothing from the calls that another one makes meanwhile.
func TestCancelledBesideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := mustCallSite(t, control.CallSiteConfig{Name: "/kv/Get", Effect: control.EffectNone})
		get := func(ctx context.Context, key string, delay time.Duration) error {
			op := read(site, key, delay, val(key))
			op.Transport = &lingering{fakeTransport{delay, val(key)}}
			_, err := Perform(ctx, op)
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err := Do(ctx, func(ctx context.Context) (int, error) {
			var wg sync.WaitGroup
			wg.Go(func() {
				for range 5 {
					if err := get(ctx, "read", 2*ms); err != nil {
						t.Error(err)
					}
				}
			})
			wg.Go(func() {
				time.Sleep(ms) // Do's goroutine carries the other one's call
				d, cancel := context.WithCancel(ctx)
				defer time.AfterFunc(2*ms, cancel).Stop()
				if err := get(d, "cancelled", 50*ms); err == nil {
					t.Error("a call that was cancelled succeeded")
				}
			})
			wg.Wait()
			return 0, nil
		})
		if took := time.Since(start); err != nil || took != 13*ms {
			t.Errorf("the task took %v, want 13ms: %v", took, err)
		}
		time.Sleep(time.Second)
	})
}

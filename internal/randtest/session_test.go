package randtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	planting "github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/internal/race"
	"github.com/foresay/foresay/internal/seed"
)

const ms = time.Millisecond

// steady returns a service that takes so long for each request, and replies early, and rightly, if
// early is not 0.
func steadyCounters(t testing.TB, early, decided time.Duration) *counters {
	t.Helper()
	c, err := newCounters(func() delays { return delays{early, early, decided} }, func() bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// deep are limits that do not keep a task of many guesses from speculating.
var deep = foresay.WithLimits(control.Limits{Depth: 30_000})

// TestDependentWrites: forty writes, each of which depends on the one before, take one round trip
// if all are guessed right: in one task, in the turns of a loop, and with early replies a round
// trip and what these take.
func TestDependentWrites(t *testing.T) {
	const n = 40
	for _, test := range []struct {
		name           string
		guessed        bool
		early, decided time.Duration
		want           time.Duration
	}{
		{"guessed", true, 0, 45 * ms, 45 * ms},
		{"early replies", false, ms, 45 * ms, 45*ms + (n-1)*ms},
		{"neither", false, 0, 45 * ms, n * 45 * ms},
	} {
		step := func(s *session) func(ctx context.Context, sum int) (int, error) {
			return func(ctx context.Context, sum int) (int, error) {
				if test.guessed {
					ctx = foresay.Predicting(ctx, 2*sum+1)
				}
				return s.Add(ctx, "a", sum+1, "")
			}
		}
		run := map[string]func(ctx context.Context, s *session) (int, error){
			"task": func(ctx context.Context, s *session) (int, error) {
				return foresay.Do(ctx, func(ctx context.Context) (sum int, err error) {
					for range n {
						if sum, err = step(s)(ctx, sum); err != nil {
							return 0, err
						}
					}
					return sum, nil
				}, deep)
			},
			"loop": func(ctx context.Context, s *session) (int, error) {
				type state struct{ i, sum int }
				out, err := foresay.Loop(ctx, state{}, func(ctx context.Context, at state) (state, bool, error) {
					sum, err := step(s)(ctx, at.sum)
					return state{at.i + 1, sum}, at.i == n-1, err
				}, deep)
				return out.sum, err
			},
		}
		for name, f := range run {
			t.Run(test.name+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := steadyCounters(t, test.early, test.decided)
					start := time.Now()
					_, err := f(t.Context(), &session{at: c})
					if took := time.Since(start); err != nil || took != test.want || len(c.done()) != n {
						t.Errorf("%v, %d writes in %v, want %d in %v", err, len(c.done()), took, n, test.want)
					}
				})
			})
		}
	}
}

// nested makes n writes, each on a guess at the one before, in one task, and has the service carry
// them out when all are made. It returns how long that took.
func nested(t testing.TB, n int) time.Duration {
	t.Helper()
	c := steadyCounters(t, 0, 0)
	var mu sync.Mutex
	var todo []func()
	c.after = func(_ time.Duration, f func()) {
		mu.Lock()
		defer mu.Unlock()
		todo = append(todo, f)
	}
	ahead := 0
	s := &session{at: c}
	start := time.Now()
	_, err := foresay.Do(t.Context(), func(ctx context.Context) (int, error) {
		for i, sum := 1, 0; i <= n; i++ { // equal calls in a row would have to wait for each other
			sum += i
			if _, err := s.Add(foresay.Predicting(ctx, sum), "a", i, ""); err != nil {
				return 0, err
			}
		}
		ahead = len(todo)
		for i := 0; i < len(todo); i++ { // it grows meanwhile
			todo[i]()
		}
		return 0, nil
	}, deep)
	if err != nil || len(c.done()) != n || len(s.requests) != n || ahead != n {
		t.Fatalf("%v, %d writes by %d requests, of which %d were sent ahead, want %d", err, len(c.done()), len(s.requests),
			ahead, n)
	}
	return time.Since(start)
}

// TestDeepWrites: what a write costs does not grow with how many guesses it stands on. If it did,
// 20,000 would take four times as long as four times 5,000, or nearly so. The shortest of several
// tries counts.
func TestDeepWrites(t *testing.T) {
	const n, parts, tries = 20_000, 4, 8
	one, four := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for range tries {
		one = min(one, nested(t, n))
		sum := time.Duration(0)
		for range parts {
			sum += nested(t, n/parts)
		}
		if four = min(four, sum); race.Enabled || one < 2*four {
			return
		}
	}
	t.Errorf("%d nested writes take %v, %d times as many of a %dth %v", n, one, parts, parts, four)
}

// BenchmarkPredicatedCall is a predicated call on a guess, engine and client node, without a
// network: of 1,000 that stand on each other.
func BenchmarkPredicatedCall(b *testing.B) {
	const n = 1000
	b.ReportAllocs()
	for b.Loop() {
		nested(b, n)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/call")
}

func playSession(t *testing.T, seed uint64) error { return PlaySession(t, seed, nil) }

// TestSessionPrograms: random programs of predicated calls, with guesses that are right and wrong,
// early replies that lie, other services, goroutines, futures and loops, have the result and the
// effects of their sequential execution; and those that are cancelled say so if there may be
// effects yet.
func TestSessionPrograms(t *testing.T) {
	first := seed.First(t, 1)
	for s := first; s < first+uint64(seed.Count(t, 2000)); s++ {
		if err := playSession(t, s); err != nil {
			t.Fatalf("%v\nreplay: FORESAY_SEED=%d FORESAY_SEEDS=1 go test -count=1 -run '^%s$' ./internal/randtest", err, s,
				t.Name())
		}
	}
}

// TestCancelledWrites: a task that is cancelled while predicated calls are under way says that it
// is not known what becomes of them, and says nothing of that if they are answered.
func TestCancelledWrites(t *testing.T) {
	for _, test := range []struct {
		decided time.Duration
		unknown bool
	}{{45 * ms, true}, {5 * ms, false}} {
		for name, loop := range map[string]bool{"task": false, "loop": true} {
			t.Run(fmt.Sprint(name, test.decided), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := steadyCounters(t, 0, test.decided)
					s := &session{at: c}
					ctx, cancel := context.WithTimeout(t.Context(), 20*ms)
					defer cancel()
					step := func(ctx context.Context, i int) (int, bool, error) {
						if i == 5 {
							<-ctx.Done()
							return i, true, ctx.Err()
						}
						_, err := s.Add(foresay.Predicting(ctx, i+1), "a", 1, fmt.Sprint(i))
						return i + 1, false, err
					}
					var err error
					if loop {
						_, err = foresay.Loop(ctx, 0, step)
					} else {
						_, err = foresay.Do(ctx, func(ctx context.Context) (i int, err error) {
							for i < 6 && err == nil {
								i, _, err = step(ctx, i)
							}
							return i, err
						})
					}
					before := len(c.done())
					time.Sleep(time.Second)
					if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, foresay.ErrUnfinished) != test.unknown {
						t.Errorf("the error is %v", err)
					}
					if after := len(c.done()); after != 5 || (after == before) == test.unknown {
						t.Errorf("%d writes when it ended, %d later", before, after)
					}
				})
			})
		}
	}
}

// sessionPlants are bugs in what the engine adds to the tree for predicated calls and loops, and
// one in the tree that only these programs show. The others in the tree are package treebugs'.
func sessionPlants() []planting.Bug {
	bugs := []planting.Bug{
		{ // attempts begin in whatever order goroutines come to it
			Name: "beginInAnyOrder", Test: "TestBeginsInOrder", In: "internal/engine",
			Tests: []string{"TestAssumedHasBegun"},
			Old:   "return a.call.op.Domain != nil && !a.blocking",
			New:   "return !MUTANT && a.call.op.Domain != nil && !a.blocking",
		},
		{ // what another task's guess stands on is not told
			Name: "forgetBasis", Test: "TestSessionsNotice/0",
			Old: "\t\t\tout.all = append(out.all, b.assumptions()...)\n",
			New: "\t\t\tif !MUTANT {\n\t\t\t\tout.all = append(out.all, b.assumptions()...)\n\t\t\t}\n",
		},
		{ // a result does not count as one for which there were effects
			Name: "hideEffects", Test: "TestDependentWrites",
			Old: "&basis{domain, r.tree.HasEffects(), ", New: "&basis{domain, r.tree.HasEffects() && !MUTANT, ",
		},
		{ // nobody is told that a call may yet take effect
			Name: "unsaidOutcome", Test: "TestCancelledWrites",
			Old: "\tif !t.tree.Unknown() {\n", New: "\tif !t.tree.Unknown() || MUTANT {\n",
		},
		{ // of two calls in one place each is sent on guesses that may be right
			Name: "sendBesideUndecided", Dir: "internal/spectree", Test: "TestSessionsNotice/101338",
			Old: "\tif p := t.undecidedAt(c.key); p != nil && p != c { // what both",
			New: "\tif p := t.undecidedAt(c.key); p != nil && p != c && !MUTANT { // what both",
		},
		{ // a loop keeps what its turns have done
			Name: "keepTurns", Test: "TestLoopForgets", In: "internal/engine",
			Old: "\tt.f.task = nil\n", New: "\tif !MUTANT {\n\t\tt.f.task = nil\n\t}\n",
		},
		{ // it begins more turns than it may
			Name: "ignoreDepth", Test: "TestLoop", In: "internal/engine",
			Old: "\tif len(l.turns) < treeLimits(l.cfg.limits).Depth && ",
			New: "\tif (MUTANT || len(l.turns) < treeLimits(l.cfg.limits).Depth) && ",
		},
		{ // it begins them one by one
			Name: "waitForTurns", Test: "TestLoop", In: "internal/engine",
			Old: "\tt.hear(!s.done)\n", New: "\tt.hear(!s.done && !MUTANT)\n",
		},
	}
	for i := range bugs {
		if bugs[i].Dir == "" {
			bugs[i].Dir = "internal/engine"
		}
		if bugs[i].In == "" {
			bugs[i].In = "internal/randtest"
		}
	}
	return bugs
}

// TestSessionPlants plants them: the tests that are named must notice.
func TestSessionPlants(t *testing.T) { planting.Catch(t, sessionPlants()) }

// TestSessionsNotice executes the programs that notice them.
func TestSessionsNotice(t *testing.T) {
	planting.Seeds(t, sessionPlants(), func(seed uint64) error { return playSession(t, seed) })
}

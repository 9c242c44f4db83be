package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/report"
)

// TestPanicsOfCallbacks: functions that only compare or look on do not take a
// task down with them.
func TestPanicsOfCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet := WithLogger(slog.New(slog.DiscardHandler))
		three := func(context.Context) (int, error) { return 3, nil }
		report := WithReport(func(*report.Report) { panic("report") })
		if got, err := Do(t.Context(), three, report, quiet); got != 3 || err != nil {
			t.Errorf("Do: got %v, %v", got, err)
		}
		if got, err := Go(t.Context(), three, report, quiet).Wait(t.Context()); got != 3 || err != nil {
			t.Errorf("Go: got %v, %v", got, err)
		}
		equal := EqualBy(func(int, int) bool { panic("equal") })
		if got, err := Go(t.Context(), three, Guess(3), equal, quiet).Wait(t.Context()); got != 3 || err != nil {
			t.Errorf("EqualBy: got %v, %v", got, err)
		}
		a, b := Go(t.Context(), three), Go(t.Context(), three)
		got, err := Quorum(2, func(int, int) bool { panic("quorum") }, a, b).Wait(t.Context())
		if err == nil {
			t.Errorf("Quorum: got %v although nobody can tell that they agree", got)
		}
	})
}

// TestStrayWait: code that nobody waits for, and that waits itself, with the
// run's own context, does not outlive the task.
func TestStrayWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustCallSite(t, control.CallSiteConfig{Name: "/s/get", Effect: control.EffectNone})
		stray := make(chan error, 1)
		start := time.Now()
		if _, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			go func() {
				_, err := perform(ctx, read(s, "slow", time.Hour, val(1)))
				stray <- err
			}()
			time.Sleep(ms)
			return 0, nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := <-stray; err == nil || time.Since(start) != ms {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

// TestPanicsOnAGuess: what panics on a wrong guess, in a Group or a future that a goroutine of
// the code's own waits for, does not end the process: nothing of the engine's is below that
// goroutine. On a right one it panics there.
func TestPanicsOnAGuess(t *testing.T) {
	fails := func(context.Context) (int, error) { panic("on a guess") }
	outside := func(ctx context.Context) *Future[int] { return Go(context.WithoutCancel(ctx), fails) }
	for name, wait := range map[string]func(ctx context.Context, other *Future[int]) error{
		"group": func(ctx context.Context, _ *Future[int]) error {
			g := NewGroup(ctx)
			g.Go(func(ctx context.Context) error { _, err := fails(ctx); return err })
			return g.Wait()
		},
		"future":         func(ctx context.Context, _ *Future[int]) error { _, err := Go(ctx, fails).Wait(ctx); return err },
		"another task's": func(ctx context.Context, other *Future[int]) error { _, err := other.Wait(ctx); return err },
	} {
		for _, guess := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, guess %d", name, guess), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, other := testCallSites(t), outside(t.Context())
					var panicked atomic.Bool // by a run that may go on after the task
					got, err := Do(t.Context(), func(ctx context.Context) (int, error) {
						v, err := perform(Predicting(ctx, guess), read(s.get, "a", 10*ms, val(1)))
						if err != nil || v == 1 && guess == 2 {
							return v, err
						}
						var wg sync.WaitGroup
						wg.Go(func() {
							defer func() { panicked.Store(recover() != nil) }()
							err = wait(ctx, other)
						})
						wg.Wait()
						return v, err
					})
					if got != 1 || err != nil || panicked.Load() != (guess == 1) {
						t.Errorf("%d, %v, panicked: %v", got, err, panicked.Load())
					}
				})
			})
		}
	}
}

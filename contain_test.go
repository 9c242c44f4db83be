package foresay

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// TestPanicsOfCallbacks: functions that only compare or look on do not take a
// task down with them.
func TestPanicsOfCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet := WithLogger(slog.New(slog.DiscardHandler))
		three := func(context.Context) (int, error) { return 3, nil }
		report := WithReport(func(*Report) { panic("report") })
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
		s := mustSite(t, SiteConfig{Name: "/s/get", Effect: EffectNone})
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

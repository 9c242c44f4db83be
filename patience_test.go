package foresay

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestMinSaving: on a fast network nothing is sent for a caller whose guess is
// about to be settled; where that takes longer than usual, or long, it is.
func TestMinSaving(t *testing.T) {
	for _, tt := range []struct {
		delay    time.Duration
		limits   Limits
		slowDown time.Duration
		want     int // calls that ran for a speculative caller
		took     time.Duration
	}{
		{delay: 100 * time.Microsecond, want: 0, took: 300 * time.Microsecond},
		{delay: 100 * time.Microsecond, limits: Limits{MinSaving: -1}, want: 2, took: 100 * time.Microsecond},
		{delay: 10 * ms, want: 2, took: 10 * ms},
		{delay: 100 * time.Microsecond, slowDown: 10 * ms, want: 2, took: 10*ms + 500*time.Microsecond},
	} {
		t.Run(fmt.Sprint(tt.delay, tt.limits.MinSaving, tt.slowDown), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, s := newWorld(tt.delay), testSites(t)
				chain := func(ctx context.Context) (int, error) {
					for i := range 3 {
						if _, err := perform(Predicting(ctx, 0), w.op(t, s.get, "get k%d", i)); err != nil {
							return 0, err
						}
					}
					return 0, nil
				}
				for range 20 { // the site learns how long its calls take
					if _, err := Do(t.Context(), func(ctx context.Context) (int, error) { return perform(ctx, w.op(t, s.get, "get k")) }); err != nil {
						t.Fatal(err)
					}
				}
				if tt.slowDown > 0 {
					w.delay = tt.slowDown
				}
				start := time.Now()
				if _, err := Do(t.Context(), chain, WithLimits(tt.limits)); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); len(w.spec) != tt.want || took != tt.took {
					t.Errorf("%d calls for a speculative caller, want %d; took %v, want %v", len(w.spec), tt.want, took, tt.took)
				}
			})
		})
	}
}

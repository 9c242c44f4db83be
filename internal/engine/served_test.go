package engine

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// TestServedByALiar: what a server says of the time that it took for a call changes what is
// reported of the call by no more than that took.
func TestServedByALiar(t *testing.T) {
	for _, c := range []struct {
		waited, hooks, want time.Duration
	}{
		{0, 0, 10 * ms},
		{4 * ms, 0, 6 * ms},
		{4 * ms, 3 * ms, 9 * ms},
		{math.MaxInt64, 0, 0},
		{0, math.MaxInt64, 20 * ms},
		{math.MaxInt64, math.MaxInt64, 10 * ms},
		{-4 * ms, 3 * ms, 17 * ms},
		{-math.MaxInt64, 0, 20 * ms},
	} {
		synctest.Test(t, func(t *testing.T) {
			of := &call{task: &task{}}
			of.attempt = &Attempt{call: of, launched: now()}
			time.Sleep(10 * ms)
			of.finished = now()
			of.attempt.Served(c.waited, c.hooks)
			if got := of.took(); got != c.want {
				t.Errorf("waited %v, hooks %v: a call of 10ms would have taken %v, want %v", c.waited, c.hooks, got, c.want)
			}
		})
	}
}

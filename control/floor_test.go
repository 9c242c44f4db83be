package control

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestFloor: the least time counts for one window of time, and for another.
func TestFloor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f floor
		if got := f.Least(); got != 0 {
			t.Errorf("%v of nothing", got)
		}
		took := func(d time.Duration) {
			begun := time.Now()
			time.Sleep(d)
			f.Took(begun, time.Now())
		}
		took(3 * ms)
		took(ms)
		took(5 * ms)
		for i, want := range []time.Duration{ms, 7 * ms, 7 * ms} {
			time.Sleep(floorWindow)
			took(7 * ms)
			if got := f.Least(); got != want {
				t.Errorf("%d windows later: %v, want %v", i+1, got, want)
			}
		}
	})
}

package clock_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/clock"
)

func newSlewed(t *testing.T) *clock.Slewed {
	t.Helper()
	s, err := clock.NewSlewed(500)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSlewedFollowsTheWallClock(t *testing.T) {
	// readings of 300 ns have less than a nanosecond of correction each
	for _, every := range []time.Duration{300, time.Millisecond, 7 * time.Second} {
		s := newSlewed(t)
		steady, off := time.Duration(0), time.Duration(0)
		if got := s.Read(steady, time.Hour); got != time.Hour {
			t.Errorf("it begins at %v", got)
		}
		read := func() time.Duration {
			steady += every
			return s.Read(steady, time.Hour+steady+off)
		}
		for _, step := range []time.Duration{200, -200, 0} {
			off += step * every
			first := read() - steady - time.Hour - (off - step*every) // how much of the step it has made
			if limit := every/2000 + 1; max(first, -first) > limit {
				t.Errorf("every %v: %v of a step of %v at once", every, first, step*every)
			}
			for range 200 * 2000 * 11 / 10 {
				read()
			}
			if got := read(); got != time.Hour+steady+off {
				t.Errorf("every %v: it is still %v off", every, got-time.Hour-steady-off)
			}
		}
	}
}

func TestSlewedNeverFalls(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	s := newSlewed(t)
	steady, last := time.Duration(0), s.Read(0, 0)
	for range 100_000 {
		before := steady
		steady += time.Duration(rnd.Int64N(int64(time.Second))) - 10*time.Millisecond // even if the steady clock does
		now := s.Read(steady, time.Duration(rnd.Int64N(int64(time.Hour))))
		passed := max(0, steady-before)
		if now < last || now-last > passed+passed/2000+1 {
			t.Fatalf("%v after %v, and %v had passed", now, last, passed)
		}
		last, steady = now, max(steady, before)
	}
	for _, ppm := range []int{0, -1, 1_000_000} {
		if _, err := clock.NewSlewed(ppm); err == nil {
			t.Errorf("a correction of %d millionths", ppm)
		}
	}
}

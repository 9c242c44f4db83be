package client

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/store"
)

// plays attempts against a world in which each mode takes its time and aborts with its chance, and
// returns how many of the last thousand were made in mode Predicated.
func playAttempts(c *controller, class string, r *rand.Rand, n int, abort map[Mode]float64) (predicated, switches int) {
	took := map[Mode]time.Duration{Predicated: 130 * time.Millisecond, Spec: 260 * time.Millisecond}
	for i := range n {
		before := c.class(class).chosen
		m := c.choose(class)
		v := store.Committed
		if r.Float64() < abort[m] {
			v = store.Aborted
		}
		c.saw(class, m, took[m], v)
		if c.class(class).chosen != before {
			switches++
		}
		if i >= n-1000 && m == Predicated {
			predicated++
		}
	}
	return predicated, switches
}

func TestControllerChooses(t *testing.T) {
	for _, tc := range []struct {
		predicated, spec float64 // chances of an abort
		want             Mode
	}{
		{0, 0, Predicated}, {0.3, 0.1, Predicated}, {0.45, 0.3, Predicated}, {0.9, 0.2, Spec}, {0.7, 0.1, Spec},
		{1, 0.5, Spec},
	} {
		var c controller
		got, _ := playAttempts(&c, "x", rand.New(rand.NewPCG(1, 2)), 5000, map[Mode]float64{Predicated: tc.predicated,
			Spec: tc.spec})
		if chosen := c.class("x").chosen; chosen != tc.want || tc.want == Predicated && got < 900 || tc.want == Spec &&
			got > 100 {
			t.Errorf("aborts of %v and %v: %v is chosen, and %d of 1000 attempts were predicated; want %v", tc.predicated,
				tc.spec, chosen, got, tc.want)
		}
	}
}

// Where the modes cost the same, the choice does not go to and fro all the time.
func TestControllerHasHysteresis(t *testing.T) {
	var c controller
	_, switches := playAttempts(&c, "x", rand.New(rand.NewPCG(1, 2)), 20000, map[Mode]float64{Predicated: 0.5, Spec: 0})
	if switches > 200 {
		t.Errorf("the choice changed %d times in 20000 attempts", switches)
	}
}

// When the world changes, the choice follows.
func TestControllerFollows(t *testing.T) {
	var c controller
	r := rand.New(rand.NewPCG(1, 2))
	playAttempts(&c, "x", r, 3000, map[Mode]float64{Predicated: 0.9, Spec: 0.2})
	if got, _ := playAttempts(&c, "x", r, 5000, map[Mode]float64{Predicated: 0.1, Spec: 0.1}); got < 900 {
		t.Errorf("%d of the last 1000 attempts were predicated after aborts became rare", got)
	}
	if got, _ := playAttempts(&c, "other", r, 2000, map[Mode]float64{Predicated: 0.95, Spec: 0}); got > 100 {
		t.Errorf("%d of 1000 attempts of another class were predicated, which nearly always failed", got)
	}
}

func TestControllerIsBounded(t *testing.T) {
	var c controller
	for i := range 3 * maxClasses {
		c.choose(fmt.Sprint(i))
	}
	if len(c.classes) > maxClasses+1 {
		t.Errorf("it remembers %d classes", len(c.classes))
	}
}

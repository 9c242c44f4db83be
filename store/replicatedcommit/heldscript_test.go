package replicatedcommit

import (
	"testing"
	"time"

	"github.com/foresay/foresay/store"
)

// TestOwnSiteWaits: Oregon knows that a transaction from Ireland is decided, and Ireland is about
// to hear of it. The next one from there needs the two of them if Ireland waits, and else Seoul,
// which is far.
func TestOwnSiteWaits(t *testing.T) {
	for _, tc := range []struct {
		hold bool
		want time.Duration
	}{{true, 140 * time.Millisecond}, {false, 243 * time.Millisecond}} {
		s := newPaperScript(t)
		s.read(201, "k") // the client knows now which site is its own
		s.run(time.Second)
		first := s.submit(201, "first", "k")
		s.run(100 * time.Millisecond)
		d, took := s.done(201, s.submitHeld(201, tc.hold, "second", "k"))
		want(t, d, store.Committed)
		if took != tc.want {
			t.Errorf("hold %v: the commit takes %v, want %v", tc.hold, took, tc.want)
		}
		d, _ = s.done(201, first)
		want(t, d, store.Committed)
		s.run(time.Second)
		if g, _ := s.read(200, "k"); string(g.Value.Bytes) != "second" {
			t.Errorf("hold %v: k is %+v", tc.hold, g)
		}
	}
}

// TestHoldEnds: with a site gone two transactions block each other, and one that waits for them is
// refused after a round trip. Without that bound it would wait until its client asks what has
// become of it.
func TestHoldEnds(t *testing.T) {
	s := newScript(t, nil)
	s.read(200, "k")
	s.run(time.Second)
	s.crashSite(2)
	s.submit(200, "a", "k")
	s.submit(201, "b", "k")
	s.run(roundTrip) // each has one vote
	d, took := s.done(200, s.submitHeld(200, true, "c", "k"))
	want(t, d, store.Aborted)
	s.restartSite(2)
	s.settle()
	if took < roundTrip || took > 3*roundTrip/2 {
		t.Errorf("it is refused after %v, want a round trip", took)
	}
}

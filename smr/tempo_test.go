package smr

import (
	"testing"
	"time"
)

// TestTempo: what is waited for follows what answers take, between the configured round trip and a bound, and forgets it.
func TestTempo(t *testing.T) {
	const roundTrip = 20 * time.Millisecond
	tempo := NewTempo(roundTrip)
	now := time.Hour
	want := func(what string, least, most time.Duration) {
		t.Helper()
		if d := tempo.Times(1); d < least || d > most {
			t.Errorf("%s a round trip is %v, want %v to %v", what, d, least, most)
		}
	}
	want("at first", roundTrip, roundTrip)
	tempo.Saw(now, 5*time.Millisecond)
	want("after a quick answer", roundTrip, roundTrip)
	tempo.Saw(now, 300*time.Millisecond)
	want("after a slow answer", 300*time.Millisecond, 300*time.Millisecond)
	for range 100 {
		tempo.Saw(now, time.Millisecond)
	}
	want("after many quick ones at once", 250*time.Millisecond, 300*time.Millisecond)
	for range 60 {
		now += roundTrip
		tempo.Saw(now, time.Millisecond)
	}
	want("a second later", roundTrip, roundTrip)
	for range 20 {
		tempo.Missed(now)
	}
	want("after none at all", nearTempo, nearTempo)
}

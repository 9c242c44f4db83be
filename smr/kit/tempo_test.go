package kit

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// TestTempo: what is waited for follows what answers take, between the configured round trip and a
// bound, and forgets it.
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

// TestPing: an answer tells how long answers take, and beats that count what is waited for come as
// much slower; other beats of an engine go on.
func TestPing(t *testing.T) {
	const roundTrip = 20 * time.Millisecond
	env := protocol.NewEnv[smr.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	tempo, peer := NewTempo(roundTrip), NewTempo(roundTrip)
	count := func(from time.Duration) (beats int) {
		for now := from; now < from+80*roundTrip; now += roundTrip / 2 {
			if tempo.Beat(now, 0.5) {
				beats++
			}
		}
		return beats
	}
	env.Begin(time.Hour)
	tempo.Ask(env, 2)
	ping := env.Out[0].Msg
	env.Begin(5 * time.Hour) // its clock does not matter
	peer.Receive(env, 1, ping)
	pong := env.Out[0].Msg
	if n := count(time.Hour); n != 160 {
		t.Errorf("%d beats in 80 round trips, want 160", n)
	}
	env.Begin(time.Hour + 4*roundTrip)
	tempo.Receive(env, 2, pong)
	if n := count(2 * time.Hour); tempo.Times(1) != 4*roundTrip || n != 40 {
		t.Errorf("a round trip is %v, %d beats in 80 configured ones, want %v and 40", tempo.Times(1), n, 4*roundTrip)
	}
}

package multipaxos

import (
	"testing"
	"time"

	"github.com/foresay/foresay/smr/kit"
)

// TestStateWaitsForThePresentRoundTrip: a leader sends a follower parts of the state again when
// their answer is late by what answers take at present, and not by the configuration.
func TestStateWaitsForThePresentRoundTrip(t *testing.T) {
	s := newScript(t)
	b := s.campaign()
	s.receive(2, kit.Letter{Disk: 2, Msg: promise{Ballot: b, Low: 1, Last: true}})
	s.receive(3, kit.Letter{Disk: 3, Msg: promise{Ballot: b, Low: 1, Last: true}})
	s.r.Tempo.Saw(time.Hour, 5*s.r.Cfg.RoundTrip)
	chunks := func(at time.Duration, call func()) (n int) {
		s.env.Begin(at)
		call()
		for _, e := range s.env.Out {
			if _, ok := kit.Inside(e.Msg).(kit.SnapshotChunk); ok {
				n++
			}
		}
		return n
	}
	s.r.sendSnapshot(s.env, s.r.peer(4))
	if n := chunks(time.Hour, func() { s.r.Expire(s.env, kit.TransferTimer{To: 4}) }); n != 1 {
		t.Fatalf("the state of a new group was sent in %d parts, want 1", n)
	}
	again := func() { s.r.onBeat(s.env) }
	if n := chunks(time.Hour+14*s.r.Cfg.RoundTrip, again); n != 0 {
		t.Errorf("%d parts were sent again before they could be answered", n)
	}
	if n := chunks(time.Hour+15*s.r.Cfg.RoundTrip, again); n != 1 {
		t.Errorf("%d parts were sent again after three round trips, want 1", n)
	}
}

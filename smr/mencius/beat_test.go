package mencius

import (
	"testing"
	"time"

	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/smrtest"
)

// TestBeatsSettleBallots: a track is full, so its leader sends no Accept any more, only beats. A
// replica whose ballot is another one must not ignore them: it tells the leader of a higher ballot,
// promises the leader's own, and asks for the positions that it lacks.
func TestBeatsSettleBallots(t *testing.T) {
	low := kit.NewBallot(0, 2)
	high := kit.NewBallot(low, 3)
	for name, c := range map[string]struct {
		promised, led kit.Ballot
		refused       bool
		missing       bool
	}{
		"a lower ballot":  {promised: high, led: low, refused: true},
		"the same ballot": {promised: high, led: high, missing: true},
		"a higher ballot": {promised: low, led: high, missing: true},
	} {
		r, env, disk := begun(t)
		l := r.epoch.tracks[1]
		l.silent = patience // or it would not promise
		r.Receive(env, l.leaderOf(c.promised), kit.Letter{Disk: kit.Incarnation(l.leaderOf(c.promised)),
			Msg: prepare{place{Epoch: 1, Track: 1, Ballot: c.promised}, 1}})
		disk.Write(env, 0)
		leader := l.leaderOf(c.led)
		l.silent = 3
		r.Receive(env, leader, kit.Letter{Disk: kit.Incarnation(leader),
			Msg: beat{Epoch: 1, Leads: []led{{Track: 1, Ballot: c.led, Commit: 5}}}})
		var refused, lacking bool
		for _, e := range env.Out {
			switch m := kit.Inside(e.Msg).(type) {
			case refusal:
				refused = e.To == leader && m.Ballot == high
			case missing:
				lacking = e.To == leader && m.Ballot == c.led && m.Want == 1
			}
		}
		if refused != c.refused || lacking != c.missing || l.promised != high || l.commit != 0 ||
			(l.silent == 0) == c.refused {
			t.Errorf("%s: refused %v, asks for what it lacks %v, promised %v, decided %d, silent for %d beats", name, refused,
				lacking, l.promised, l.commit, l.silent)
		}
		disk.Write(env, 0)
		if again, _ := smrtest.OnDisk(t, disk, newReplica, three()); again.epoch.tracks[1].promised != high {
			t.Errorf("%s: after a crash it has promised %v, want %v", name, again.epoch.tracks[1].promised, high)
		}
	}
}

// TestFiveChangeMembersUnderFaults: an epoch of five ends soon though its members have promised
// different ballots. While they ignored each other's beats, this seed took minutes.
func TestFiveChangeMembersUnderFaults(t *testing.T) {
	sc := smrtest.Scenario{Protocol: Protocol(), Seed: 10155, Replicas: 5, Faults: sim.StreamFaults,
		Settle: 5 * time.Second}
	if r, err := smrtest.Play(sc); err != nil {
		t.Errorf("%v: %.900v", r, err)
	}
}

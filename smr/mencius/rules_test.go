package mencius

import (
	"slices"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/smrtest"
)

// TestPromiseIsOnDisk: after a promise of a ballot of a track nothing is accepted in a lower one.
func TestPromiseIsOnDisk(t *testing.T) {
	ballot := kit.NewBallot(0, 2)
	smrtest.PromiseIsOnDisk(t, newReplica, three(),
		func() (*replica, *protocol.Env[smr.Message], *smrtest.Disk) { return begun(t) },
		func(r *replica, env *protocol.Env[smr.Message]) { r.cut(env, r.journal.Snapshot()) },
		func(*replica) smrtest.Promised {
			return smrtest.Promised{
				Prepares: []smr.Message{prepare{place{Epoch: 1, Track: 1, Ballot: ballot}, 1}}, Promise: promise{},
				Lower: accept{place: place{Epoch: 1, Track: 1}, First: 1, Items: []item{{Entry: kit.Entry{Kind: kit.NoOp}}}},
				From:  2,
				Refuses: func(m smr.Message) bool {
					refusal, ok := m.(refusal)
					return ok && refusal.Ballot == ballot
				},
			}
		})
}

// TestWhatOthersRelyOnIsOnDisk looks at the messages of replicas that must not be forgotten.
func TestWhatOthersRelyOnIsOnDisk(t *testing.T) {
	smrtest.FromDisk(t, Protocol(), accept{}, accepted{}, promise{})
}

// TestRevokerTakesTheHighestBallot: of what acceptors have accepted for a position, the vote of the
// highest ballot binds who takes a track over, in whatever order they tell it.
func TestRevokerTakesTheHighestBallot(t *testing.T) {
	lower := kit.NewBallot(0, 2)
	higher := kit.NewBallot(lower, 3)
	for _, votes := range [][2]vote{
		{{Ballot: lower, Entry: work(1)}, {Ballot: higher, Entry: work(2)}},
		{{Ballot: higher, Entry: work(2)}, {Ballot: lower, Entry: work(1)}},
	} {
		r, env, disk := begun(t)
		l := r.epoch.tracks[1]
		l.above = higher // the others have refused lower ones
		r.campaign(env, l)
		ballot := l.cand.ballot
		disk.Write(env, 0)
		for i, v := range votes {
			from := protocol.ID(2 + i)
			p := promise{place: place{Epoch: 1, Track: 1, Ballot: ballot}, Low: 1, Votes: []vote{v}, Last: true}
			r.Receive(env, from, kit.Letter{Disk: kit.Incarnation(from), Msg: p})
		}
		own := slices.Clone(env.Out)
		disk.Write(env, 0)
		for _, e := range own { // what it promises itself counts when it is on its disk
			if e.Kind == protocol.KindSend && e.To == 1 {
				r.Receive(env, 1, e.Msg)
			}
		}
		if l.lead == nil || l.at(1).Entry.Seq != 2 {
			t.Errorf("votes %+v: leads %v, and proposes %+v", votes, l.lead != nil, l.at(1).Entry)
		}
	}
}

// TestLogGoesBeforeAState: who has got a part of the state meanwhile, from somebody else, gets what
// it lacks from the log, and not a state that is on its way to it and is older.
func TestLogGoesBeforeAState(t *testing.T) {
	r, env, _ := begun(t)
	for _, l := range r.epoch.tracks {
		votes := make([]vote, 4)
		for i := range votes {
			votes[i].Entry.Kind = kit.NoOp
		}
		r.accept(l, 1, votes)
		l.commit = 4
	}
	r.execute(env)
	if r.State.Applied() != 12 {
		t.Fatalf("applied up to %d", r.State.Applied())
	}
	answer := func(m fetch) (log, state bool) {
		env.Begin(0)
		r.Receive(env, 4, kit.Letter{Disk: 4, Msg: m})
		for _, e := range env.Out {
			switch m := kit.Inside(e.Msg).(type) {
			case decided:
				log = m.First == 4
			case kit.SnapshotChunk:
				state = true
			}
		}
		return log, state
	}
	if log, _ := answer(fetch{}); log {
		t.Error("who knows no epoch gets a part of the log")
	}
	if log, state := answer(fetch{Epoch: 1, Applied: 3}); !log || state {
		t.Errorf("who has the slots up to 3 gets those behind them: %v; a state: %v", log, state)
	}
}

package raft

import (
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

func heartbeat(r *replica, env *protocol.Env[smr.Message], from protocol.ID, term uint64) {
	r.Receive(env, from, kit.Letter{Disk: kit.Incarnation(from), Msg: rpc{&raftpb.Message{
		Type: raftpb.MsgHeartbeat.Enum(), From: new(uint64(from)), To: new(uint64(1)), Term: &term, Commit: new(uint64(1)),
	}}})
}

func preVote(r *replica, env *protocol.Env[smr.Message], from protocol.ID, term uint64) (granted bool) {
	env.Out = env.Out[:0]
	r.Receive(env, from, kit.Letter{Disk: kit.Incarnation(from), Msg: rpc{&raftpb.Message{
		Type: raftpb.MsgPreVote.Enum(), From: new(uint64(from)), To: new(uint64(1)), Term: &term, Index: new(uint64(1)),
		LogTerm: new(uint64(1)),
	}}})
	for _, e := range env.Out {
		if m, ok := kit.Inside(e.Msg).(rpc); ok && m.GetType() == raftpb.MsgPreVoteResp && e.To == from {
			return !m.GetReject()
		}
	}
	return false
}

// "If a server receives a RequestVote request within the minimum election timeout of hearing from a
// current leader, it does not update its term or grant its vote" [Raft thesis §4.2.3].
func TestNoVoteWhileThereIsALeader(t *testing.T) {
	r, env := lone(t)
	env.Begin(time.Second)
	heartbeat(r, env, 2, 2)
	if wait, set := armed(env, missedTimer{}); !set || wait != r.patience() {
		t.Errorf("the leader is missed after %v, want %v", wait, r.patience())
	}
	env.Begin(time.Second + r.patience() - 1)
	if preVote(r, env, 3, 3) {
		t.Error("a vote was promised although the leader was heard just now")
	}
	env.Begin(time.Second / 2) // the clock is set back, which is nothing that the others know of
	r.Expire(env, missedTimer{})
	if !preVote(r, env, 3, 3) {
		t.Error("no vote was promised although the leader was not heard for long")
	}
}

// armed returns the time for which a timer was set last.
func armed(env *protocol.Env[smr.Message], timer protocol.Timer) (wait time.Duration, set bool) {
	for _, e := range env.Out {
		if e.Kind == protocol.KindAfter && e.Timer == timer {
			wait, set = e.Delay, true
		}
	}
	return wait, set
}

// A leader that hears from no majority for an election timeout steps down, so that clients look for
// another [Raft thesis §6.2].
func TestLeaderWithoutAQuorumResigns(t *testing.T) {
	r, env := lone(t)
	elect(t, r, env)
	term := r.core.term()
	for now := time.Duration(0); r.core.leads(); now += r.beat() {
		if now > 2*r.patience() {
			t.Fatalf("it still leads after %v in which it has heard nobody", now)
		}
		env.Begin(now)
		r.Expire(env, beatTimer{})
	}
	if got := r.core.term(); got != term+1 {
		t.Errorf("it went from term %d to %d", term, got)
	}
}

// elect makes the replica the leader, with the vote of 2, which follows it.
func elect(t *testing.T, r *replica, env *protocol.Env[smr.Message]) {
	t.Helper()
	env.Begin(0)
	r.Expire(env, electionTimer{})
	for range 6 {
		out := append([]protocol.Effect[smr.Message](nil), env.Out...)
		env.Begin(0)
		for _, e := range out {
			m, ok := kit.Inside(e.Msg).(rpc)
			switch {
			case !ok:
			case e.To == r.Cfg.ID:
				r.Receive(env, e.To, e.Msg)
			case e.To == 2 && m.GetType() == raftpb.MsgPreVote:
				answer(r, env, m, raftpb.MsgPreVoteResp, 0)
			case e.To == 2 && m.GetType() == raftpb.MsgVote:
				answer(r, env, m, raftpb.MsgVoteResp, 0)
			case e.To == 2 && m.GetType() == raftpb.MsgApp:
				answer(r, env, m, raftpb.MsgAppResp, m.GetIndex()+uint64(len(m.GetEntries())))
			}
		}
	}
	if !r.core.leads() {
		t.Fatal("it does not lead, with two votes of three")
	}
}

func answer(r *replica, env *protocol.Env[smr.Message], m rpc, kind raftpb.MessageType, index uint64) {
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: rpc{&raftpb.Message{Type: &kind, From: new(uint64(2)), To: new(uint64(1)),
		Term: m.Term, Index: &index}}})
}

// "The leader can write to its disk in parallel with replicating to the followers" [Raft thesis
// §10.2.1]: its appends do not wait for its disk, and it counts itself when its own record is
// durable.
func TestLeaderWritesInParallel(t *testing.T) {
	r, env := lone(t)
	elect(t, r, env)
	env.Begin(0)
	r.Receive(env, 1001, kit.OpenRequest{Nonce: 1})
	var ahead, own, records int
	for _, e := range env.Out {
		m, ok := kit.Inside(e.Msg).(rpc)
		switch {
		case e.Kind == protocol.KindAppend:
			records++
		case ok && e.Kind == protocol.KindSendAhead && m.GetType() == raftpb.MsgApp:
			ahead++
		case ok && e.Kind == protocol.KindSend && e.To == 1 && m.GetType() == raftpb.MsgAppResp:
			own++
		}
	}
	if records != 1 || ahead != 1 || own != 1 { // 3 has not answered yet, and is being probed
		t.Errorf("%d records, %d appends sent ahead, %d acknowledgements to itself behind the disk", records, ahead, own)
	}
}

// A candidate asks for votes when its own vote is on disk. If others elected it before, it could
// forget the term in a crash and lead in it a second time: an entry that a follower has from its
// first life would count for another one of the same index and term.
func TestCandidateAsksWhenItsOwnVoteIsOnDisk(t *testing.T) {
	r, env := lone(t)
	env.Begin(0)
	r.Expire(env, electionTimer{})
	deliverToSelf(r, env)
	env.Begin(0)
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: rpc{&raftpb.Message{Type: raftpb.MsgPreVoteResp.Enum(),
		From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(2))}}})
	asked, recorded := 0, false
	for _, e := range env.Out {
		if rec, ok := kit.Inside(e.Msg).(record); ok && e.Kind == protocol.KindAppend && rec.hard.term == 2 &&
			rec.hard.vote == 1 {
			recorded = true
		}
		if m, ok := kit.Inside(e.Msg).(rpc); ok && m.GetType() == raftpb.MsgVote {
			asked++
			if e.Kind != protocol.KindSend {
				t.Errorf("it asks %d ahead of its disk", e.To)
			}
		}
	}
	if asked != 2 || !recorded {
		t.Errorf("it asked %d peers in the call in which it recorded its vote: %v", asked, recorded)
	}
}

// Members take turns when a leader is missed, so that few elections fail.
func TestTurns(t *testing.T) {
	r, env := lone(t)
	if got := r.turn(); got != 1 { // no leader yet, term 1, the first of three
		t.Errorf("turn %d without a leader, want 1", got)
	}
	for _, tc := range []struct {
		leader protocol.ID
		want   int
	}{{2, 1}, {3, 0}} {
		heartbeat(r, env, tc.leader, uint64(tc.leader)+1)
		if got := r.turn(); got != tc.want {
			t.Errorf("turn %d after leader %d, want %d", got, tc.leader, tc.want)
		}
	}
}

// A replica knows from its disk with whom its group began, whatever its configuration says after a
// restart.
func TestGroupIsRememberedFromItsBeginning(t *testing.T) {
	keys := keySpace{}
	start := func(members ...protocol.ID) *replica {
		cfg := smr.ReplicaConfig{ID: 1, Machine: blank{}}
		for _, id := range members {
			cfg.Members = append(cfg.Members, smr.Member{ID: id})
		}
		r, err := newReplica(cfg)
		if err != nil {
			t.Fatal(err)
		}
		env := protocol.NewEnv[smr.Message](keys, 1, rand.New(rand.NewPCG(1, 1)))
		env.Begin(0)
		r.Start(env, nil)
		for _, e := range env.Out {
			if e.Kind == protocol.KindPut {
				keys[string(e.Key)] = e.Value
			}
		}
		return r
	}
	start(1, 2, 3)
	if got := len(start(1, 2, 3, 4, 5).State.Members()); got != 3 {
		t.Errorf("after a restart with another configuration the group has %d members, want the 3 of its beginning", got)
	}
}

// keySpace is a key space without order.
type keySpace map[string][]byte

func (k keySpace) Get(key []byte) ([]byte, bool) {
	v, ok := k[string(key)]
	return v, ok
}

func (k keySpace) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		for _, key := range slices.Sorted(maps.Keys(k)) {
			if key >= string(lo) && (hi == nil || key < string(hi)) && !yield([]byte(key), k[key]) {
				return
			}
		}
	}
}

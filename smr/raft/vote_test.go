package raft

import (
	"slices"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/smrtest"
)

// onDisk starts replica 1 of three with a disk, and admits it.
func onDisk(t *testing.T, disk *smrtest.Disk) (*replica, *protocol.Env[smr.Message]) {
	t.Helper()
	cfg := smr.ReplicaConfig{ID: 1, Members: smrtest.Group(3), Machine: blank{}}
	r, env := smrtest.OnDisk(t, disk, newReplica, cfg)
	disk.Admit(r, env, cfg, r.Admission.Own())
	env.Begin(time.Minute)
	return r, env
}

// vote asks for the replica's vote, and reports whether it is given.
func vote(r *replica, env *protocol.Env[smr.Message], from protocol.ID, term uint64) (granted bool) {
	r.Receive(env, from, kit.Letter{Disk: kit.Incarnation(from), Msg: rpc{&raftpb.Message{
		Type: raftpb.MsgVote.Enum(), From: new(uint64(from)), To: new(uint64(1)), Term: &term, Index: new(uint64(1)),
		LogTerm: new(uint64(1)),
	}}})
	return slices.ContainsFunc(env.Out, func(e protocol.Effect[smr.Message]) bool {
		m, ok := kit.Inside(e.Msg).(rpc)
		return ok && e.Kind == protocol.KindSend && m.GetType() == raftpb.MsgVoteResp && e.To == from && !m.GetReject()
	})
}

// TestVoteIsOnDisk: a replica votes once in a term, crashes or not; also if it knew of the term
// before, so that the vote is all that is new [Raft thesis §3.8].
func TestVoteIsOnDisk(t *testing.T) {
	for _, known := range []bool{false, true} {
		var disk smrtest.Disk
		r, env := onDisk(t, &disk)
		const term = 7
		if known { // by a candidate whose log is too old to be voted for
			r.Receive(env, 3, kit.Letter{Disk: 3, Msg: rpc{&raftpb.Message{
				Type: raftpb.MsgVote.Enum(), From: new(uint64(3)), To: new(uint64(1)), Term: new(uint64(term)),
				Index: new(uint64(0)), LogTerm: new(uint64(0)),
			}}})
			disk.Write(env, time.Minute)
			if r.core.hard.term != term || r.core.hard.vote != 0 {
				t.Fatalf("term %d, vote for %d, want %d and none", r.core.hard.term, r.core.hard.vote, term)
			}
		}
		if !vote(r, env, 2, term) {
			t.Fatalf("the term was known %v: no vote for the first that asks", known)
		}
		disk.Write(env, time.Minute)
		r, env = onDisk(t, &disk)
		if vote(r, env, 3, term) {
			t.Errorf("the term was known %v: two votes in a term, with a crash between", known)
		}
		if !vote(r, env, 2, term) {
			t.Errorf("the term was known %v: the first one is not answered again", known)
		}
	}
}

// carryOut has a replica get what it sends itself, which is when the disk has what it wrote, until
// nothing is left.
func carryOut(r *replica, env *protocol.Env[smr.Message], disk *smrtest.Disk, now time.Duration) {
	for {
		var own []smr.Message
		for _, e := range env.Out {
			if e.Kind == protocol.KindSend && e.To == 1 {
				own = append(own, e.Msg)
			}
		}
		disk.Write(env, now)
		if len(own) == 0 {
			return
		}
		for _, m := range own {
			r.Receive(env, 1, m)
		}
	}
}

// TestLeaderWithoutMajorityStops elects a replica that nobody answers any more: after a while it
// leads no longer, so that clients look elsewhere.
func TestLeaderWithoutMajorityStops(t *testing.T) {
	var disk smrtest.Disk
	r, env := onDisk(t, &disk)
	now := time.Minute
	r.Expire(env, electionTimer{})
	carryOut(r, env, &disk, now)
	for _, kind := range []raftpb.MessageType{raftpb.MsgPreVoteResp, raftpb.MsgVoteResp} {
		r.Receive(env, 2, kit.Letter{Disk: 2, Msg: rpc{&raftpb.Message{Type: kind.Enum(), From: new(uint64(2)),
			To: new(uint64(1)), Term: new(uint64(2))}}})
		carryOut(r, env, &disk, now)
	}
	if !r.core.leads() {
		t.Fatal("the replica does not lead, though another one votes for it")
	}
	began, patience := now, r.patience()
	for r.core.leads() && now < began+time.Minute {
		now += r.beat()
		env.Begin(now)
		r.Expire(env, beatTimer{})
		carryOut(r, env, &disk, now)
	}
	if led := now - began; led < patience || led > patience+2*r.beat() {
		t.Errorf("the replica led for %v without an answer, want about %v", led, patience)
	}
}

// TestBusyLeaderIsForgivenOnce: a leader that was silent for a while is waited for longer, but not
// for good if it is heard all the time after that.
func TestBusyLeaderIsForgivenOnce(t *testing.T) {
	var disk smrtest.Disk
	r, env := onDisk(t, &disk)
	now := time.Hour
	hear := func(leader protocol.ID, term uint64) {
		env.Begin(now)
		r.Receive(env, leader, kit.Letter{Disk: kit.Incarnation(leader),
			Msg: rpc{&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: new(uint64(leader)), To: new(uint64(1)),
				Term: &term}}})
	}
	hear(2, 1)
	usual := r.patience()
	now += 10 * usual
	hear(3, 2)
	if r.patience() != usual {
		t.Errorf("the patience is %v when another replica leads, %v before", r.patience(), usual)
	}
	now += usual
	hear(3, 2)
	if r.patience() < 2*usual {
		t.Errorf("the patience is %v when the leader was silent for %v", r.patience(), usual)
	}
	for range 6000 {
		now += 10 * time.Millisecond
		hear(3, 2)
	}
	if r.patience() != usual {
		t.Errorf("a minute later the patience is %v, want %v", r.patience(), usual)
	}
}

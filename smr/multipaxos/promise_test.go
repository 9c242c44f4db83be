package multipaxos

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/smrtest"
)

// onDisk starts replica 1 of three with a disk, and admits it.
func onDisk(t *testing.T, disk *smrtest.Disk) (*replica, *protocol.Env[smr.Message]) {
	t.Helper()
	cfg := smr.ReplicaConfig{ID: 1, Members: smrtest.Group(3), Machine: kv.New()}
	r, env := smrtest.OnDisk(t, disk, newReplica, cfg)
	disk.Admit(r, env, cfg, r.Admission.Own())
	return r, env
}

// refuses has replica 2 ask for something to be accepted in a ballot, and reports whether it is
// refused, with which promise.
func refuses(r *replica, env *protocol.Env[smr.Message], b kit.Ballot) (promised kit.Ballot) {
	env.Begin(0)
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: accept{Ballot: b, First: 1, Entries: []kit.Entry{value(1)}}})
	for _, e := range env.Out {
		if m, ok := kit.Inside(e.Msg).(refusal); ok {
			promised = m.Promised
		}
	}
	return promised
}

// TestImpliedPromiseIsOnDisk: who has answered an Accept of a ballot has promised it, in phase 1 or
// not, also if it was sent no entries, or could not take them. After a crash it accepts nothing in
// a lower one: a leader of the higher one was confirmed by it, and has answered reads.
func TestImpliedPromiseIsOnDisk(t *testing.T) {
	low, high := kit.NewBallot(0, 2), kit.NewBallot(kit.NewBallot(0, 2), 3)
	for name, m := range map[string]accept{
		"a beat":       {Ballot: high, First: 1, Round: 1},
		"after a gap":  {Ballot: high, First: 5, Entries: []kit.Entry{value(5)}},
		"with entries": {Ballot: high, First: 1, Entries: []kit.Entry{value(2)}},
	} {
		var disk smrtest.Disk
		r, env := onDisk(t, &disk)
		r.Receive(env, 3, kit.Letter{Disk: 3, Msg: m})
		disk.Write(env, 0)
		r, env = onDisk(t, &disk)
		if got := refuses(r, env, low); got != high {
			t.Errorf("%s of ballot %v, a crash, and an Accept of %v: refused for the promise %v", name, high, low, got)
		}
	}
}

// TestPromiseSurvivesACut: a log that is cut, by a snapshot of the replica's own or by one that it
// gets, keeps what the replica has promised.
func TestPromiseSurvivesACut(t *testing.T) {
	low, high := kit.NewBallot(0, 2), kit.NewBallot(kit.NewBallot(0, 2), 3)
	for _, installed := range []bool{false, true} {
		var disk smrtest.Disk
		r, env := onDisk(t, &disk)
		entries := make([]kit.Entry, 40)
		for i := range entries {
			entries[i].Kind = kit.NoOp
		}
		r.Receive(env, 2, kit.Letter{Disk: 2, Msg: accept{Ballot: low, First: 1, Commit: 40, Entries: entries}})
		disk.Write(env, 0)
		r.Receive(env, 3, kit.Letter{Disk: 3, Msg: prepare{Ballot: high, Low: 41}})
		disk.Write(env, 0)
		if installed {
			other := kit.NewState(kv.New(), r.State.Members())
			other.Skip(60)
			data, err := other.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			r.Install(env, smrtest.Arrive(t, env, r.State, kit.Snapshot{Slot: 60, Data: data}, nil))
		} else {
			r.Cfg.SnapshotEvery = 1
			r.log.journal.MaybeSave(env, nil)
		}
		disk.Write(env, 0)
		if len(disk.Log) != 1 {
			t.Fatalf("installed %v: the log has %d records, want that of the promise alone", installed, len(disk.Log))
		}
		r, env = onDisk(t, &disk)
		if got := refuses(r, env, low); got != high {
			t.Errorf("installed %v: promised %v, cut, crashed, and refused an Accept of %v for the promise %v", installed, high,
				low, got)
		}
	}
}

// TestPromisesAfterACutDoNotCount: an acceptor that has thrown away slots that the candidate lacks
// does not tell what was decided there. The candidate must not lead with its promise: it would fill
// them.
func TestPromisesAfterACutDoNotCount(t *testing.T) {
	s := newScript(t, acceptRecord{Ballot: 1<<32 | 2, First: 1, Commit: 2, Entries: []kit.Entry{value(1), value(2)}})
	b := s.campaign()
	s.receive(2, kit.Letter{Disk: 2, Msg: promise{Ballot: b, Low: 3, Base: 3, Commit: 5, Last: true}})
	s.receive(3, kit.Letter{Disk: 3, Msg: promise{Ballot: b, Low: 3, Base: 5, Commit: 5, Last: true}})
	if s.r.role == leader || s.r.candidacy.agreed.Has(2) || s.r.candidacy.agreed.Has(3) {
		t.Fatalf("it is %v with promises of those who have slots 4 and 5 in a snapshot alone", s.r.role)
	}
	s.receive(4, kit.Letter{Disk: 4, Msg: promise{Ballot: b, Low: 3, Base: 2, Commit: 3, Last: true,
		Slots: []vote{{1<<32 | 2, value(3)}}}})
	if s.r.role == leader {
		t.Fatal("two promises that count, of five, are enough")
	}
	s.receive(5, kit.Letter{Disk: 5, Msg: promise{Ballot: b, Low: 3, Base: 0, Last: true}})
	if s.r.role != leader || s.r.commit != 3 {
		t.Errorf("with three promises that count it is %v, and decided %d, want that it leads, and 3", s.r.role, s.r.commit)
	}
}

// TestOwnVoteWaitsForTheDisk: a leader sends ahead of its disk; one of three that counted its own
// vote at once would decide with another's, and forget its own in a crash.
func TestOwnVoteWaitsForTheDisk(t *testing.T) {
	var disk smrtest.Disk
	r, env := onDisk(t, &disk)
	r.Expire(env, campaignTimer{})
	b := r.candidacy.ballot
	disk.Write(env, 0)
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: preVoteReply{Ballot: b, Granted: true}})
	disk.Write(env, 0)
	own := r.Admission.Own()
	r.Receive(env, 1, kit.Letter{Disk: own, Msg: promise{Ballot: b, Low: 1, Last: true}})
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: promise{Ballot: b, Low: 1, Last: true}})
	disk.Write(env, 0)
	if r.role != leader {
		t.Fatalf("it is %v", r.role)
	}
	r.Receive(env, 9, kit.OpenRequest{Nonce: 1})
	r.Expire(env, kit.FlushTimer{})
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: accepted{Ballot: b, Match: 1}})
	if r.commit != 0 {
		t.Error("decided by one vote and the leader's own, which is not on disk")
	}
	waits := slices.ContainsFunc(env.Out, func(e protocol.Effect[smr.Message]) bool {
		m, ok := kit.Inside(e.Msg).(accepted)
		return ok && e.To == 1 && e.Kind == protocol.KindSend && m.Match == 1
	})
	if !waits {
		t.Fatalf("the leader's own vote is no message that waits for the disk: %+v", env.Out)
	}
	r.Receive(env, 1, kit.Letter{Disk: own, Msg: accepted{Ballot: b, Match: 1}})
	if r.commit != 1 {
		t.Errorf("decided %d with both votes, want 1", r.commit)
	}
}

// TestPolledOfAnotherBallotConfirmsNothing: that a member followed in a ballot of the past says
// nothing about who leads now. A read waits for word of this ballot.
func TestPolledOfAnotherBallotConfirmsNothing(t *testing.T) {
	s := newScript(t)
	b := s.campaign()
	for _, id := range []protocol.ID{2, 3} {
		s.receive(id, kit.Letter{Disk: kit.Incarnation(id), Msg: promise{Ballot: b, Low: 1, Last: true}})
	}
	if s.r.role != leader {
		t.Fatalf("it is %v", s.r.role)
	}
	s.receive(9, kit.ReadRequest{Queries: []kit.Query{{ID: 1, Body: []byte("k")}}})
	s.do(func() { s.r.Expire(s.env, kit.FlushTimer{}) })
	answered := func() bool {
		return slices.ContainsFunc(s.answers(9), func(m smr.Message) bool { _, ok := m.(kit.ReadReplies); return ok })
	}
	round := s.r.lead.reads.Round()
	if round == 0 || answered() {
		t.Fatalf("round %d of questions", round)
	}
	for _, id := range []protocol.ID{2, 3, 4} {
		s.receive(id, kit.Letter{Disk: kit.Incarnation(id), Msg: polled{Ballot: b - 1<<32, Round: round}})
	}
	if answered() {
		t.Error("a read is answered by the word of members that followed in another ballot")
	}
	for _, id := range []protocol.ID{2, 3} {
		s.receive(id, kit.Letter{Disk: kit.Incarnation(id), Msg: polled{Ballot: b, Round: round}})
	}
	if !answered() {
		t.Error("a read is not answered though a majority follows")
	}
}

// TestAcceptorSurvivesRestart has a replica promise and accept at random, in messages of leaders
// and candidates of a few ballots, with snapshots of its own and of others, and compares with it
// what is there after a crash: what was promised, accepted and decided.
func TestAcceptorSurvivesRestart(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		var disk smrtest.Disk
		r, env := onDisk(t, &disk)
		r.Cfg.SnapshotEvery = 1 + rnd.IntN(12)
		for range 1 + rnd.IntN(30) {
			from := protocol.ID(2 + rnd.IntN(2))
			b := kit.NewBallot(kit.Ballot(rnd.IntN(5))<<32, from)
			own := kit.Incarnation(from)
			switch rnd.IntN(8) {
			case 0:
				r.Receive(env, from, kit.Letter{Disk: own, Msg: prepare{Ballot: b, Low: r.commit + 1}})
			case 1:
				r.Receive(env, from, kit.Letter{Disk: own, Msg: accept{Ballot: b, First: 1 + smr.Slot(rnd.IntN(20)), Round: 1}})
			case 2:
				other := kit.NewState(kv.New(), r.State.Members())
				other.Skip(r.commit + smr.Slot(rnd.IntN(6)))
				data, err := other.Snapshot()
				if err != nil {
					t.Fatal(err)
				}
				if other.Applied() > r.commit {
					r.Install(env, smrtest.Arrive(t, env, r.State, kit.Snapshot{Slot: other.Applied(), Data: data}, nil))
				}
			default:
				m := accept{Ballot: b, First: r.matched + 1 - min(r.matched, smr.Slot(rnd.IntN(3))),
					Entries: make([]kit.Entry, rnd.IntN(5))}
				if m.First <= r.commit {
					m.First = r.commit + 1 // what is decided is sent as it was
				}
				for i := range m.Entries {
					m.Entries[i].Kind = kit.NoOp
				}
				m.Commit = r.commit + smr.Slot(rnd.IntN(4))
				r.Receive(env, from, kit.Letter{Disk: own, Msg: m})
			}
			disk.Write(env, 0)
			if err := r.Check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		before := r
		r, _ = onDisk(t, &disk)
		if r.promised != before.promised || r.log.last() != before.log.last() || r.commit > before.commit ||
			r.log.journal.Snapshot() != before.log.journal.Snapshot() {
			t.Fatalf("seed %d: after a crash promised %v, accepted up to %d, decided %d, snapshot of %d; before %v, %d, %d, %d",
				seed, r.promised, r.log.last(), r.commit, r.log.journal.Snapshot(),
				before.promised, before.log.last(), before.commit, before.log.journal.Snapshot())
		}
		for s := max(r.log.base, before.commit) + 1; s <= r.log.last(); s++ {
			if r.log.at(s).Ballot != before.log.at(s).Ballot {
				t.Fatalf("seed %d: slot %d was accepted in ballot %v, after a crash in %v", seed, s, before.log.at(s).Ballot,
					r.log.at(s).Ballot)
			}
		}
	}
}

// TestWhatOthersRelyOnIsOnDisk looks at the messages of replicas that must not be forgotten.
func TestWhatOthersRelyOnIsOnDisk(t *testing.T) {
	smrtest.FromDisk(t, Protocol(), promise{}, accepted{})
}

// TestBusyLeaderIsForgivenOnce: a leader that was silent for a while is waited for longer, but not
// for good if it is heard all the time after that.
func TestBusyLeaderIsForgivenOnce(t *testing.T) {
	var disk smrtest.Disk
	r, env := onDisk(t, &disk)
	now, usual := time.Hour, r.Tempo.Times(1)
	hear := func() {
		env.Begin(now)
		r.hearLeader(env, 2)
	}
	hear()
	now += 2 * usual
	hear()
	if r.Tempo.Times(1) < 2*usual {
		t.Errorf("a round trip is %v when the leader was silent for %v", r.Tempo.Times(1), 2*usual)
	}
	for range 6000 {
		now += 10 * time.Millisecond
		hear()
	}
	if r.Tempo.Times(1) != usual {
		t.Errorf("a minute later a round trip is %v, want %v", r.Tempo.Times(1), usual)
	}
}

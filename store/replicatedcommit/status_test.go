package replicatedcommit

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// status asks a server how it does.
func (s *script) status(server protocol.ID) store.ServerStatus {
	s.t.Helper()
	s.ref++
	n := len(s.answers[server])
	s.Sim.Deliver(server, store.StatusQuery{Ref: s.ref})
	if err := s.Sim.RunUntil(time.Second, func() bool { return len(s.answers[server]) > n }); err != nil {
		s.t.Fatal(err)
	}
	st, ok := s.answers[server][n].(store.ServerStatus)
	if !ok || st.Ref != s.ref {
		s.t.Fatalf("server %d said %+v, asked with %d", server, s.answers[server][n], s.ref)
	}
	st.Ref = 0
	return st
}

// TestStatus: what waits for a site that is gone is told by those that remain, and is over when the
// site is back.
func TestStatus(t *testing.T) {
	s := newScript(t, nil)
	shard := s.Layout.ShardOf("k")
	server := s.Layout.Sites[0].Shards[shard]
	idle := s.status(server)
	if diff := cmp.Diff(store.ServerStatus{Shard: shard, Admitted: true, Old: idle.Old}, idle); diff != "" {
		t.Errorf("of an idle server (-want +got):\n%s", diff)
	}
	s.crashSite(2)
	a, b := s.submit(200, "a", "k"), s.submit(201, "b", "k")
	s.run(roundTrip)
	if st := s.status(server); st.Undecided != 2 || st.Blocked != 0 || st.Txns != 2 || st.Locks != 1 {
		t.Errorf("after the votes: %+v", st)
	}
	doneA, _ := s.done(200, a)
	doneB, _ := s.done(201, b)
	blocked := []store.TxnID{doneA.Txn.ID, doneB.Txn.ID}
	slices.SortFunc(blocked, store.TxnID.Compare)
	oldest := blocked[0]
	s.run(5 * roundTrip)
	s.ref++
	s.Sim.Deliver(201, store.Get{Ref: s.ref, Key: "k", Priority: store.Priority{Began: oldest.Time, Client: 1}})
	s.run(roundTrip * 3 / 4)
	st := s.status(server)
	if st.Old <= idle.Old {
		t.Error("nothing gets old")
	}
	st.Old = 0
	want := store.ServerStatus{
		Shard: shard, Admitted: true, Txns: 2, TxnBytes: 4, Undecided: 2, Blocked: 2, Open: 2,
		Locks: 1, Waiting: 1, Reservations: 1, OldestUndecided: oldest, OldestBlocked: blocked,
		Counts: store.Counts{Accepted: 1, Refused: store.ByReason{store.Locked: 1}},
	}
	if diff := cmp.Diff(want, st); diff != "" {
		t.Errorf("while two wait (-want +got):\n%s", diff)
	}
	s.restartSite(2)
	s.settle()
	if st := s.status(server); st.Txns+st.Undecided+st.Blocked+st.Locks+st.Waiting+st.Reservations != 0 ||
		!st.OldestUndecided.IsZero() {
		t.Errorf("in the end: %+v", st)
	}
}

// TestStatusOfACopy: a server that takes the place of a lost one tells how much it has copied: here
// a value of 5 bytes under a key of one, of two servers each.
func TestStatusOfACopy(t *testing.T) {
	s := newScript(t, nil)
	d, _ := s.done(200, s.submit(200, "value", "k"))
	want(t, d, store.Committed)
	s.settle()
	s.newEpoch(false)
	newcomer := s.Layout.Sites[2].Shards[s.Layout.ShardOf("k")]
	if st := s.status(newcomer); !st.Syncing || st.Copied != 0 || st.Needed != 2 || st.Counts.CopiedValues != 0 {
		t.Errorf("in the beginning: %+v", st)
	}
	s.settle()
	if st := s.status(newcomer); st.Syncing || st.Counts.CopiedValues != 2 || st.Counts.CopiedBytes != 12 {
		t.Errorf("in the end: %+v", st)
	}
}

// TestStatusOfNoPart: a server that is not admitted yet says so, one that is refused says why.
func TestStatusOfNoPart(t *testing.T) {
	s := newScript(t, nil)
	s.crashSite(1)
	s.Sim.LoseDisk(11)
	s.Sim.Restart(11)
	s.Sim.Cut(31, 11)
	s.run(roundTrip)
	if st := s.status(11); st.Admitted || st.Refused != "" {
		t.Errorf("with nobody to ask: %+v", st)
	}
	s.Sim.Heal()
	s.run(time.Second)
	if st := s.status(11); st.Admitted || st.Refused == "" {
		t.Errorf("with another's disk: %+v", st)
	}
	s.Sim.Deliver(200, store.StatusQuery{Ref: 1}) // which is no question to a client
	s.run(time.Second)
	if len(s.answers[200]) > 0 {
		t.Errorf("a client said %v", s.answers[200])
	}
}

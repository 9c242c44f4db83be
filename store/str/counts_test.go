package str

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
)

// status has a coordinator tell what it has seen.
func (c *soloCoordinator) status(t *testing.T) store.SpeculationStatus {
	t.Helper()
	c.Receive(c.env, protocol.App, store.StatusQuery{Ref: 7})
	got := only[store.SpeculationStatus](c.said())
	if len(got) != 1 || got[0].Ref != 7 {
		t.Fatalf("its status is %+v", got)
	}
	return got[0]
}

// TestChainsAreCounted has three transactions build on each other, a fourth one on the first and
// the third, and the first give way: the others are aborted with it.
func TestChainsAreCounted(t *testing.T) {
	c := newSoloCoordinator(t)
	a, b, d, e := c.key(0, "a"), c.key(0, "b"), c.key(0, "d"), c.key(0, "e")
	c.begins(5, e)
	c.commits(5, 6, a)
	expectValues(t, c.begins(10, a), "5")
	c.commits(10, 11, b)
	expectValues(t, c.begins(20, b), "10")
	c.commits(20, 21, d)
	expectValues(t, c.begins(30, a), "5")
	expectValues(t, c.reads(30, d), "20")
	c.commits(30, 31, e)
	want := store.SpeculationStatus{Ref: 7, Locals: 4, Builders: 3, Chains: [store.ChainCounts]uint64{1, 1, 1, 1},
		ChainSum: 6, Longest: 3, Unfinal: 4, Degree: "8"}
	if diff := cmp.Diff(want, c.status(t)); diff != "" {
		t.Errorf("four are committed locally (-want +got):\n%s", diff)
	}
	c.Receive(c.env, 11, displaced{Shard: 0, ID: txnID(5)})
	c.said()
	want.Unfinal, want.Misspeculated = 0, 4
	want.Aborted[store.GaveWay], want.Aborted[store.Cascade] = 1, 3
	if diff := cmp.Diff(want, c.status(t)); diff != "" {
		t.Errorf("the first has given way (-want +got):\n%s", diff)
	}
}

// TestAbortCauses has transactions be aborted for each cause.
func TestAbortCauses(t *testing.T) {
	for cause, abort := range map[store.AbortCause]func(c *soloCoordinator){
		store.LocalCertification: func(c *soloCoordinator) {
			c.begins(5, c.key(0, "b"))
			c.begins(7, c.key(0, "b"))
			c.commits(7, 8, c.key(0, "a"))
			c.commits(5, 6, c.key(0, "a"))
		},
		store.RemoteCertification: func(c *soloCoordinator) {
			c.begins(5, c.key(0, "b"))
			c.commits(5, 6, c.key(0, "a"))
			c.abort(c.env, c.txns[txnID(5)], store.StaleWrite)
		},
		store.SnapshotTooOld: func(c *soloCoordinator) {
			for _, r := range only[readAt](c.begins(5, c.key(0, "b"))) {
				c.Receive(c.env, 11, found{Ref: r.Ref, Reason: store.Old})
			}
		},
		store.WriterTooLate: func(c *soloCoordinator) {
			c.begins(5, c.key(0, "b"))
			c.commits(5, 6, c.key(0, "a"))
			c.begins(10, c.key(0, "a"))
			c.commit(c.env, c.txns[txnID(5)], 11)
		},
		store.GivenUp: func(c *soloCoordinator) {
			c.begins(5, c.key(0, "b"))
			c.env.Now += time.Hour
			c.look(c.env, c.txns[txnID(5)])
		},
	} {
		t.Run(cause.String(), func(t *testing.T) {
			c := newSoloCoordinator(t)
			abort(c)
			var want [store.AbortCauses]uint64
			want[cause] = 1
			if diff := cmp.Diff(want, c.status(t).Aborted); diff != "" {
				t.Errorf("by cause (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBlockedIsShown has a coordinator tell who waits for what it has read, and for how long.
func TestBlockedIsShown(t *testing.T) {
	c := newSoloCoordinator(t)
	k, a := c.key(1, "k"), c.key(0, "a")
	c.begins(5, a)
	c.commits(5, 6, k, a)
	expectValues(t, c.begins(10, a), "5")
	if s := c.status(t); s.Blocked != 0 || !s.OldestBlocked.IsZero() {
		t.Errorf("nobody is blocked, and the status is %+v", s)
	}
	c.txns[txnID(10)].latest = clock.Stamp(time.Hour) // what it has seen of others
	expectValues(t, c.reads(10, k))
	c.env.Now += time.Second
	if s := c.status(t); s.Blocked != 1 || s.OldestBlocked != txnID(10) || s.BlockedFor != time.Second {
		t.Errorf("its read is held back, and the status is %+v", s)
	}
}

// TestSnapshotsAreShown has a server tell which snapshots it serves, and who serves none.
func TestSnapshotsAreShown(t *testing.T) {
	s := newSoloServer(t)
	s.state.books.deaf = []protocol.ID{21}
	if got := s.snapshots(s.env); !got.Serves || got.Ceiling != uint64(time.Hour) || !cmp.Equal(got.Silent, []int{1}) {
		t.Errorf("it shows %+v", got)
	}
	s.state.books.deaf = []protocol.ID{11}
	if got := s.snapshots(s.env); got.Serves || !cmp.Equal(got.Silent, []int{0}) {
		t.Errorf("it serves none, and shows %+v", got)
	}
}

// TestCountsAddUp has coordinators count what happens in the simulator, until nothing is left: what
// was committed locally is final, or misspeculated.
func TestCountsAddUp(t *testing.T) {
	first, seeds := seed.First(t, 1), seed.Count(t, 50)
	for _, m := range modes() {
		t.Run(m.name, func(t *testing.T) {
			var all store.SpeculationStatus
			for i := range uint64(seeds) {
				sc := storetest.Swarm(first + i)
				sc.Faults, sc.Lose = 0, false
				w, err := storetest.PlayOnce(subject(m), sc)
				if err != nil {
					t.Fatalf("seed %d: %v", sc.Seed, err)
				}
				for _, site := range w.Layout.Sites {
					for _, id := range site.Coordinators {
						s := w.Sim.Get(id).(*coordinator).tally.status
						sum := uint64(0)
						for _, n := range s.Chains {
							sum += n
						}
						if sum != s.Locals || s.Locals > s.Finals+s.Misspeculated || s.Misspeculated > s.Locals {
							t.Errorf("seed %d: coordinator %d has seen %+v", sc.Seed, id, s)
						}
						all.Locals, all.Builders, all.ChainSum = all.Locals+s.Locals, all.Builders+s.Builders, all.ChainSum+s.ChainSum
						all.Misspeculated += s.Misspeculated
					}
				}
			}
			if t.Logf("%+v", all); all.Locals == 0 || (all.Builders > 0 && all.ChainSum > 0) != m.speculates {
				t.Errorf("all have seen %+v", all)
			}
		})
	}
}

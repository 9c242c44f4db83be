package replicatedcommit

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// holdFor returns how long the server sets out to hold the request back that it was just given; 0:
// for ever.
func (c *contest) holdFor(id store.TxnID) time.Duration {
	for _, e := range c.env.Out {
		if e.Kind == protocol.KindAfter && e.Timer == (holdTimer{id}) {
			return e.Delay
		}
	}
	return 0
}

// TestHeldNoLonger: a vote waits for a round trip, and is a refusal then. Behind a transaction that
// nobody could decide it does not wait at all, or no longer than that.
func TestHeldNoLonger(t *testing.T) {
	c := newContest(t)
	holder, _ := c.try(5, "", "k")
	m := c.hold(1, "", "kl")
	if got := c.holdFor(m.Txn.ID); got != c.server.cfg.RoundTrip {
		t.Errorf("it waits for %v, want a round trip", got)
	}
	c.do(func() { c.server.Expire(c.env, resolveTimer{holder}) }) // it was not decided in time
	late := c.request(2, "", "k")
	c.give(10, late)
	c.wantVotes(votedNo(late, store.Locked))
	c.do(func() { c.server.Expire(c.env, holdTimer{m.Txn.ID}) })
	c.wantVotes(votedNo(m, store.Locked))
	c.do(func() { c.server.Expire(c.env, holdTimer{m.Txn.ID}) }) // as nothing would stop it
	c.wantVotes()
	c.give(10, decide{ID: holder, Shards: []uint32{0}})
	c.wantVotes(vote{ID: holder, State: aborted})
}

// TestHeldBehindBlocked: when something else of what it needs changes, who waits behind a
// transaction that may be blocked by now is refused.
func TestHeldBehindBlocked(t *testing.T) {
	c := newContest(t)
	blocked, _ := c.try(5, "", "k")
	free, _ := c.try(4, "", "l")
	m := c.hold(1, "", "kl")
	c.do(func() { c.server.Expire(c.env, resolveTimer{blocked}) })
	c.give(10, decide{ID: free, Shards: []uint32{0}})
	c.wantVotes(vote{ID: free, State: aborted}, votedNo(m, store.Locked))
}

// TestHeldIsStale: others may commit over this site's refusal what the request has read, or is to
// write. Then it waits no longer, though another of its keys is still locked, and who comes then
// does not begin to, whichever key is the first.
func TestHeldIsStale(t *testing.T) {
	for _, tc := range []struct{ name, locked, changed, reads, writes string }{
		{"a read, and a write is locked", "l", "k", "k", "l"},
		{"a read, and an earlier read is locked", "k", "l", "kl", "m"},
		{"a write, and a read is locked", "k", "l", "k", "l"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newContest(t)
			c.try(5, "", tc.locked)
			m := c.hold(1, tc.reads, tc.writes)
			other, v := c.try(2, "", tc.changed)
			c.wantReason(v, store.Reserved)
			why := store.Locked
			if tc.locked > tc.changed {
				why = store.StaleRead
			}
			c.give(10, decide{ID: other, Shards: []uint32{0}, Commit: true})
			c.wantVotes(vote{ID: other, State: committed, Reason: store.Reserved}, votedNo(m, why))
			late := c.request(3, tc.reads, tc.writes)
			late.Txn.ID = store.TxnID{Time: other.Time - 1, Client: 77} // below the version of the write
			c.give(10, late)
			c.wantVotes(votedNo(late, why))
		})
	}
}

// TestHeldHearsOfChanges: a key that a request waits with may change without anybody's having
// locked or reserved it here.
func TestHeldHearsOfChanges(t *testing.T) {
	c := newContest(t)
	c.try(5, "", "l")
	m := c.hold(1, "k", "l")
	id := store.TxnID{Time: uint64(c.now), Client: 77}
	c.give(10, decide{ID: id, Shards: []uint32{0}, Commit: true})
	c.wantVotes(vote{ID: id, State: wanting})
	c.give(21, content{ID: id, Writes: []store.Write{{Key: "k", Bytes: []byte("x")}}})
	told := vote{ID: id, State: committed} // to the coordinators of all sites
	c.wantVotes(told, told, told, votedNo(m, store.StaleRead))
}

// TestHeldIsRepeated: a request that comes again, marked or not, is one, and waits no longer for
// it.
func TestHeldIsRepeated(t *testing.T) {
	c := newContest(t)
	holder, _ := c.try(5, "", "k")
	m := c.hold(1, "", "k")
	for _, again := range []bool{true, false} {
		m.Hold = again
		c.give(10, m)
		c.wantVotes()
		if got := c.holdFor(m.Txn.ID); got != 0 {
			t.Errorf("it waits anew, for %v", got)
		}
	}
	c.give(10, decide{ID: holder, Shards: []uint32{0}})
	c.wantVotes(vote{ID: holder, State: aborted}, votedYes(m))
	c.give(10, m)
	c.wantVotes(votedYes(m))
}

// TestAskEndsHold: who is asked about a request that waits votes no, for good, and what the
// transaction writes is known if it is committed all the same.
func TestAskEndsHold(t *testing.T) {
	c := newContest(t)
	holder, _ := c.try(5, "", "k")
	m := c.hold(1, "", "k")
	c.give(20, ask{ID: m.Txn.ID, Shards: []uint32{0}, Fence: true})
	c.wantVotes(votedNo(m, store.Fenced))
	c.give(10, decide{ID: holder, Shards: []uint32{0}})
	c.wantVotes(vote{ID: holder, State: aborted})
	c.give(10, m)
	c.wantVotes(votedNo(m, store.Fenced))
	c.give(10, decide{ID: m.Txn.ID, Shards: []uint32{0}, Commit: true})
	c.wantVotes(vote{ID: m.Txn.ID, State: committed, Reason: store.Fenced})
	c.wantValue("k", "1")
}

// TestDecideEndsHold: the other sites may decide meanwhile. What is committed is applied at once,
// without asking anybody what it is; what is aborted is next in line for its keys.
func TestDecideEndsHold(t *testing.T) {
	for _, commit := range []bool{true, false} {
		c := newContest(t)
		holder, _ := c.try(5, "", "k")
		m := c.hold(1, "", "kl")
		c.give(10, decide{ID: m.Txn.ID, Shards: []uint32{0}, Commit: commit})
		free := store.NoReason
		if commit {
			c.wantVotes(vote{ID: m.Txn.ID, State: committed})
			c.wantValue("k", "1")
		} else {
			c.wantVotes(vote{ID: m.Txn.ID, State: aborted})
			c.wantValue("k", "")
			free = store.Reserved
		}
		for _, e := range c.env.Out {
			if _, ok := e.Msg.(fetch); ok {
				t.Error("the server asks for what it has")
			}
		}
		_, v := c.try(2, "", "l")
		c.wantReason(v, free)
		c.give(10, decide{ID: holder, Shards: []uint32{0}}) // wakes nobody
		c.wantVotes(vote{ID: holder, State: aborted})
	}
}

// restart starts another server with what is on the disk.
func (c *contest) restart() {
	c.Helper()
	again, err := newServer(c.server.cfg)
	if err != nil {
		c.Fatal(err)
	}
	again.admission.admitted = true
	c.server, c.env = again, protocol.NewEnv[message](c.disk, 11, rand.New(rand.NewPCG(1, 3)))
	c.do(func() { c.server.Start(c.env, nil) })
}

// TestHeldVoteLasts: a vote that came late is like others: a crash leaves it, and its locks.
func TestHeldVoteLasts(t *testing.T) {
	c := newContest(t)
	holder, _ := c.try(5, "", "k")
	m := c.hold(1, "r", "k")
	c.give(10, decide{ID: holder, Shards: []uint32{0}})
	c.wantVotes(vote{ID: holder, State: aborted}, votedYes(m))
	c.restart()
	for n, k := range []string{"r", "k"} {
		_, v := c.try(2+n, "", k)
		c.wantReason(v, store.Locked)
	}
	c.give(10, m)
	c.wantVotes(votedYes(m))
}

// TestHoldIsForgotten: a crash while a request waits is the loss of a message.
func TestHoldIsForgotten(t *testing.T) {
	c := newContest(t)
	holder, _ := c.try(5, "", "k")
	m := c.hold(1, "", "k")
	c.restart()
	c.do(func() { c.server.Expire(c.env, holdTimer{m.Txn.ID}) })
	c.wantVotes()
	c.give(10, decide{ID: holder, Shards: []uint32{0}})
	c.wantVotes(vote{ID: holder, State: aborted})
	c.give(10, m)
	c.wantVotes(votedYes(m))
}

// TestOldHeld: a request that waits while its time is forgotten is not voted on.
func TestOldHeld(t *testing.T) {
	c := newContest(t)
	holder, _ := c.try(5, "", "k")
	m := c.hold(1, "", "k")
	c.do(func() { c.server.raiseOld(c.env, m.Txn.ID.Time) })
	c.give(10, decide{ID: holder, Shards: []uint32{0}})
	c.wantVotes(vote{ID: holder, State: aborted}, vote{ID: m.Txn.ID, State: old, Reason: store.Old})
}

// TestFullHoldsNothing: a server that takes no more transactions does not take any in order to have
// them wait.
func TestFullHoldsNothing(t *testing.T) {
	c := newContest(t)
	c.server.cfg.MaxTxns = 1
	holder, _ := c.try(5, "", "k")
	m := c.request(1, "", "k")
	c.give(10, m)
	c.wantVotes(vote{ID: m.Txn.ID, State: old, Reason: store.Overloaded})
	if n := len(c.server.holding.byTxn); n != 0 {
		t.Errorf("%d requests wait", n)
	}
	c.decide(holder, true)
	c.wantVotes(vote{ID: holder, State: committed})
}

// TestHoldIsBounded: the requests that wait are bounded, in all and for each key. One more is
// refused at once.
func TestHoldIsBounded(t *testing.T) {
	for _, tc := range []struct {
		name      string
		all, want int
	}{
		{"in all", 3, 3},
		{"for a key", 10_000, kit.MaxQueue},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newContest(t)
			c.server.cfg.MaxWaiting = tc.all
			holder, _ := c.try(5, "", "k")
			for range tc.want {
				c.hold(1, "", "k")
			}
			m := c.request(1, "", "k")
			c.give(10, m)
			c.wantVotes(votedNo(m, store.Locked))
			if tc.name != "in all" {
				other, _ := c.try(4, "", "o")
				c.hold(1, "", "o")
				c.decide(other, false)
			}
			c.give(10, decide{ID: holder, Shards: []uint32{0}})
			if n := len(c.server.holding.byTxn); n >= tc.want {
				t.Errorf("%d requests wait after the key was left", n)
			}
		})
	}
}

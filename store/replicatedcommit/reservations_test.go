package replicatedcommit

import (
	"testing"
	"time"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// prepare has the server vote on a transaction that reads and writes keys of no version, and does
// not decide it.
func (b *serverBench) prepare(id store.TxnID, p store.Priority, reads, writes string) vote {
	b.Helper()
	t := store.Txn{ID: id, Priority: p}
	for _, k := range reads {
		t.Reads = append(t.Reads, store.Read{Key: store.Key(k)})
	}
	for _, k := range writes {
		t.Writes = append(t.Writes, store.Write{Key: store.Key(k)})
	}
	b.give(10, prepare{Txn: t, Shards: []uint32{0}})
	for _, e := range b.env.Out {
		if v, ok := e.Msg.(vote); ok && v.ID == id {
			return v
		}
	}
	b.Fatalf("no vote on %v", id)
	return vote{}
}

// contest is transactions of different ages at a server: the first is the oldest.
type contest struct {
	*serverBench
	ages []store.Priority
}

func newContest(t *testing.T) *contest {
	c := &contest{serverBench: newServerBench(t)}
	for i := range 6 {
		c.ages = append(c.ages, store.Priority{Began: uint64(c.now) + uint64(i), Client: store.ClientID(i + 1)})
	}
	c.now += time.Second
	return c
}

// try has the server vote on an attempt of a transaction.
func (c *contest) try(n int, reads, writes string) (store.TxnID, vote) {
	c.Helper()
	c.now += time.Millisecond
	id := store.TxnID{Time: uint64(c.now), Client: store.ClientID(n + 1)}
	return id, c.prepare(id, c.ages[n], reads, writes)
}

func (c *contest) decide(id store.TxnID, commit bool) {
	c.Helper()
	c.give(10, decide{ID: id, Shards: []uint32{0}, Commit: commit})
}

// TestRefusedWait: who is refused comes before all that are younger, at each site, until it is
// tried again: also if others were refused before it, and where it was voted for.
func TestRefusedWait(t *testing.T) {
	c := newContest(t)
	expect := func(what string, v vote, want store.Reason) {
		if v.Reason != want {
			t.Errorf("%s: the reason is %v, want %v", what, v.Reason, want)
		}
	}
	holder, v := c.try(5, "", "k")
	expect("the first", v, store.NoReason)
	_, v = c.try(1, "", "kl")
	expect("an older one", v, store.Locked)
	_, v = c.try(0, "", "km")
	expect("the oldest", v, store.Locked)
	c.decide(holder, true)

	_, v = c.try(4, "", "k")
	expect("a younger one, who was not refused yet", v, store.Reserved)
	oldest, v := c.try(0, "", "km")
	expect("the oldest, again", v, store.NoReason)
	c.decide(oldest, true)
	_, v = c.try(4, "", "k")
	expect("a younger one, when the oldest is done", v, store.Reserved)

	next, v := c.try(1, "", "kl")
	expect("the next one", v, store.NoReason)
	c.decide(next, false) // other sites have refused it
	_, v = c.try(4, "", "l")
	expect("a younger one, when the next one was aborted", v, store.Reserved)
	c.now += kit.ReserveFor * c.server.cfg.RoundTrip
	_, v = c.try(4, "", "l")
	expect("a younger one, when the next one does not come back", v, store.NoReason)
}

// TestBlockedAlone: who waits for a transaction that may be blocked does not keep others from what
// else it needs.
func TestBlockedAlone(t *testing.T) {
	c := newContest(t)
	holder, _ := c.try(5, "", "k")
	c.do(func() { c.server.Expire(c.env, resolveTimer{holder}) }) // not decided in time
	_, v := c.try(0, "", "kl")
	c.wantReason(v, store.Locked)
	if _, v = c.try(3, "", "l"); v.Reason != store.NoReason {
		t.Errorf("a key is kept for one that is behind a blocked one: the reason is %v", v.Reason)
	}
}

// TestReadersDoNotReserveFromEachOther: a transaction that waits to read a key keeps writers away
// from it, not readers.
func TestReadersDoNotReserveFromEachOther(t *testing.T) {
	c := newContest(t)
	holder, _ := c.try(1, "", "k")
	_, v := c.try(0, "kr", "w")
	c.wantReason(v, store.Locked)
	c.decide(holder, false)
	_, v = c.try(2, "r", "a")
	c.wantReason(v, store.NoReason)
	_, v = c.try(3, "", "r")
	c.wantReason(v, store.Locked) // by that reader
	_, v = c.try(4, "k", "b")
	c.wantReason(v, store.Reserved) // by who was aborted
	_, v = c.try(3, "w", "c")
	c.wantReason(v, store.Reserved)
}

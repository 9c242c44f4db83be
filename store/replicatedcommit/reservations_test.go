package replicatedcommit

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/store"
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
	c.now += reserveFor * c.server.cfg.RoundTrip
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

// TestReservationsAreBounded: a queue is left by the youngest, and what is reserved in all is
// bounded too.
func TestReservationsAreBounded(t *testing.T) {
	b := newServerBench(t)
	key := store.Key("k")
	age := func(n int) store.Priority { return store.Priority{Began: uint64(b.now) + uint64(n), Client: 1} }
	for n := range 2 * maxQueue {
		b.do(func() { b.server.reserve(b.env, key, true, age(2*maxQueue-n)) })
	}
	queue := b.server.reservations[key]
	if len(queue) != maxQueue || queue[0].priority != age(1) || queue[maxQueue-1].priority != age(maxQueue) {
		t.Errorf("%d reservations from %v on, want the oldest %d", len(queue), queue[0].priority, maxQueue)
	}
	b.server.cfg.MaxWaiting = maxQueue + 1
	for n := range 3 {
		b.do(func() { b.server.reserve(b.env, store.Key(fmt.Sprint(n)), false, age(n)) })
	}
	if b.server.reserved != maxQueue+1 {
		t.Errorf("%d reservations in all, want %d", b.server.reserved, maxQueue+1)
	}
	b.now += reserveFor * b.server.cfg.RoundTrip
	for _, k := range []store.Key{key, "0"} {
		b.do(func() { b.server.Expire(b.env, reserveTimer{k}) })
	}
	if b.server.reserved != 0 {
		t.Errorf("%d reservations are left after their time", b.server.reserved)
	}
}

// TestReservationsEndWhateverTheClock: a clock that is set back, by little or by much, leaves no
// reservation behind, and none that lasts for longer than others.
func TestReservationsEndWhateverTheClock(t *testing.T) {
	for _, back := range []time.Duration{roundTrip, time.Hour} {
		b := newServerBench(t)
		age := func() store.Priority { return store.Priority{Began: uint64(b.now), Client: 1} }
		b.do(func() { b.server.reserve(b.env, "k", true, age()) })
		b.do(func() { b.server.reserve(b.env, "l", true, age()) })
		b.now -= back
		b.do(func() { b.server.reserve(b.env, "k", true, age()) })
		if n := len(b.server.reservations["k"]); back > time.Minute && n != 1 {
			t.Errorf("set back by %v: %d reservations of a key, want the one that was made since", back, n)
		}
		if back > time.Minute && b.server.reservedBefore(b.env, "l", true, store.Priority{}) {
			t.Errorf("set back by %v: a reservation keeps others away for longer than any", back)
		}
		for _, k := range []store.Key{"k", "l"} {
			b.do(func() { b.server.Expire(b.env, reserveTimer{k}) })
		}
		if b.server.reserved != 0 {
			t.Errorf("set back by %v: %d reservations are left, and nothing ends them", back, b.server.reserved)
		}
	}
}

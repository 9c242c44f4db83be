package replicatedcommit

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
)

// TestStartKnowsWhatIsDone: a site that is back does not ask about what it knew to be carried out
// everywhere when it went. The others have forgotten that, and would be told it again, fetch it and
// write it.
func TestStartKnowsWhatIsDone(t *testing.T) {
	const retain = 6 * time.Second
	s := newScript(t, func(c *store.Config) { c.Retain = retain })
	writes := func() (n uint64) {
		for _, site := range s.Layout.Sites[:2] {
			for _, id := range site.Shards {
				n += s.Sim.Writes(id)
			}
		}
		return n
	}
	for i := range 100 {
		s.submit(200, "v", store.Key(fmt.Sprint("k", i)))
		s.run(10 * time.Millisecond)
	}
	s.run(3 * time.Second)
	s.crashSite(2)
	s.run(2 * retain)
	before := writes()
	s.run(time.Minute)
	away := writes() - before // what they note as time goes by
	s.restartSite(2)
	before = writes()
	s.run(time.Minute)
	if back := writes() - before; back > away+100 {
		t.Errorf("in an idle minute two sites write %d times, and %d times when the third is back", away, back)
	}
	s.settle()
}

// TestLateTransactionIsNotDone: a client whose clock is behind commits a transaction after all that
// is later is done. A server that starts again must not take that one for done, too: c has not
// heard of it.
func TestLateTransactionIsNotDone(t *testing.T) {
	s := newScript(t, func(c *store.Config) { c.Retain = time.Minute })
	for i := range 30 {
		s.submit(200, "v", store.Key(fmt.Sprint("k", i)))
		s.run(100 * time.Millisecond)
	}
	s.run(3 * time.Second)
	id := s.Layout.Sites[0].Shards[s.Layout.ShardOf("late")]
	server := func() *server { return s.Sim.Get(id).(*server) }
	upto := server().doneUpto
	if err := s.Sim.SetClock(201, sim.Clock{Offset: -5 * time.Second}); err != nil {
		t.Fatal(err)
	}
	s.cut(append(append(s.SiteNodes(0), s.SiteNodes(1)...), 201), s.SiteNodes(2))
	d, _ := s.done(201, s.submit(201, "late", "late"))
	want(t, d, store.Committed)
	s.run(2 * roundTrip)
	if d.Txn.ID.Time > upto {
		t.Fatalf("%v is later than %d, up to which all was done", d.Txn.ID, upto)
	}
	s.Sim.Crash(id, sim.KeepAll)
	s.Sim.Restart(id)
	s.run(time.Millisecond)
	if r := server().txns[d.Txn.ID]; r == nil || !r.settled() || r.done {
		t.Errorf("after a start the server takes %+v for done", r)
	}
	if n := len(server().done); n == 0 {
		t.Error("after a start it takes nothing for done")
	}
	s.Sim.Heal()
	s.settle()
}

// TestStartKnowsWhatIsOwed: a server that starts again owes c what it took for done without it.
func TestStartKnowsWhatIsOwed(t *testing.T) {
	s := newScript(t, func(c *store.Config) { c.Retain = 20 * time.Second })
	s.crashSite(2)
	d, _ := s.done(200, s.submit(200, "v", "k"))
	want(t, d, store.Committed)
	s.run(10 * time.Second)
	other, _ := s.done(200, s.submit(200, "w", "k")) // which makes marks
	want(t, other, store.Committed)
	s.run(3 * time.Second)
	shard := s.Layout.ShardOf("k")
	id := s.Layout.Sites[0].Shards[shard]
	s.Sim.Crash(id, sim.KeepAll)
	s.Sim.Restart(id)
	s.run(time.Millisecond)
	n := s.Sim.Get(id).(*server)
	for _, r := range n.txns {
		if r.done && n.debts[s.Layout.Sites[2].Shards[shard]] == nil {
			t.Errorf("after a start the server takes %v for done, and owes %v", r.id, n.debtList())
		}
	}
	s.run(30 * time.Second)
	if st := s.Sim.Get(id).(*server).forgotten(d.Txn.ID); st != gone {
		t.Errorf("of what c has not copied it says %v", st)
	}
	s.restartSite(2)
	s.settle()
}

// TestForgottenIsNotToldAgain: c goes before its disk knows that what it has carried out is done.
// When it is back it asks the others first, and does not tell those who have forgotten it.
func TestForgottenIsNotToldAgain(t *testing.T) {
	const retain = 6 * time.Second
	s := newScript(t, func(c *store.Config) { c.Retain = retain })
	const n = 100
	for i := range n {
		s.submit(200, "v", store.Key(fmt.Sprint("k", i)))
	}
	s.run(4 * roundTrip)
	s.crashSite(2)
	s.run(2 * retain)
	committed := func() (n uint64) {
		for _, site := range s.Layout.Sites[:2] {
			for _, id := range site.Shards {
				n += s.Sim.Get(id).(*server).counts.Committed
			}
		}
		return n
	}
	before := committed()
	s.restartSite(2)
	s.run(time.Millisecond)
	open := func() (n int) {
		for _, id := range s.Layout.Sites[2].Shards {
			n += len(s.Sim.Get(id).(*server).open)
		}
		return n
	}
	if open() < n*9/10 {
		t.Fatalf("c does not know of %d transactions that they are done: the test notices nothing", open())
	}
	s.run(time.Minute)
	if again := committed() - before; again > n/10 {
		t.Errorf("the others have committed %d of %d transactions again", again, 2*n)
	}
	s.settle()
}

// TestOneThatNeverHeardIsTold: a and c have committed a transaction of which b has not heard. When
// it is so old that b never will vote for it, c does not take b for one that has forgotten it.
func TestOneThatNeverHeardIsTold(t *testing.T) {
	const retain = 6 * time.Second
	s := newScript(t, func(c *store.Config) { c.Retain = retain })
	s.cut(append(append(s.SiteNodes(0), s.SiteNodes(2)...), 200), s.SiteNodes(1))
	d, _ := s.done(200, s.submit(200, "v", "k"))
	want(t, d, store.Committed)
	s.run(roundTrip)
	s.crashSite(2)
	s.run(2 * retain)
	shard := s.Layout.ShardOf("k")
	server := func(site int) *server { return s.Sim.Get(s.Layout.Sites[site].Shards[shard]).(*server) }
	s.Sim.Heal()
	s.cut(s.SiteNodes(0), s.SiteNodes(1)) // a does not tell it, nor c that b is away
	s.cut(s.Layout.Sites[0].Coordinators, s.SiteNodes(2))
	s.restartSite(2)
	committed := server(1).counts.Committed
	told := func() bool { return server(1).counts.Committed > committed }
	for range 100 {
		s.run(roundTrip)
		r := server(2).txns[d.Txn.ID]
		if owed := server(2).debts[s.Layout.Sites[1].Shards[shard]]; (r == nil || r.done) && owed == nil && !told() {
			t.Fatal("c takes for done what b has not carried out, and does not owe it")
		}
	}
	if !told() {
		t.Error("c has not told b")
	}
	s.Sim.Heal()
	s.settle()
}

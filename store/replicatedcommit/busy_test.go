package replicatedcommit

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/store"
)

// TestBusyMachines: where all takes twenty times the round trip that the configuration names, as on
// a near network whose machines are busy, reads and transactions end well, and nobody takes others
// for away.
func TestBusyMachines(t *testing.T) {
	s := newScript(t, func(c *store.Config) { c.RoundTrip = roundTrip / 20 })
	for i := range 20 {
		value := fmt.Sprint(i)
		d, took := s.done(200, s.submit(200, value, "k", "l"))
		want(t, d, store.Committed)
		if took > 5*roundTrip {
			t.Errorf("transaction %d took %v", i, took)
		}
		if g, _ := s.read(201, "k"); !g.OK || string(g.Value.Bytes) != value {
			t.Fatalf("after transaction %d a read has %+v", i, g)
		}
	}
	for _, id := range s.SiteNodes(2) {
		s.Sim.Pause(id, 2*time.Second, true)
	}
	for range 5 {
		d, _ := s.done(200, s.submit(200, "while one stands still", "k", "l"))
		want(t, d, store.Committed)
	}
	s.run(time.Second)
	for i := range s.Layout.Sites {
		for _, id := range s.Layout.Sites[i].Shards {
			if n := s.Sim.Get(id).(*server); len(n.debts) > 0 {
				t.Errorf("server %d owes %v", id, n.debts)
			}
		}
	}
	s.settle()
}

// TestSilenceOfSeconds: a client is told nothing of a transaction, or of a read, before it has
// asked for seconds.
func TestSilenceOfSeconds(t *testing.T) {
	s := newScript(t, func(c *store.Config) { c.RoundTrip, c.Retain = roundTrip/20, time.Minute })
	for _, id := range s.Nodes() {
		s.Sim.Pause(id, 2*time.Second, true)
	}
	d, took := s.done(200, s.submit(200, "a", "k"))
	want(t, d, store.Committed)
	if took < 2*time.Second {
		t.Errorf("it took %v", took)
	}
	for _, id := range s.Nodes() {
		s.Sim.Pause(id, 2*time.Second, true)
	}
	if g, took := s.read(200, "k"); !g.OK || string(g.Value.Bytes) != "a" || took > 4*time.Second {
		t.Errorf("a read has %+v after %v", g, took)
	}
	s.settle()
}

package pbft_test

import (
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bftsim"
	"github.com/foresay/foresay/bft/counter"
	"github.com/foresay/foresay/bft/pbft"
	"github.com/foresay/foresay/wan"
)

// increment makes one call in a group of so many replicas, 30 ms from each other and the client,
// and returns after how long it had a first reply, 0 for none, and a confirmed one.
func increment(t *testing.T, replicas int, change func(*bft.ReplicaConfig)) (first, done time.Duration) {
	t.Helper()
	sites := []wan.Site{"a", "b", "c", "d", "client"}
	g, err := bftsim.New(bftsim.Config{Protocol: pbft.Protocol(), Service: counter.Service{}, Replica: change,
		Place:   wan.Deployment{Matrix: wan.Uniform(30*time.Millisecond, sites...), Replicas: sites[:replicas]},
		Clients: sites[4:]})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Pass(time.Second); err != nil {
		t.Fatal(err)
	}
	began := g.Now()
	g.Make(g.Clients[0], bft.Call{Command: counter.Increment(counter.Reply{})}, bftsim.Told{
		First: func(bft.Result) { first = g.Now() - began },
		Done:  func(_ bft.Result, took time.Duration) { done = took },
	})
	if err := g.Await(time.Second, func() bool { return g.Unanswered() == 0 }); err != nil {
		t.Fatal(err)
	}
	return first, done
}

// TestNoFirst: a primary without first replies serves as well.
func TestNoFirst(t *testing.T) {
	for _, none := range []bool{false, true} {
		first, done := increment(t, 4, func(c *bft.ReplicaConfig) { c.NoFirst = none })
		if (first == 0) != none || done != 60*time.Millisecond {
			t.Errorf("NoFirst is %v: a first reply after %v, a confirmed one after %v", none, first, done)
		}
	}
}

// TestGroupOfOne: a group of one waits for nobody, not for its own timer either.
func TestGroupOfOne(t *testing.T) {
	if first, done := increment(t, 1, func(*bft.ReplicaConfig) {}); first != 30*time.Millisecond || done != first {
		t.Errorf("a first reply after %v, a confirmed one after %v", first, done)
	}
}

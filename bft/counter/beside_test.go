package counter_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bftdeploy"
	"github.com/foresay/foresay/bft/client"
	"github.com/foresay/foresay/bft/counter"
	"github.com/foresay/foresay/bft/pbft"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/wan"
)

// increment makes a call, of which the first reply and the confirmed one are told.
func increment(t *testing.T, c *client.Client, shown counter.Reply) (first, done chan counter.Reply) {
	first, done = make(chan counter.Reply, 1), make(chan counter.Reply, 1)
	told := func(to chan counter.Reply, r bft.Result) {
		reply, err := counter.Decode(r.Value)
		if err != nil {
			t.Error(err)
		}
		to <- reply
	}
	_, err := c.Start(t.Context(), bft.Call{Command: counter.Increment(shown)}, client.Hearer{
		First: func(r bft.Result) { told(first, r) },
		Done: func(r bft.Result, err error) {
			if err != nil {
				t.Error(err)
			}
			told(done, r)
		},
	})
	if err != nil {
		t.Error(err)
	}
	return first, done
}

// TestBeside has a program in goroutines increment the counter of a simulated group, each of four
// replicas and the client at a site of its own. A first reply comes after two delays and a
// confirmed one after four, to the nanosecond, so increments that wait for the first reply to the
// one before take half of the time, and two delays more.
func TestBeside(t *testing.T) {
	const roundTrip, n = 30 * time.Millisecond, 20
	sites := []wan.Site{"a", "b", "c", "d", "e"}
	took := map[bool]time.Duration{}
	for _, guess := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g, err := bftdeploy.New(bftdeploy.Config{Protocol: pbft.Protocol(), Service: counter.Service{},
				Replicas: sites[:4], Clients: sites[4:],
				Sim: sim.Config[bft.Message]{Seed: 1, WAN: wan.Uniform(roundTrip, sites...)}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var running, confirmed sync.WaitGroup
			running.Go(func() {
				if err := g.Run(ctx); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(time.Second)
			begun, last := time.Now(), counter.Reply{}
			for i := range uint64(n) {
				asked := time.Now()
				first, done := increment(t, g.Clients[0], last)
				if guess {
					last = <-first
				}
				confirmed.Go(func() {
					if r := <-done; r.Value != i+1 || time.Since(asked) != 2*roundTrip {
						t.Errorf("increment %d comes to %+v, confirmed after %v", i+1, r, time.Since(asked))
					}
				})
				if !guess {
					confirmed.Wait()
					last = <-first
				}
			}
			confirmed.Wait()
			took[guess] = time.Since(begun)
			cancel()
			running.Wait()
		})
	}
	if took[false] != n*2*roundTrip || took[true] != (n+1)*roundTrip {
		t.Errorf("%d increments take %v, on first replies %v", n, took[false], took[true])
	}
}

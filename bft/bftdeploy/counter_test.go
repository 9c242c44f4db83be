package bftdeploy_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bftdeploy"
	"github.com/foresay/foresay/bft/client"
	"github.com/foresay/foresay/bft/counter"
	"github.com/foresay/foresay/bft/pbft"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/sim"
	smrclient "github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/wan"
)

// counting returns a client of the counter, with typed commands.
func counting(c *client.Client) client.Typed[counter.Reply, struct{}, counter.Reply] {
	return client.Typed[counter.Reply, struct{}, counter.Reply]{Client: c,
		Coding: smrclient.Coding[counter.Reply, struct{}, counter.Reply]{
			Command: func(shown counter.Reply) ([]byte, error) { return counter.Increment(shown), nil },
			Query:   func(struct{}) ([]byte, error) { return counter.Query(), nil },
			Result:  counter.Decode,
		}}
}

// updates makes n increments, each of which shows the reply to the one before, in turns of a loop
// of which so many may be under way, and returns how long they took.
func updates(ctx context.Context, c *client.Client, n uint64, window int) (time.Duration, error) {
	typed := counting(c)
	began := time.Now()
	step := func(ctx context.Context, shown counter.Reply) (counter.Reply, bool, error) {
		r, err := typed.Execute(ctx, shown)
		return r, r.Value >= n, err
	}
	last, err := foresay.Loop(ctx, counter.Reply{}, step, foresay.WithLimits(control.Limits{Depth: window}))
	if err == nil && (last.Value != n || last.Refused) {
		err = fmt.Errorf("the counter is at %+v", last)
	}
	return time.Since(began), err
}

// TestCounter is Figure 4 of the paper in virtual time: one client at the primary's site, 15 ms
// one way between sites and 0.04 ms within one.
func TestCounter(t *testing.T) {
	const n = 2000
	for _, test := range []struct {
		window int
		most   time.Duration
	}{{4, 30 * time.Second}, {100, time.Second}, {1024, 300 * time.Millisecond}} {
		t.Run(fmt.Sprint(test.window), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sites := []wan.Site{"a", "b", "c", "d"}
				network := wan.Uniform(30*time.Millisecond, sites...)
				for _, s := range sites {
					network = network.WithRTT(s, s, 80*time.Microsecond)
				}
				g, err := bftdeploy.New(bftdeploy.Config{Protocol: pbft.Protocol(), Service: counter.Service{},
					Replica:  func(c *bft.ReplicaConfig) { c.MaxUnderway, c.CheckpointEvery = 64, 512 },
					Replicas: sites, Clients: sites[:1],
					Sim: sim.Config[bft.Message]{Seed: 1, WAN: network, CodecChance: 0.001, CheckEvery: 1000, TraceKeep: -1}})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					if err := g.Run(ctx); err != nil {
						t.Error(err)
					}
				}()
				time.Sleep(time.Second)
				took, err := updates(ctx, g.Clients[0], n, test.window)
				if err != nil || took > test.most {
					t.Errorf("%d updates: %v after %v", n, err, took)
				}
				t.Logf("%d updates took %v", n, took)
			})
		})
	}
}

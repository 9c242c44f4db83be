package byzantine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bftdeploy"
	"github.com/foresay/foresay/bft/client"
	"github.com/foresay/foresay/bft/counter"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	smrclient "github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/wan"
)

// A run is a program with one client of a simulated group.
type run struct {
	system  System
	place   place
	service bft.Service
	durable bool
	seed    uint64
	// protocol is in place of the system's, unless it is zero; wrap, if not nil, is put around each
	// replica.
	protocol bft.Protocol
	wrap     func(protocol.Node[bft.Message], bft.ReplicaConfig) protocol.Node[bft.Message]
}

// settling is how long a group is left alone before anybody calls.
const settling = time.Second

// play has a program make calls of the run's client in a bubble, and returns how long it took.
func (r run) play(
	o bench.Options, program func(context.Context, *client.Client) error,
) (took time.Duration, err error) {
	o.Bubble(func() {
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		var g *bftdeploy.Group
		if g, err = r.group(); err == nil {
			var failed error
			running.Go(func() {
				if failed = g.Run(ctx); failed != nil {
					cancel()
				}
			})
			time.Sleep(settling)
			began := time.Now()
			err = program(ctx, g.Clients[0])
			took = time.Since(began)
			g.Clients[0].Close(nil)
			cancel()
			running.Wait()
			err = errors.Join(err, failed)
		}
		cancel()
	})
	return took, err
}

func (r run) group() (*bftdeploy.Group, error) {
	c := bftdeploy.Config{
		Protocol: r.system.protocol(), Service: r.service, Replicas: r.place.replicas(r.system),
		Clients: []wan.Site{r.place.client()}, Replica: r.system.replica, Wrap: r.wrap,
		RoundTrip: max(2*r.place.delay, shortestTrip),
		Sim: sim.Config[bft.Message]{Seed: r.seed, WAN: r.place.matrix(), CodecChance: codecChance, CheckEvery: 1000,
			TraceKeep: -1},
	}
	if r.protocol.Name != "" {
		c.Protocol = r.protocol
	}
	if r.durable {
		c.Sim.Disk.Latency = bench.SyncTime
	}
	return bftdeploy.New(c)
}

const (
	// shortestTrip keeps timers, which follow from round trips, from a network without delays.
	shortestTrip = 5 * time.Millisecond
	codecChance  = 0.001
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

// count makes n increments, each of which shows the reply to the one before: as a plain loop, or as
// one whose steps go on with guesses.
func (s System) count(ctx context.Context, c *client.Client, n int) error {
	typed := counting(c)
	var last counter.Reply
	var err error
	step := func(ctx context.Context, shown counter.Reply) (counter.Reply, bool, error) {
		r, err := typed.Execute(ctx, shown)
		return r, r.Value >= uint64(n), err
	}
	if s.speculates() {
		last, err = foresay.Loop(ctx, last, step, s.limits())
	} else {
		for done := false; err == nil && !done; {
			last, done, err = step(ctx, last)
		}
	}
	if err == nil && (last.Value != uint64(n) || last.Refused) {
		err = fmt.Errorf("after %d increments the counter says %+v", n, last)
	}
	return err
}

// limits are those of a program with the system's window. On a fast network it speculates as well.
func (s System) limits() foresay.Option {
	return foresay.WithLimits(control.Limits{Depth: s.Window, MinSaving: -1})
}

package bftdeploy_test

import (
	"context"
	"fmt"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bftdeploy"
	"github.com/foresay/foresay/bft/counter"
	"github.com/foresay/foresay/bft/pbft"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/wan"
)

// Dependent increments of a simulated counter. Outside of a bubble a group takes as long as a real
// one.
func Example() {
	sites := []wan.Site{"a", "b", "c", "d"}
	g, err := bftdeploy.New(bftdeploy.Config{Protocol: pbft.Protocol(), Service: counter.Service{},
		Replicas: sites, Clients: sites[:1],
		Sim: sim.Config[bft.Message]{WAN: wan.Uniform(2*time.Millisecond, sites...)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- g.Run(ctx) }()
	last, err := foresay.Do(ctx, func(ctx context.Context) (last counter.Reply, err error) {
		for range 10 {
			if last, err = counting(g.Clients[0]).Execute(ctx, last); err != nil {
				return last, err
			}
		}
		return last, nil
	})
	cancel()
	fmt.Println(last.Value, err, <-ended)
	// Output: 10 <nil> <nil>
}

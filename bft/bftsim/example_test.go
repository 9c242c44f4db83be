package bftsim_test

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bftsim"
	"github.com/foresay/foresay/bft/counter"
	"github.com/foresay/foresay/bft/pbft"
	"github.com/foresay/foresay/wan"
)

// What a client in Iowa waits for: the first reply comes after a round trip to Texas, the confirmed
// one when three of four replicas say the same.
func Example() {
	place, err := wan.Preset("na4")
	if err != nil {
		fmt.Println(err)
		return
	}
	group, err := bftsim.New(bftsim.Config{Protocol: pbft.Protocol(), Service: counter.Service{}, Place: place,
		Clients: []wan.Site{"IA"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = group.Pass(time.Second)
	began := group.Now()
	group.Make(group.Clients[0], bft.Call{Command: counter.Increment(counter.Reply{})}, bftsim.Told{
		First: func(bft.Result) { fmt.Println("first", group.Now()-began) },
		Done:  func(r bft.Result, took time.Duration) { fmt.Println(r.Outcome, took) },
	})
	fmt.Println(group.Pass(time.Second))
	// Output:
	// first 22ms
	// executed 71ms
	// <nil>
}

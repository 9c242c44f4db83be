package geostore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/foresay/foresay/bench/geostore"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

func Example() {
	ctx := context.Background()
	store, err := geostore.Open(ctx, geostore.Config{
		Matrix: wan.Uniform(time.Millisecond, "a", "b", "c"), Shards: 2, Keys: 1_000_000, ValueBytes: 64, Seed: 1,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	clients, err := store.Connect(client.Spec, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer clients.Close()
	keys, err := workload.Zipfian(1_000_000, 0.75)
	if err != nil {
		fmt.Println(err)
		return
	}
	played, err := clients.Play(ctx, geostore.Load{Workload: workload.Retwis{Keys: keys}, Seed: 1, Txns: 50})
	fmt.Println(len(played.Txns), "transactions committed,", err)
	// Output: 50 transactions committed, <nil>
}

package front_test

import (
	"context"
	"fmt"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/front"
	"github.com/foresay/foresay/store/replicatedcommit"
)

// A client of a store at three sites.
func ExampleDial() {
	site := func(name string, number int) store.TopologySite {
		return store.TopologySite{Name: name, Number: number, Machines: []store.Machine{{
			Name: name + "-1", Peers: fmt.Sprintf("127.0.0.%d:7400", number), Client: fmt.Sprintf("127.0.0.%d:7401", number),
		}}}
	}
	conn, err := front.Dial(front.Config{
		Protocol: replicatedcommit.Protocol(),
		Topology: store.Topology{
			Epoch: 1, Shards: 3, Sites: []store.TopologySite{site("oregon", 1), site("ireland", 2), site("seoul", 3)},
		},
		Insecure: true, // for real: TLS
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	c, err := client.New(client.Config{Backend: conn})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // nobody is there
	fmt.Println(c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
		_, _, err := tx.Get(ctx, "k")
		return err
	}) != nil)
	// Output: true
}

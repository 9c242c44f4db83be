package machine_test

import (
	"context"
	"fmt"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/front"
	"github.com/foresay/foresay/store/machine"
	"github.com/foresay/foresay/store/replicatedcommit"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// A store of one machine, which remembers nothing, and a client.
func Example() {
	network := shape.NewNetwork(wan.Uniform(0, "here"), 1)
	defer network.Close()
	peers, err := network.Listen("here")
	if err != nil {
		panic(err)
	}
	clients, err := network.Listen("here")
	if err != nil {
		panic(err)
	}
	topology := store.Topology{Epoch: 1, Shards: 2,
		Sites: []store.TopologySite{{Name: "here", Number: 1, Machines: []store.Machine{{
			Name: "here-1", Peers: peers.Addr().String(), Client: clients.Addr().String(),
		}}}}}
	m, err := machine.Open(machine.Config{
		Protocol: replicatedcommit.Protocol(), Cluster: "example", Topology: topology, Machine: "here-1", PeerListener: peers,
		ClientListener: clients,
		Insecure:       true,
	})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()

	conn, err := front.Dial(front.Config{Protocol: replicatedcommit.Protocol(), Topology: topology, Insecure: true,
		Dial: network.DialContext("here")})
	if err != nil {
		panic(err)
	}
	c, err := client.New(client.Config{Backend: conn})
	if err != nil {
		panic(err)
	}
	fmt.Println(c.Txn(ctx, func(_ context.Context, tx *client.Tx) error { return tx.Put("k", []byte("v")) }))
	conn.Close()
	stop()
	fmt.Println(<-ended)
	// Output:
	// <nil>
	// <nil>
}

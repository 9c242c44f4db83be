package transport_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
)

// inbox is a sink that tells what it gets.
type inbox chan string

func (b inbox) Receive(msgs []transport.Inbound) {
	for _, m := range msgs {
		b <- fmt.Sprintf("%s from %d", m.Payload, m.From)
	}
}

func (b inbox) Broken(from protocol.ID) { b <- fmt.Sprintf("something of %d may be missing", from) }

// A client and a member. Package host does all this for nodes.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	member, err := transport.New(transport.Config{Cluster: "example", IDs: []protocol.ID{1}, Insecure: true})
	if err != nil {
		log.Fatal(err)
	}
	client, err := transport.New(transport.Config{Cluster: "example", Insecure: true})
	if err != nil {
		log.Fatal(err)
	}
	if err := client.SetPeer(1, lis.Addr().String()); err != nil {
		log.Fatal(err)
	}
	ended := make(chan error, 2)
	go func() { ended <- member.Run(ctx, lis) }()
	go func() { ended <- client.Run(ctx, nil) }()

	atMember, atClient := make(inbox, 10), make(inbox, 10)
	one, err := member.Open(transport.Addr{ID: 1}, atMember)
	if err != nil {
		log.Fatal(err)
	}
	other, err := client.Open(transport.Addr{ID: 70000}, atClient)
	if err != nil {
		log.Fatal(err)
	}
	other.Send(1, []byte("hello"))
	other.Flush()
	fmt.Println(<-atMember)
	one.Send(70000, []byte("welcome")) // over the client's own stream
	one.Flush()
	fmt.Println(<-atClient)

	stop()
	fmt.Println(<-ended, <-ended)
	// Output:
	// hello from 70000
	// welcome from 1
	// <nil> <nil>
}

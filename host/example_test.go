package host_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
)

// counter adds up what it is sent, and answers with the sum once that is on its disk.
type counter struct{ sum uint64 }

func (c *counter) Start(_ *protocol.Env[string], log []protocol.Record[string]) {
	for _, r := range log {
		c.sum += uint64(len(r.Msg))
	}
}

func (c *counter) Receive(env *protocol.Env[string], from protocol.ID, msg string) {
	c.sum += uint64(len(msg))
	env.Append(msg)
	env.Send(from, fmt.Sprint(c.sum))
}

func (c *counter) Expire(*protocol.Env[string], protocol.Timer) {}

// A member that counts, and a client of it, on two hosts.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server, err := host.New(host.Config{
		// see the transport's Config.TLS
		Network:  transport.Config{Cluster: "example", IDs: []protocol.ID{1}, Insecure: true},
		Listener: lis,
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := host.Add(server, host.Spec[string]{ID: 1, Node: new(counter), Codec: texts{}}); err != nil {
		log.Fatal(err)
	}

	client, err := host.New(host.Config{Network: transport.Config{Cluster: "example", Insecure: true}})
	if err != nil {
		log.Fatal(err)
	}
	if err := client.SetPeer(1, lis.Addr().String()); err != nil {
		log.Fatal(err)
	}
	answers := make(chan string, 1)
	asker, err := host.Add(client, host.Spec[string]{ID: 70000, Node: relay(1), Codec: texts{}, App: func(msg string) {
		answers <- msg
	}})
	if err != nil {
		log.Fatal(err)
	}

	ended := make(chan error, 2)
	go func() { ended <- server.Run(ctx) }()
	go func() { ended <- client.Run(ctx) }()
	deliver, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, word := range []string{"four", "seven77"} {
		if err := asker.Deliver(deliver, word); err != nil {
			log.Fatal(err)
		}
		fmt.Println(<-answers)
	}
	stop()
	fmt.Println(<-ended, <-ended)
	// Output:
	// 4
	// 11
	// <nil> <nil>
}

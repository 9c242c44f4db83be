package host_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
)

// asks sends a peer what its application says, and its application what the peer answers.
type asks struct{}

func (asks) Start(*protocol.Env[string], []protocol.Record[string]) {}

func (asks) Receive(env *protocol.Env[string], from protocol.ID, msg string) {
	switch from {
	case protocol.App:
		env.Send(7, msg)
	case 7:
		env.Send(protocol.App, "7 says "+msg)
	}
}

func (asks) Expire(*protocol.Env[string], protocol.Timer) {}

type text struct{}

func (text) Append(b []byte, msg string) ([]byte, error) { return append(b, msg...), nil }

func (text) Decode(b []byte) (string, error) { return string(b), nil }

// TestCarry: a node whose messages are carried by the program that it is in talks to others without
// the host's network.
func TestCarry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := host.New(host.Config{Network: transport.Config{Cluster: "nobody's", Insecure: true}, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		var n *host.Node[string]
		told := make(chan string, 1)
		n, err = host.Add(h, host.Spec[string]{
			ID: 1 << 16, Node: asks{}, Codec: text{}, App: func(msg string) { told <- msg },
			Carry: func(to protocol.ID, msg string) {
				go func() {
					time.Sleep(time.Second)
					n.Arrive(to, "so be "+msg, len(msg))
				}()
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- h.Run(ctx) }()
		start := time.Now()
		if err := n.Deliver(ctx, "it"); err != nil {
			t.Fatal(err)
		}
		if got := <-told; got != "7 says so be it" || time.Since(start) != time.Second {
			t.Errorf("after %v the application is told %q", time.Since(start), got)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

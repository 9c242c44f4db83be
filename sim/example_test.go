package sim_test

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/wan"
)

// counter counts what its application asks it to, on disk, and answers when the count is durable.
type counter struct{ count int }

func (c *counter) Start(_ *protocol.Env[string], log []protocol.Record[string]) { c.count = len(log) }

func (c *counter) Receive(env *protocol.Env[string], from protocol.ID, msg string) {
	c.count++
	env.Append(msg)
	env.Send(from, fmt.Sprintf("%s is number %d", msg, c.count))
}

func (c *counter) Expire(*protocol.Env[string], protocol.Timer) {}

// client forwards what its application says to node 1, and the answers back.
type client struct{}

func (client) Start(*protocol.Env[string], []protocol.Record[string]) {}

func (client) Receive(env *protocol.Env[string], from protocol.ID, msg string) {
	if from == protocol.App {
		env.Send(1, msg)
		return
	}
	env.Send(protocol.App, msg)
}

func (client) Expire(*protocol.Env[string], protocol.Timer) {}

func Example() {
	var s *sim.Sim[string]
	s, err := sim.New(sim.Config[string]{
		Seed: 1,
		WAN:  wan.Uniform(60*time.Millisecond, "here", "there"),
		Disk: sim.Disk{Latency: 4 * time.Millisecond},
		App:  func(_ protocol.ID, msg string) { fmt.Println(s.Now(), msg) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range []sim.Node[string]{
		{ID: 1, Site: "there", New: func() protocol.Node[string] { return new(counter) }},
		{ID: 2, Site: "here", New: func() protocol.Node[string] { return client{} }},
	} {
		if err := s.Add(n); err != nil {
			fmt.Println(err)
			return
		}
	}
	s.Deliver(2, "apple")
	s.At(100*time.Millisecond, func() { s.Deliver(2, "pear") })
	s.At(132*time.Millisecond, func() { s.Crash(1, sim.KeepNone) }) // the pear is not on disk yet
	s.At(200*time.Millisecond, func() { s.Restart(1) })
	s.At(300*time.Millisecond, func() { s.Deliver(2, "plum") })
	if err := s.Run(time.Second); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 64ms apple is number 1
	// 364ms plum is number 2
}

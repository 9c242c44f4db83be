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

// Many seeds, each with its own faults, are how a protocol is judged. Here is one of them.
func ExampleSim_Inject() {
	faults := sim.Swarm(3, sim.StreamFaults)
	fmt.Println("faults:", faults)
	s, err := sim.New(sim.Config[string]{
		Seed: 3, WAN: wan.Uniform(60*time.Millisecond, "here", "there"), Disk: sim.Disk{Latency: 4 * time.Millisecond},
		Replay: "foresay sim run --protocol counter --seed 3",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	counted := 0
	for id, make := range []func() protocol.Node[string]{
		func() protocol.Node[string] { return new(counter) },
		func() protocol.Node[string] { return client{} },
	} {
		if err := s.Add(sim.Node[string]{ID: protocol.ID(id + 1), Site: "here", New: make}); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := s.Inject(sim.Profile{Faults: faults, Every: 100 * time.Millisecond, MaxDown: 1}); err != nil {
		fmt.Println(err)
		return
	}
	for i := range 50 {
		s.At(time.Duration(i)*100*time.Millisecond, func() { s.Deliver(2, "plum") })
	}
	if err := s.Run(10 * time.Second); err != nil { // a failure would say how to repeat it
		fmt.Println(err)
		return
	}
	s.Heal()
	err = s.RunUntil(time.Minute, func() bool {
		log, _, err := s.Disk(1)
		counted = len(log)
		return err == nil && s.Up(1)
	})
	fmt.Println("came back:", err == nil, "and knows some:", counted > 0 && counted <= 50)
	// Output:
	// faults: crash,slowdisk,pause,skew,jump,partition,slow,jitter
	// came back: true and knows some: true
}

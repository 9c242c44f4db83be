package protocol_test

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
)

// pinger asks its peer once a second.
type pinger struct{ peer protocol.ID }

type tick struct{}

func (p pinger) Start(env *protocol.Env[string], _ []protocol.Record[string]) { p.Expire(env, tick{}) }

func (p pinger) Receive(env *protocol.Env[string], from protocol.ID, msg string) {
	if msg == "ping" {
		env.Send(from, "pong")
	}
}

func (p pinger) Expire(env *protocol.Env[string], t protocol.Timer) {
	env.Send(p.peer, "ping")
	env.After(time.Second, t)
}

// A node is called with an Env, in which it leaves what it wants done. Runners do this; so can a
// test.
func Example() {
	var node protocol.Node[string] = pinger{peer: 2}
	env := protocol.NewEnv[string](nil, 1, nil)
	env.Begin(0)
	node.Start(env, nil)
	for _, e := range env.Out {
		switch e.Kind {
		case protocol.KindSend:
			fmt.Println("send", e.Msg, "to", e.To)
		case protocol.KindAfter:
			fmt.Println("expire in", e.Delay)
		}
	}
	// Output:
	// send ping to 2
	// expire in 1s
}

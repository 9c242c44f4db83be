package service

import (
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
)

// The groups of a host's nodes.
const (
	statusGroup transport.Group = 1
	nodeGroup   transport.Group = 2
)

// statusVersion is the version of the messages below.
const statusVersion = 1

// statusMessage is what the nodes that hand out status exchange.
type statusMessage any

type (
	// ask is a client's question to a replica.
	ask struct{ Number uint64 }
	// answer is what the replica says: a Status in JSON.
	answer struct {
		Number uint64
		Body   []byte
	}

	// askAll goes from a client's application to its node, told the other way.
	askAll struct {
		number uint64
		to     []protocol.ID
	}
	told struct {
		from protocol.ID
		answer
	}
	// asked goes from a replica's node to its application, which answers with answered.
	asked struct {
		from   protocol.ID
		number uint64
	}
	answered struct {
		to protocol.ID
		answer
	}
)

func statusCodec() protocol.Codec[statusMessage] {
	return wirefmt.NewFormat("bft status", statusVersion,
		wirefmt.NewKind[statusMessage](1, func(c *wirefmt.Coder, m *ask) { wirefmt.Uint(c, &m.Number) }),
		wirefmt.NewKind[statusMessage](2, func(c *wirefmt.Coder, m *answer) {
			wirefmt.Uint(c, &m.Number)
			wirefmt.Bytes(c, &m.Body)
		}))
}

// statusNode hands questions about a replica's status and their answers to and fro. It keeps
// nothing.
type statusNode struct{}

func (statusNode) Start(*protocol.Env[statusMessage], []protocol.Record[statusMessage]) {}

func (statusNode) Expire(*protocol.Env[statusMessage], protocol.Timer) {}

func (statusNode) Receive(env *protocol.Env[statusMessage], from protocol.ID, msg statusMessage) {
	switch m := msg.(type) {
	case ask:
		env.Send(protocol.App, asked{from, m.Number})
	case answer:
		env.Send(protocol.App, told{from, m})
	case askAll:
		for _, id := range m.to {
			env.Send(id, ask{m.number})
		}
	case answered:
		env.Send(m.to, m.answer)
	}
}

// watched is a replica's node whose application can ask how it stands.
type watched struct {
	protocol.Node[bft.Message]
	standing func() bft.Standing
}

type (
	standingWanted struct{ number uint64 }
	standingTold   struct {
		number uint64
		bft.Standing
	}
)

// Receive is part of protocol.Node.
func (w watched) Receive(env *protocol.Env[bft.Message], from protocol.ID, msg bft.Message) {
	if m, ok := msg.(standingWanted); ok && from == protocol.App {
		env.SendAhead(protocol.App, standingTold{m.number, w.standing()}) // whatever the disk does
		return
	}
	w.Node.Receive(env, from, msg)
}

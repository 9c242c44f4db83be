package service

import (
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
)

// statusVersion is the version of the messages below.
const statusVersion = 1

// statusMessage is what the nodes that hand out status exchange.
type statusMessage any

type (
	// ask is a client's question to a replica.
	ask struct{ Number uint64 }
	// answer is what the replica says: a list of Status in JSON, one for each group.
	answer struct {
		Number uint64
		Body   []byte
	}

	// here is what a replica that waits to be added tells the members: its address, which they need
	// to answer it.
	here struct{ Address string }
	// hereAll goes from such a replica's application to its node, and hereIs from a member's node
	// to its application.
	hereAll struct {
		address string
		to      []protocol.ID
	}
	hereIs struct {
		from    protocol.ID
		address string
	}

	// leadNow asks a replica that leads a group, from 1 on, to have another one lead. The answer is
	// a leadAnswer in JSON.
	leadNow struct {
		Number uint64
		To     protocol.ID
		Group  uint64
	}
	// leadAll goes from a client's application to its node, and leadAsked from a replica's node to
	// its application.
	leadAll struct {
		leader protocol.ID
		leadNow
	}
	leadAsked struct {
		from protocol.ID
		leadNow
	}

	// waits asks a replica to tell the client when keys of a group, from 1 on, have changed after a
	// version: see watchers. A later one of the same number takes its place.
	waits struct {
		Number   uint64 // of the watch
		Round    uint64 // how often the client has asked
		Group    uint64
		From, To string
		After    uint64
	}
	// waiting is the answer: nothing has changed, and the replica tells when something does. It has
	// the members of the group as the replica knows them.
	waiting struct {
		Number, Round uint64
		Members       []protocol.ID
	}
	// changed tells a client that keys may have changed, once for each waits.
	changed struct{ Number, Round uint64 }
	// waitsNoMore ends a waits.
	waitsNoMore struct{ Number uint64 }
	// toEach goes from an application to its node: the messages go to other nodes. heard goes from
	// the node to its application: a message of another node.
	toEach []envelope
	heard  envelope
	// broken goes from a node to its application: messages from a peer may have been lost.
	broken   struct{ from protocol.ID }
	envelope struct {
		peer protocol.ID
		msg  statusMessage
	}

	// askAll goes from a client's application to its node.
	askAll struct {
		number uint64
		to     []protocol.ID
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
	// told goes from a client's node to its application.
	told struct {
		from protocol.ID
		answer
	}
)

// sizeBytes is what it counts for.
func (w *waits) sizeBytes() int { return len(w.From) + len(w.To) }

func statusCodec() protocol.Codec[statusMessage] {
	return wirefmt.NewFormat("status", statusVersion,
		wirefmt.NewKind[statusMessage](1, func(c *wirefmt.Coder, m *ask) { wirefmt.Uint(c, &m.Number) }),
		wirefmt.NewKind[statusMessage](2, func(c *wirefmt.Coder, m *answer) {
			wirefmt.Uint(c, &m.Number)
			wirefmt.Bytes(c, &m.Body)
		}),
		wirefmt.NewKind[statusMessage](3, func(c *wirefmt.Coder, m *here) { wirefmt.String(c, &m.Address) }),
		wirefmt.NewKind[statusMessage](4, func(c *wirefmt.Coder, m *leadNow) {
			wirefmt.Uint(c, &m.Number)
			wirefmt.Uint32(c, &m.To)
			wirefmt.Uint(c, &m.Group)
		}),
		wirefmt.NewKind[statusMessage](5, func(c *wirefmt.Coder, m *waits) {
			wirefmt.Uint(c, &m.Number)
			wirefmt.Uint(c, &m.Round)
			wirefmt.Uint(c, &m.Group)
			wirefmt.String(c, &m.From)
			wirefmt.String(c, &m.To)
			wirefmt.Uint(c, &m.After)
		}),
		wirefmt.NewKind[statusMessage](6, func(c *wirefmt.Coder, m *waiting) {
			wirefmt.Uint(c, &m.Number)
			wirefmt.Uint(c, &m.Round)
			wirefmt.List(c, &m.Members, 1, wirefmt.Uint32)
		}),
		wirefmt.NewKind[statusMessage](7, func(c *wirefmt.Coder, m *changed) {
			wirefmt.Uint(c, &m.Number)
			wirefmt.Uint(c, &m.Round)
		}),
		wirefmt.NewKind[statusMessage](8, func(c *wirefmt.Coder, m *waitsNoMore) { wirefmt.Uint(c, &m.Number) }))
}

// statusNode hands questions about a replica's status and their answers to and fro, and what
// clients and replicas tell each other of changes. It keeps nothing.
type statusNode struct{}

func (statusNode) Start(*protocol.Env[statusMessage], []protocol.Record[statusMessage]) {}

func (statusNode) Expire(*protocol.Env[statusMessage], protocol.Timer) {}

func (statusNode) Receive(env *protocol.Env[statusMessage], from protocol.ID, msg statusMessage) {
	switch m := msg.(type) {
	case ask:
		env.Send(protocol.App, asked{from, m.Number})
	case answer:
		env.Send(protocol.App, told{from, m})
	case here:
		env.Send(protocol.App, hereIs{from, m.Address})
	case leadNow:
		env.Send(protocol.App, leadAsked{from, m})
	case waits, waiting, changed, waitsNoMore:
		env.Send(protocol.App, heard{from, m})
	case toEach:
		for _, e := range m {
			env.Send(e.peer, e.msg)
		}
	case leadAll:
		env.Send(m.leader, m.leadNow)
	case hereAll:
		for _, id := range m.to {
			env.Send(id, here{m.address})
		}
	case askAll:
		for _, id := range m.to {
			env.Send(id, ask{m.number})
		}
	case answered:
		env.Send(m.to, m.answer)
	}
}

// Broken makes the node a protocol.Linked.
func (statusNode) Broken(env *protocol.Env[statusMessage], from protocol.ID) {
	env.Send(protocol.App, broken{from})
}

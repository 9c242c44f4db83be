package kit

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
)

type (
	// Ask has the group of a shard carry out a command: it is what most GroupCalls are. It goes to the
	// server that is taken for the leader, and is repeated until it is answered: with a result of the
	// protocol's once the command is carried out, or by Elsewhere.
	Ask struct {
		Shard   uint32
		Ref     uint64
		Command []byte
	}

	// Elsewhere answers a GroupCall if the server does not lead, and names the one that does, if it
	// knows one; 0 asks to ask later.
	Elsewhere struct {
		Ref    uint64
		Leader protocol.ID
	}
)

// AskKind is that of an Ask, under a tag of the protocol's.
func AskKind(tag byte) wirefmt.Kind[store.Message] {
	return wirefmt.NewKind[store.Message](tag, func(c *wirefmt.Coder, m *Ask) {
		wirefmt.Uint32(c, &m.Shard)
		wirefmt.Uint(c, &m.Ref)
		wirefmt.Bytes(c, &m.Command)
	})
}

// ElsewhereKind is that of an Elsewhere, under a tag of the protocol's.
func ElsewhereKind(tag byte) wirefmt.Kind[store.Message] {
	return wirefmt.NewKind[store.Message](tag, func(c *wirefmt.Coder, m *Elsewhere) {
		wirefmt.Uint(c, &m.Ref)
		wirefmt.Uint32(c, &m.Leader)
	})
}

// Encoded returns a command of the protocol's, which its format knows, as bytes.
func Encoded(commands *wirefmt.Format[store.Message], command store.Message) []byte {
	b, err := commands.Append(nil, command)
	if err != nil {
		panic(fmt.Sprintf("a command cannot be encoded: %v", err))
	}
	return b
}

// Asking returns what asks for the commands of calls, for NewGroupCalls.
func Asking(commands *wirefmt.Format[store.Message]) func(ref uint64, call *GroupCall) store.Message {
	return func(ref uint64, call *GroupCall) store.Message {
		return Ask{call.Shard, ref, Encoded(commands, call.Command)}
	}
}

// A Question is a GroupCall as the server has it that is to answer it.
type Question struct {
	From protocol.ID
	Ref  uint64
}

// Elsewhere has the coordinator ask another server, or later: see the message.
func (q Question) Elsewhere(env *protocol.Env[store.Message], leader protocol.ID) {
	env.Send(q.From, Elsewhere{q.Ref, leader})
}

// Questions are those for whose commands a leader has proposed, and has not carried out, by where
// these are in its log.
type Questions map[raft.Position]Question

// Carried takes the question for a command that is carried out; ok is false if nobody has asked.
func (q Questions) Carried(at raft.Position) (_ Question, ok bool) {
	x, ok := q[at]
	delete(q, at)
	return x, ok
}

// Elsewhere sends whoever has asked to a new leader, and others with them, in order, and forgets
// them. What was proposed may be carried out or not, and the new leader answers only what it was
// asked.
func (q Questions) Elsewhere(env *protocol.Env[store.Message], leader protocol.ID, others ...Question) {
	all := slices.Clone(others)
	for _, x := range q { //pure:ok they are sorted
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b Question) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Ref, b.Ref)) })
	for _, x := range all {
		x.Elsewhere(env, leader)
	}
	clear(q)
}

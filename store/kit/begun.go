package kit

import (
	"maps"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// Begun are a client's transactions that have begun at a coordinator, by a Declare or another call,
// and are not submitted. B is a pointer to what the protocol keeps about one, a struct that embeds
// [Opened].
type Begun[B interface{ opened() *Opened }] struct {
	layout store.Layout
	refuse func(env *protocol.Env[store.Message], own B, s *Step)
	of     map[store.TxnID]B
	refs   map[uint64]store.TxnID // by the Refs of the calls that have begun them
}

// An Opened is a transaction that has begun.
type Opened struct {
	Ref   uint64 // of the call that has begun it
	Site  int    // whose coordinator has it
	Steps []*Step
}

func (o *Opened) opened() *Opened { return o }

// Waits reports whether a step has no answer.
func (o *Opened) Waits() bool {
	return slices.ContainsFunc(o.Steps, func(s *Step) bool { return !s.Answered })
}

// A Step is what the application has asked for in a transaction at once.
type Step struct {
	Ref      uint64 // of its call
	Ask      store.DeclareRequest
	Tries    int // how often the protocol has asked: it counts
	Answered bool
}

// BeatTimer is when a coordinator is asked again, or told that the client is there. The protocol
// sets it, and the books stop it.
type BeatTimer struct{ ID store.TxnID }

// NewBegun returns the books of a client that has begun nothing. refuse tells the application of a
// step that it has no answer, and gets none.
func NewBegun[B interface{ opened() *Opened }](
	l store.Layout, refuse func(env *protocol.Env[store.Message], own B, s *Step),
) Begun[B] {
	return Begun[B]{layout: l, refuse: refuse, of: map[store.TxnID]B{}, refs: map[uint64]store.TxnID{}}
}

// Add takes a transaction, which the protocol then begins.
func (b *Begun[B]) Add(id store.TxnID, own B) { b.of[id], b.refs[own.opened().Ref] = own, id }

// Len returns how many transactions there are.
func (b *Begun[B]) Len() int { return len(b.of) }

// All returns the transactions, in order of their IDs.
func (b *Begun[B]) All() []B {
	var out []B
	for _, id := range slices.SortedFunc(maps.Keys(b.of), store.TxnID.Compare) {
		out = append(out, b.of[id])
	}
	return out
}

// Of returns a transaction, nil if it is not there.
func (b *Begun[B]) Of(id store.TxnID) B { return b.of[id] }

// By returns the transaction that the call with a Ref has begun, nil if it is not there.
func (b *Begun[B]) By(ref uint64) (store.TxnID, B) {
	id := b.refs[ref]
	return id, b.of[id]
}

// Tell sends the coordinator of a transaction a message.
func (b *Begun[B]) Tell(env *protocol.Env[store.Message], id store.TxnID, m store.Message) {
	env.Send(b.layout.Coordinator(b.of[id].opened().Site, id), m)
}

// Abandon has its coordinator end a transaction, if it is there, and forgets it.
func (b *Begun[B]) Abandon(env *protocol.Env[store.Message], id store.TxnID) {
	if _, ok := b.of[id]; ok {
		b.Tell(env, id, store.AbandonRequest{ID: id})
		b.Close(env, id)
	}
}

// Close forgets a transaction, and says so to who waits for what it reads.
func (b *Begun[B]) Close(env *protocol.Env[store.Message], id store.TxnID) {
	own := b.of[id]
	delete(b.of, id)
	delete(b.refs, own.opened().Ref)
	env.Stop(BeatTimer{id})
	for _, s := range own.opened().Steps {
		if !s.Answered {
			b.refuse(env, own, s)
		}
	}
}

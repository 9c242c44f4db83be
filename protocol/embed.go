package protocol

import (
	"iter"
	"slices"
)

// An Embedding runs a node whose messages are of type N as a part of one whose messages are of type
// M: Carousel's shards over Raft [Carousel §4.1], a track of Domino over Paxos. The outer node
// hands the inner one what is its, by Call; what the inner node wants done becomes the outer one's
// effects. The fields are set before the first call; no field is optional but those that say so.
type Embedding[M, N any] struct {
	Message func(N) M         // puts an inner message or record into an outer one
	Timer   func(Timer) Timer // makes an inner timer one of the outer node's
	// App takes what the inner node sends to its application, which is the outer node, after the
	// inner call's other effects. It may call the inner node again; what that sends to its
	// application comes behind what waits already. nil: nobody.
	App func(env *Env[M], msg N)
	// Truncate is told that the inner node needs none of its records below an index, which is one
	// of the outer log: it truncates when all parts agree. nil: nobody.
	Truncate func(env *Env[M], before uint64)
	Prefix   []byte // of the inner node's keys

	env *Env[N]
	app []N  // sent to the application and not taken yet
	in  bool // App is being called
}

// Call calls the inner node: call is a method of it with its arguments, and does not use Call
// itself.
func (b *Embedding[M, N]) Call(outer *Env[M], call func(inner *Env[N])) {
	if b.env == nil {
		b.env = NewEnv[N](nil, 1, nil)
	}
	in := b.env
	in.Begin(outer.Now)
	in.Rand, in.next = outer.Rand, outer.next
	in.keys = Prefixed(outer, b.Prefix)
	call(in)
	in.keys = noKeys{}

	var truncate []uint64
	for _, e := range in.Out {
		switch e.Kind {
		case KindAppend:
			outer.Append(b.Message(e.Msg))
		case KindTruncate:
			truncate = append(truncate, e.Index)
		case KindPut:
			outer.Put(slices.Concat(b.Prefix, e.Key), e.Value)
		case KindDelete:
			outer.Delete(slices.Concat(b.Prefix, e.Key))
		case KindAfter:
			outer.After(e.Delay, b.Timer(e.Timer))
		case KindStop:
			outer.Stop(b.Timer(e.Timer))
		case KindSend, KindSendAhead:
			b.send(outer, e)
		}
	}
	// These may append and call the inner node again, so they come when its effects have been taken
	// over.
	if b.Truncate != nil && len(truncate) > 0 {
		b.Truncate(outer, slices.Max(truncate))
	}
	b.deliver(outer)
}

// deliver hands the application what the inner node sent to it. Calls that App makes leave theirs
// to the one that is at it.
func (b *Embedding[M, N]) deliver(outer *Env[M]) {
	if b.in {
		return
	}
	b.in = true
	for i := 0; i < len(b.app); i++ {
		b.App(outer, b.app[i])
	}
	b.in = false
	clear(b.app)
	b.app = b.app[:0]
}

func (b *Embedding[M, N]) send(outer *Env[M], e Effect[N]) {
	switch {
	case e.To == App && b.App != nil:
		b.app = append(b.app, e.Msg)
	case e.To == App:
	case e.Kind == KindSendAhead:
		outer.SendAhead(e.To, b.Message(e.Msg))
	case e.Unhurried:
		outer.SendUnhurried(e.To, b.Message(e.Msg))
	default:
		outer.Send(e.To, b.Message(e.Msg))
	}
}

// Prefixed returns the part of a key space that lies behind a prefix: its keys are without it.
func Prefixed(keys Keys, prefix []byte) Keys { return prefixed{keys, prefix} }

type prefixed struct {
	keys   Keys
	prefix []byte
}

func (p prefixed) Get(key []byte) ([]byte, bool) {
	return p.keys.Get(slices.Concat(p.prefix, key))
}

func (p prefixed) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	end := after(p.prefix)
	if hi != nil {
		end = slices.Concat(p.prefix, hi)
	}
	all := p.keys.Scan(slices.Concat(p.prefix, lo), end)
	return func(yield func([]byte, []byte) bool) {
		for k, v := range all {
			if !yield(k[len(p.prefix):], v) {
				return
			}
		}
	}
}

// after returns the smallest key above all that begin with the prefix, nil if there is none.
func after(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			end := slices.Clone(prefix[:i+1])
			end[i]++
			return end
		}
	}
	return nil
}

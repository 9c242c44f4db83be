package bftsim

import (
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/protocol"
)

// turncoat is a replica that is honest until it turns, and a traitor from then on. Both are one
// node: the traitor is a wrapper around the honest one.
type turncoat struct {
	honest, traitor protocol.Node[bft.Message]
	trip            time.Duration
	turned          func() bool
}

// Start is part of protocol.Node, as are Receive and Expire.
func (t *turncoat) Start(env *protocol.Env[bft.Message], log []protocol.Record[bft.Message]) {
	t.traitor.Start(env, log)
}

func (t *turncoat) Receive(env *protocol.Env[bft.Message], from protocol.ID, msg bft.Message) {
	t.now().Receive(env, from, msg)
}

func (t *turncoat) Expire(env *protocol.Env[bft.Message], timer protocol.Timer) {
	if _, own := timer.(kit.BeatTimer); !own && !t.turned() {
		env.After(t.trip, timer) // it is the traitor's, whose time has not come
		return
	}
	t.now().Expire(env, timer)
}

func (t *turncoat) now() protocol.Node[bft.Message] {
	if t.turned() {
		return t.traitor
	}
	return t.honest
}

// Standing tells how the replica is, honest or not.
func (t *turncoat) Standing() bft.Standing {
	if s, ok := t.honest.(interface{ Standing() bft.Standing }); ok {
		return s.Standing()
	}
	return bft.Standing{}
}

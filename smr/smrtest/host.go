package smrtest

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// vouch is what a host knows of others.
type vouch func(protocol.ID) (smr.Vouched, bool)

// vouching is a replica and the beats of its host, as one node: what the network and the machine do
// to it they do to both.
type vouching struct {
	protocol.Node[smr.Message]
	id      protocol.ID
	members func() []protocol.ID
	beats   *kit.HostBeats
}

func (v *vouching) Start(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message]) {
	v.beats.Start(env)
	v.Node.Start(env, log)
}

func (v *vouching) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if beat, ok := msg.(kit.HostBeat); ok {
		v.beats.Receive(env.Now, from, beat)
		return
	}
	v.Node.Receive(env, from, msg)
}

func (v *vouching) Expire(env *protocol.Env[smr.Message], t protocol.Timer) {
	if t == (kit.HostBeatTimer{}) {
		v.beats.Beat(env, v.id, v.members())
		return
	}
	v.Node.Expire(env, t)
}

// Broken is part of protocol.Linked.
func (v *vouching) Broken(env *protocol.Env[smr.Message], from protocol.ID) {
	if l, ok := v.Node.(protocol.Linked[smr.Message]); ok {
		l.Broken(env, from)
	}
}

// Check is part of protocol.Checked.
func (v *vouching) Check() error {
	if c, ok := v.Node.(protocol.Checked); ok {
		return c.Check()
	}
	return nil
}

package raft

import (
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/kit"
)

// TestPartAtATime: a leader sends a follower that does not answer no more of a long log than fits
// in the queue of its connection.
func TestPartAtATime(t *testing.T) {
	const entries, size = 320, 64 << 10
	r, env := lone(t)
	elect(t, r, env)
	env.Begin(0)
	for i := range entries {
		r.propose(env, []kit.Entry{{Kind: kit.Command, Client: 9, Session: 1, Seq: kit.Seq(i + 1),
			Command: make([]byte, size)}})
	}
	sent := 0
	for _, e := range env.Out {
		m, ok := kit.Inside(e.Msg).(rpc)
		if !ok || e.Kind != protocol.KindSendAhead || e.To != 2 || m.GetType() != raftpb.MsgApp {
			continue
		}
		for _, entry := range m.GetEntries() {
			sent += len(entry.GetData())
		}
	}
	if bound := r.Cfg.MaxUnderwayBytes; sent < bound/2 || sent > bound+2*kit.MessageBytes {
		t.Errorf("%d bytes are under way", sent)
	}
}

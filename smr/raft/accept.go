package raft

import (
	"encoding/binary"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/foresay/foresay/protocol"
)

// accepts reports whether a message from a peer may be given to the library, which panics about
// what no correct peer sends. Messages that a replica sends to itself are its own.
func (c *core) accepts(from protocol.ID, m *raftpb.Message) bool {
	if m == nil || m.GetTo() != uint64(c.id) {
		return false
	}
	if from == c.id {
		return m.GetFrom() == uint64(c.id) || raft.IsLocalMsgTarget(m.GetFrom())
	}
	if m.GetFrom() != uint64(from) || raft.IsLocalMsgTarget(m.GetFrom()) || len(m.GetResponses()) > 0 || m.GetTerm() == 0 {
		return false
	}
	switch m.GetType() {
	case raftpb.MsgApp:
		return c.acceptsEntries(m)
	case raftpb.MsgHeartbeat:
		return m.GetCommit() <= c.last
	case raftpb.MsgHeartbeatResp:
		return c.acceptsContext(m.GetContext())
	case raftpb.MsgAppResp:
		return m.GetReject() || m.GetIndex() <= c.last || !c.leads()
	case raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgPreVote, raftpb.MsgPreVoteResp, raftpb.MsgTimeoutNow:
		return true
	}
	// A snapshot comes in another message; the others are local to a replica.
	return false
}

// acceptsEntries reports whether the entries of a message follow one another, and are no newer than
// it.
func (c *core) acceptsEntries(m *raftpb.Message) bool {
	term := m.GetLogTerm()
	for i, e := range m.GetEntries() {
		if e == nil || e.GetIndex() != m.GetIndex()+1+uint64(i) || e.GetTerm() < term || e.GetTerm() > m.GetTerm() {
			return false
		}
		term = e.GetTerm()
	}
	return m.GetIndex()+uint64(len(m.GetEntries())) >= m.GetIndex()
}

// acceptsContext reports whether a heartbeat's answer confirms no more reads than were asked about.
func (c *core) acceptsContext(ctx []byte) bool {
	return len(ctx) == 0 || len(ctx) == 8 && binary.LittleEndian.Uint64(ctx) <= c.beatTicks
}

func (c *core) noteContext(ctx []byte) {
	if len(ctx) == 8 {
		c.beatTicks = binary.LittleEndian.Uint64(ctx)
	}
}

package raft

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// onRequest proposes what a client asks for.
func (r *replica) onRequest(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if !r.core.leads() {
		env.Send(from, kit.Redirect{Leader: r.leader()})
		return
	}
	entries := r.Desk.Take(env, from, msg, nil)
	for len(entries) > 0 {
		n := min(len(entries), r.Cfg.MaxBatch)
		r.propose(env, entries[:n])
		entries = entries[n:]
	}
}

func (r *replica) propose(env *protocol.Env[smr.Message], entries []kit.Entry) {
	if r.handsOver() {
		for _, e := range entries {
			r.Desk.Forget(e) // its client asks the next leader
		}
		return
	}
	batch := make([]*raftpb.Entry, len(entries))
	for i, e := range entries {
		batch[i] = &raftpb.Entry{Data: entryLayout.Encode(e)}
	}
	if !r.core.propose(batch) {
		r.Desk.GiveBack(env, entries)
		return
	}
	r.core.flush(env)
}

// onChange proposes a change of the members, one at a time [Raft thesis §4.1].
func (r *replica) onChange(env *protocol.Env[smr.Message], from protocol.ID, msg kit.ChangeRequest) {
	switch {
	case !r.core.leads():
		env.Send(from, kit.Redirect{Leader: r.leader()})
		return
	case r.core.applied < r.ledSince:
		env.Send(from, msg.NotYet("the leader is new, and does not know yet what was decided before"))
		return
	}
	if entries := r.Desk.Change(env, from, msg, r.upToDate, nil); len(entries) > 0 {
		e := entries[0]
		switch {
		case r.changing:
			r.Desk.Forget(e)
			env.Send(from, msg.NotYet("another change of the members is on its way"))
			return
		case !r.core.propose([]*raftpb.Entry{changeEntry(e)}):
			r.Desk.GiveBack(env, entries)
			return
		}
		r.changing = true
		r.core.flush(env)
	}
}

// changeEntry puts a change of the members into the form that the library knows.
func changeEntry(e kit.Entry) *raftpb.Entry {
	cc := &raftpb.ConfChange{Type: raftpb.ConfChangeAddNode.Enum(), NodeId: new(uint64(e.Members.Add.ID)),
		Context: entryLayout.Encode(e)}
	if e.Members.Remove != 0 {
		cc.Type, cc.NodeId = raftpb.ConfChangeRemoveNode.Enum(), new(uint64(e.Members.Remove))
	}
	b, err := proto.Marshal(cc)
	if err != nil {
		panic("raft: a change of members cannot be encoded: " + err.Error())
	}
	return &raftpb.Entry{Type: raftpb.EntryConfChange.Enum(), Data: b}
}

var entryLayout = wirefmt.NewLayout("raft: entry", kit.EntryFields)

// apply executes what was committed.
func (r *replica) apply(env *protocol.Env[smr.Message], entries []*raftpb.Entry) {
	for _, e := range entries {
		if e.GetType() == raftpb.EntryConfChange {
			r.applyChange(env, e)
			continue
		}
		entry := kit.Entry{Kind: kit.NoOp} // a new leader's
		if len(e.GetData()) > 0 {
			entry = r.decode(env, e.GetData())
		}
		r.applyOne(env, e.GetIndex(), entry)
	}
}

func (r *replica) applyOne(env *protocol.Env[smr.Message], index uint64, e kit.Entry) {
	reply := r.State.Apply(smr.Slot(index), e)
	if r.led {
		r.Desk.Applied(env, e, reply)
	}
}

// decode returns an entry that some leader has encoded. What cannot be read stops the replica: it
// would come to differ from the others.
func (r *replica) decode(env *protocol.Env[smr.Message], b []byte) kit.Entry {
	e, err := decodeEntry(b)
	if err != nil {
		r.Fail(env, fmt.Errorf("raft: %w", err))
	}
	return e
}

func decodeEntry(b []byte) (kit.Entry, error) {
	e, err := entryLayout.DecodeShared(b)
	if err != nil {
		return kit.Entry{Kind: kit.NoOp}, fmt.Errorf(
			"a committed entry cannot be read, by this version of the program: %w", err)
	}
	return e, nil
}

func (r *replica) applyChange(env *protocol.Env[smr.Message], e *raftpb.Entry) {
	var cc raftpb.ConfChange
	if err := proto.Unmarshal(e.GetData(), &cc); err != nil {
		r.Fail(env, fmt.Errorf("raft: a committed change of the members cannot be read: %w", err))
		return
	}
	entry := r.decode(env, cc.GetContext())
	if r.part != nil {
		r.part.change(env, e.GetIndex(), entry)
	} else {
		r.applyOne(env, e.GetIndex(), entry)
	}
	// The state decides what came of it; the library is told the same.
	id := protocol.ID(cc.GetNodeId())
	disk, member := r.State.Member(id)
	if member != (cc.GetType() == raftpb.ConfChangeAddNode) {
		cc.NodeId = new(uint64(0))
	}
	if member {
		r.addedLearner(id, disk)
	}
	successor := protocol.ID(0)
	if id == r.Cfg.ID && !member && r.led {
		successor = r.successor(env.Now, 0)
	}
	r.core.node.ApplyConfChange(&cc)
	if successor != 0 {
		r.appoint(env, successor)
	}
	r.changing, r.core.log.changed = false, true
	if member {
		r.heard[id] = env.Now
	}
	r.MembersChanged(env)
}

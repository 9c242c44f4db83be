package raft

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// applyDoubtful executes the whole log. The commit index on the disk may be older than what was
// executed, so what is above it counts as well.
func (r *replica) applyDoubtful(*protocol.Env[smr.Message]) (doubtful int, err error) {
	for _, e := range r.core.log.entries {
		data := e.GetData()
		if e.GetType() == raftpb.EntryConfChange {
			var cc raftpb.ConfChange
			if err := proto.Unmarshal(data, &cc); err != nil {
				return 0, fmt.Errorf("entry %d, a change of the members, cannot be read: %w", e.GetIndex(), err)
			}
			data = cc.GetContext()
		}
		entry := kit.Entry{Kind: kit.NoOp} // a new leader's
		if len(data) > 0 {
			if entry, err = decodeEntry(data); err != nil {
				return 0, err
			}
		}
		r.State.Apply(smr.Slot(e.GetIndex()), entry)
		if e.GetIndex() > r.core.hard.commit {
			doubtful++
		}
	}
	return doubtful, nil
}

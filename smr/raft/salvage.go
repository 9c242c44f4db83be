package raft

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// salvage executes the whole log. The commit index on the disk may be older than what was executed,
// so what is above it counts as well.
func salvage(
	cfg smr.ReplicaConfig, env *protocol.Env[smr.Message], log []protocol.Record[smr.Message],
) (smr.Salvaged, error) {
	r, err := newReplica(cfg)
	if err != nil {
		return smr.Salvaged{}, err
	}
	if _, err := r.recover(env, log); err != nil {
		return smr.Salvaged{}, err
	}
	doubtful := 0
	for _, e := range r.core.log.entries {
		data := e.GetData()
		if e.GetType() == raftpb.EntryConfChange {
			var cc raftpb.ConfChange
			if err := proto.Unmarshal(data, &cc); err != nil {
				return smr.Salvaged{}, fmt.Errorf("raft: entry %d, a change of the members, cannot be read: %w", e.GetIndex(), err)
			}
			data = cc.GetContext()
		}
		entry := kit.Entry{Kind: kit.NoOp} // a new leader's
		if len(data) > 0 {
			entry = r.decode(env, data)
		}
		if r.halted != "" {
			return smr.Salvaged{}, errors.New(r.halted)
		}
		r.state.Apply(smr.Slot(e.GetIndex()), entry)
		if e.GetIndex() > r.core.hard.commit {
			doubtful++
		}
	}
	return r.state.Salvaged(doubtful), nil
}

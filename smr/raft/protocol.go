package raft

import (
	"fmt"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// formatVersion is the version of messages and records. It is to change, once there is a release,
// with each change of theirs that an older program cannot read.
const formatVersion = 1

// Protocol returns Raft as a protocol of the family.
func Protocol() smr.Protocol {
	return smr.Protocol{
		Name: "raft",
		Doc:  "Raft, by etcd's implementation: one leader, a majority per command.",
		NewReplica: func(cfg smr.ReplicaConfig) (protocol.Node[smr.Message], error) {
			r, err := newReplica(cfg)
			if err != nil {
				return nil, err
			}
			return r, nil
		},
		NewClient: func(cfg smr.ClientConfig) (protocol.Node[smr.Message], error) {
			c, err := kit.NewLeaderClient(cfg)
			if err != nil {
				return nil, fmt.Errorf("raft: %w", err)
			}
			return c, nil
		},
		Salvage:   salvage,
		HandsOver: true,
		Learns:    true,
		Codec:     kit.NewFormat("raft", formatVersion, kinds()...),
	}
}

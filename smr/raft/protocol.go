package raft

import (
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// formatVersion is the version of messages and records. It is to change, once there is a release,
// with each change of theirs that an older program cannot read.
const formatVersion = 1

// Protocol returns Raft as a protocol of the family.
func Protocol() smr.Protocol {
	return smr.Protocol{
		Name:       "raft",
		Doc:        "Raft, by etcd's implementation: one leader, a majority per command.",
		NewReplica: kit.NodeOf(newReplica),
		NewClient:  kit.PlainClient,
		Salvage:    kit.SalvageOf(newReplica),
		HandsOver:  true,
		Learns:     true,
		Codec:      kit.NewFormat("raft", formatVersion, kinds()...),
	}
}

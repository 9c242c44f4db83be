package fastpaxos

import (
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Protocol returns Fast Paxos as a member of its family.
func Protocol() smr.Protocol {
	return smr.Protocol{
		Name:       "fastpaxos",
		Doc:        "Fast Paxos: clients send commands to all replicas, and a coordinator resolves collisions.",
		NewReplica: kit.NodeOf(newReplica),
		NewClient:  kit.NodeOf(newClient),
		Salvage:    kit.SalvageOf(newReplica),
		Learns:     true,
		Codec:      codec(),
	}
}

package multipaxos

import (
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Protocol returns Multi-Paxos as a member of its family.
func Protocol() smr.Protocol {
	return smr.Protocol{
		Name:       "multipaxos",
		Doc:        "Multi-Paxos: a stable leader orders the commands, and a majority accepts them.",
		NewReplica: kit.NodeOf(newReplica),
		NewClient:  kit.PlainClient,
		Salvage:    kit.SalvageOf(newReplica),
		HandsOver:  true,
		Learns:     true,
		Codec:      codec(),
	}
}

package mencius

import (
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Protocol returns Mencius as a member of its family.
func Protocol() smr.Protocol {
	return smr.Protocol{
		Name:       "mencius",
		Doc:        "Mencius: replicas own the slots in turn, so each client asks the nearest one.",
		NewReplica: kit.NodeOf(newReplica),
		NewClient:  kit.PlainClient,
		Salvage:    kit.SalvageOf(newReplica),
		Learns:     true,
		Codec:      codec(),
		Leaderless: true,
	}
}

package zyzzyva

import (
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/protocol"
)

// Protocol returns Zyzzyva as a protocol of the family.
func Protocol() bft.Protocol {
	return bft.Protocol{
		Name:       "zyzzyva",
		NewReplica: func(c bft.ReplicaConfig) (protocol.Node[bft.Message], error) { return newReplica(c) },
		NewClient:  func(c bft.ClientConfig) (protocol.Node[bft.Message], error) { return newClient(c) },
		Codec:      newCodec,
		Strategies: strategies(),
		Traitor:    traitorOf,

		ClientStrategies: kit.ClientStrategies(),
		NewBadClient:     newBadClient,
	}
}

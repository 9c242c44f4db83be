package pbft

import (
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/protocol"
)

// Protocol returns PBFT with client speculation as a protocol of the family.
func Protocol() bft.Protocol {
	return bft.Protocol{
		Name:       "pbft",
		NewReplica: func(c bft.ReplicaConfig) (protocol.Node[bft.Message], error) { return newReplica(c) },
		NewClient:  func(c bft.ClientConfig) (protocol.Node[bft.Message], error) { return newClient(c) },
		Codec:      newCodec,
		Strategies: strategies(),
		Traitor:    traitorOf,

		ClientStrategies: kit.ClientStrategies(),
		NewBadClient: func(strategy string, c bft.ClientConfig) protocol.Node[bft.Message] {
			return kit.NewBadClient(strategy, c, newStatements(c.Scheme).Statements)
		},
	}
}

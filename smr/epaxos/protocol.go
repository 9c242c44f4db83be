package epaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// Protocol returns EPaxos as a member of its family.
func Protocol() smr.Protocol {
	return smr.Protocol{
		Name: "epaxos",
		Doc:  "Egalitarian Paxos: each replica has its clients' commands decided, with what they depend on.",
		NewReplica: func(cfg smr.ReplicaConfig) (protocol.Node[smr.Message], error) {
			r, err := NewReplica(cfg)
			if err != nil {
				return nil, err
			}
			return r, nil
		},
		NewClient: func(cfg smr.ClientConfig) (protocol.Node[smr.Message], error) {
			c, err := NewClient(cfg)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		Salvage:    salvage,
		Codec:      Codec(),
		Leaderless: true,
	}
}

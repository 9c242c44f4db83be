package multipaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Protocol returns Multi-Paxos as a member of its family.
func Protocol() smr.Protocol {
	return smr.Protocol{
		Name: "multipaxos",
		Doc:  "Multi-Paxos: a stable leader orders the commands, and a majority accepts them.",
		NewReplica: func(cfg smr.ReplicaConfig) (protocol.Node[smr.Message], error) {
			r, err := NewReplica(cfg)
			if err != nil {
				return nil, err
			}
			return r, nil
		},
		NewClient: func(cfg smr.ClientConfig) (protocol.Node[smr.Message], error) {
			c, err := kit.NewLeaderClient(cfg)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		Salvage:   salvage,
		HandsOver: true,
		Learns:    true,
		Codec:     Codec(),
	}
}

package fastpaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// Protocol returns Fast Paxos as a member of its family.
func Protocol() smr.Protocol {
	return smr.Protocol{
		Name: "fastpaxos",
		Doc:  "Fast Paxos: clients send commands to all replicas, and a coordinator resolves collisions.",
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
		Learns: true,
		Codec:  Codec(),
	}
}

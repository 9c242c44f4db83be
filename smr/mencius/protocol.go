package mencius

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Protocol returns Mencius as a member of its family.
func Protocol() smr.Protocol {
	return smr.Protocol{
		Name: "mencius",
		Doc:  "Mencius: replicas own the slots in turn, so each client asks the nearest one.",
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
		Salvage:    salvage,
		Learns:     true,
		Codec:      Codec(),
		Leaderless: true,
	}
}

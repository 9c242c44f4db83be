package tapir

import (
	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// Protocol returns the store as a protocol of the family.
func Protocol() store.Protocol {
	return store.Protocol{
		Name:           "tapir",
		Level:          history.Serializable,
		Doc:            "Optimistic transactions over replication without an order.",
		NewServer:      func(cfg store.Config) (protocol.Node[store.Message], error) { return made(newServer(cfg)) },
		NewCoordinator: func(cfg store.Config) (protocol.Node[store.Message], error) { return made(newCoordinator(cfg)) },
		NewClient: func(cfg store.Config) (store.ClientNode, error) {
			c, err := newClient(cfg)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		Codec: format(), FixedSites: true, Partial: true,
	}
}

// made returns no node with an error: not one whose pointer is nil.
func made[N protocol.Node[store.Message]](n N, err error) (protocol.Node[store.Message], error) {
	if err != nil {
		return nil, err
	}
	return n, nil
}

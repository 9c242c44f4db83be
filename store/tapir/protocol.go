package tapir

import (
	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// Protocol returns the store as a protocol of the family.
func Protocol() store.Protocol {
	return store.Protocol{
		Name:           "tapir",
		Level:          history.Serializable,
		Doc:            "Optimistic transactions over replication without an order.",
		NewServer:      kit.NodeOf(newServer),
		NewCoordinator: kit.NodeOf(newCoordinator),
		NewClient:      kit.ClientOf(newClient),
		Codec:          codec(), FixedSites: true, Partial: true,
	}
}

package layered

import (
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// Protocol returns the layered store as a protocol of the family.
func Protocol() store.Protocol { return protocolOf(0) }

// protocolOf is Protocol with groups that keep so many entries in their logs: see newServer.
func protocolOf(logEntries int) store.Protocol {
	return store.Protocol{
		Name:           "layered",
		Doc:            "Two-phase commit whose participants are Raft groups.",
		NewServer:      kit.NodeOf(func(cfg store.Config) (*server, error) { return newServer(cfg, logEntries) }),
		NewCoordinator: kit.NodeOf(newCoordinator),
		NewClient:      kit.ClientOf(newClient),
		Codec:          codec(), FixedSites: true, Partial: true, Leads: true,
	}
}

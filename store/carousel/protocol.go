package carousel

import (
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// The modes of the protocol.
const (
	basicMode = "basic"
	fastMode  = "fast"
)

// Protocol returns Carousel as a protocol of the family: in mode basic [Carousel §3.2.1], and, by
// store.Protocol.In, in mode fast, which has the prepare consensus protocol [Carousel §3.2.2].
func Protocol() store.Protocol { return in(basicMode) }

func in(mode string) store.Protocol {
	fast := mode == fastMode
	return store.Protocol{
		Name:           "carousel",
		Doc:            "Carousel: two-phase commit beside its groups' replication, prepared while the client reads.",
		NewServer:      kit.NodeOf(func(cfg store.Config) (*server, error) { return newServer(cfg, fast) }),
		NewCoordinator: kit.NodeOf(func(cfg store.Config) (*agent, error) { return newAgent(cfg, fast) }),
		NewClient:      kit.ClientOf(newClient),
		Codec:          format(), FixedSites: true, Partial: true, Stamped: true, Clocked: true,
		Declares: true, Snapshots: true,
		Modes: []string{basicMode, fastMode}, Variant: in,
	}
}

package carousel

import (
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// The modes of the protocol.
const (
	basicMode  variant = "basic"
	fastMode   variant = "fast"
	directMode variant = "direct"
)

// variant is the name of a mode.
type variant string

// fast reports whether the mode has the prepare consensus protocol.
func (v variant) fast() bool { return v != basicMode }

// Protocol returns Carousel as a protocol of the family: in mode basic [Carousel §3.2.1] and, by
// store.Protocol.In, in mode fast, which has the prepare consensus protocol [Carousel §3.2.2], and
// in mode direct, in which members tell coordinators themselves what they have of their leaders'
// words, and sites have groups that only coordinate.
func Protocol() store.Protocol { return in(basicMode) }

func in(mode variant) store.Protocol {
	return store.Protocol{
		Name:           "carousel",
		Doc:            "Carousel: two-phase commit beside its groups' replication, prepared while the client reads.",
		NewServer:      kit.NodeOf(func(cfg store.Config) (*server, error) { return newServer(cfg, mode) }),
		NewCoordinator: kit.NodeOf(func(cfg store.Config) (*agent, error) { return newAgent(cfg, mode) }),
		NewClient:      kit.ClientOf(func(cfg store.Config) (*client, error) { return newClient(cfg, mode) }),
		Codec:          codec(), FixedSites: true, Partial: true, Stamped: true, Clocked: true,
		Declares: true, Snapshots: true, Stale: true, Leads: true, Orders: true, Coordinating: mode == directMode,
		Modes:   []string{string(basicMode), string(fastMode), string(directMode)},
		Mode:    string(mode),
		Variant: func(name string) store.Protocol { return in(variant(name)) },
	}
}

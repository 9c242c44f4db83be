package carousel

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
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
		NewServer:      func(cfg store.Config) (protocol.Node[store.Message], error) { return made(newServer(cfg, fast)) },
		NewCoordinator: func(cfg store.Config) (protocol.Node[store.Message], error) { return made(newAgent(cfg, fast)) },
		NewClient: func(cfg store.Config) (store.ClientNode, error) {
			c, err := newClient(cfg)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		Codec: format(), FixedSites: true, Partial: true, Stamped: true, Declares: true,
		Modes: []string{basicMode, fastMode}, Variant: in,
	}
}

// made returns no node with an error: not one whose pointer is nil.
func made[N protocol.Node[store.Message]](n N, err error) (protocol.Node[store.Message], error) {
	if err != nil {
		return nil, err
	}
	return n, nil
}

package replicatedcommit

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// Protocol returns Replicated Commit as a protocol of the family.
func Protocol() store.Protocol {
	return store.Protocol{
		Name:           "replicatedcommit",
		Doc:            "Replicated Commit: every site votes, and a majority of the sites commits.",
		NewServer:      func(cfg store.Config) (protocol.Node[store.Message], error) { return node(newServer(cfg)) },
		NewCoordinator: func(cfg store.Config) (protocol.Node[store.Message], error) { return node(newCoordinator(cfg)) },
		NewClient: func(cfg store.Config) (store.ClientNode, error) {
			c, err := newClient(cfg)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		Codec: codec(),
	}
}

// node returns no node with an error: not one whose pointer is nil.
func node[N protocol.Node[store.Message]](n N, err error) (protocol.Node[store.Message], error) {
	if err != nil {
		return nil, err
	}
	return n, nil
}

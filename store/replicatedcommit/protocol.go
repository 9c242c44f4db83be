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
		NewServer:      func(cfg store.Config) (protocol.Node[store.Message], error) { return node(NewServer(cfg)) },
		NewCoordinator: func(cfg store.Config) (protocol.Node[store.Message], error) { return node(NewCoordinator(cfg)) },
		NewClient: func(cfg store.Config) (store.ClientNode, error) {
			c, err := NewClient(cfg)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		Codec: Codec(),
	}
}

// node returns no node with an error: not one whose pointer is nil.
func node[N protocol.Node[store.Message]](n N, err error) (protocol.Node[store.Message], error) {
	if err != nil {
		return nil, err
	}
	return n, nil
}

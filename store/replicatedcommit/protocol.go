package replicatedcommit

import (
	"iter"

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
		Codec:  Codec(),
		Values: values,
	}
}

// node returns no node with an error: not one whose pointer is nil.
func node[N protocol.Node[store.Message]](n N, err error) (protocol.Node[store.Message], error) {
	if err != nil {
		return nil, err
	}
	return n, nil
}

// values returns what is on a server's disk.
func values(keys protocol.Keys) iter.Seq2[store.Key, store.Value] {
	return func(yield func(store.Key, store.Value) bool) {
		for k, b := range keys.Scan([]byte(valuePrefix), afterPrefix(valuePrefix)) {
			key := store.Key(k[len(valuePrefix):])
			if !yield(key, parseValue(key, b)) {
				return
			}
		}
	}
}

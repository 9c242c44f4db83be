// Package kit is what the protocols of package store share: the books of a client's node, what a
// server reserves for older transactions and holds until its time, and how a [store.Protocol] has
// its nodes. A protocol decides which sites it asks, when it asks again, and what their answers
// mean.
package kit

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// NodeOf returns a maker of servers or coordinators as a Protocol has it.
func NodeOf[N protocol.Node[store.Message]](make func(store.Config) (N, error)) func(store.Config) (
	protocol.Node[store.Message], error,
) {
	return func(cfg store.Config) (protocol.Node[store.Message], error) {
		n, err := make(cfg)
		if err != nil {
			return nil, err // no interface that holds a nil pointer
		}
		return n, nil
	}
}

// ClientOf is what NodeOf is, for a maker of clients.
func ClientOf[N store.ClientNode](make func(store.Config) (N, error)) func(store.Config) (store.ClientNode, error) {
	return func(cfg store.Config) (store.ClientNode, error) {
		n, err := make(cfg)
		if err != nil {
			return nil, err
		}
		return n, nil
	}
}

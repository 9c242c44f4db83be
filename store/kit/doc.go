// Package kit is what the protocols of package store share: the books of a client's node, a server
// as a member of its shard's Raft group, what a coordinator asks of such groups, the values on a
// server's disk, what it reserves for older transactions and holds until its time, and how a
// [store.Protocol] has its nodes. A protocol decides which sites it asks, when it asks again, and
// what their answers mean.
package kit

import (
	"fmt"

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

// FixedSites returns the configuration of a node with all fields set, for a protocol whose sites
// are neither lost nor replaced: its groups change their members one by one, or not at all. The
// error names the protocol and the field that is wrong.
func FixedSites(name string, cfg store.Config) (store.Config, error) {
	cfg, err := cfg.WithDefaults()
	if err != nil {
		return cfg, err
	}
	if !cfg.Layout.Original() {
		return cfg, fmt.Errorf("%s: Config.Layout: a site is fenced, or in the place of another one (see FixedSites)", name)
	}
	return cfg, nil
}

// ServerConfig is FixedSites for the server of a shard, and returns its place.
func ServerConfig(name string, cfg store.Config) (store.Config, store.Place, error) {
	cfg, err := FixedSites(name, cfg)
	if err != nil {
		return cfg, store.Place{}, err
	}
	shards, _ := cfg.Layout.Places()
	p, ok := shards[cfg.ID]
	if !ok {
		return cfg, p, fmt.Errorf("%s: Config.ID: %d is no shard of the layout", name, cfg.ID)
	}
	return cfg, p, nil
}

// CoordinatorConfig is FixedSites for a coordinator, and returns its place.
func CoordinatorConfig(name string, cfg store.Config) (store.Config, store.Place, error) {
	cfg, err := FixedSites(name, cfg)
	if err != nil {
		return cfg, store.Place{}, err
	}
	_, coordinators := cfg.Layout.Places()
	p, ok := coordinators[cfg.ID]
	if !ok {
		return cfg, p, fmt.Errorf("%s: Config.ID: %d is no coordinator of the layout", name, cfg.ID)
	}
	return cfg, p, nil
}

// Package catalog has the replicated protocols, and those of stores, by their names, for commands
// and benchmarks.
package catalog

import (
	"fmt"
	"strings"

	"github.com/foresay/foresay/internal/nearest"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/domino"
	"github.com/foresay/foresay/smr/epaxos"
	"github.com/foresay/foresay/smr/fastpaxos"
	"github.com/foresay/foresay/smr/mencius"
	"github.com/foresay/foresay/smr/multipaxos"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/carousel"
	"github.com/foresay/foresay/store/layered"
	"github.com/foresay/foresay/store/replicatedcommit"
	"github.com/foresay/foresay/store/tapir"
)

// Protocols returns the protocols of package smr's family, in the order in which commands list
// them.
func Protocols() []smr.Protocol {
	return []smr.Protocol{
		raft.Protocol(), multipaxos.Protocol(), fastpaxos.Protocol(), mencius.Protocol(), epaxos.Protocol(),
		domino.Protocol(), domino.Direct(),
	}
}

// Protocol returns the protocol of a name. Its error lists the names.
func Protocol(name string) (smr.Protocol, error) {
	for _, p := range Protocols() {
		if p.Name == name {
			return p, nil
		}
	}
	return smr.Protocol{}, fmt.Errorf("unknown protocol %q (want %s%s)", name, strings.Join(Names(), ", "),
		nearest.Hint(name, Names()))
}

// Names returns the names of all protocols, without making them: each command of a program names
// them in its help.
func Names() []string {
	return []string{"raft", "multipaxos", "fastpaxos", "mencius", "epaxos", "domino", "domino-direct"}
}

// Stores returns the protocols of package store's family. The first one is that of a store which
// names none.
func Stores() []store.Protocol {
	return []store.Protocol{replicatedcommit.Protocol(), layered.Protocol(), carousel.Protocol(), tapir.Protocol()}
}

// StoreNames returns the names of all protocols of stores.
func StoreNames() []string { return []string{"replicatedcommit", "layered", "carousel", "tapir"} }

// Store returns the protocol of a name. Its error lists the names.
func Store(name string) (store.Protocol, error) {
	for _, p := range Stores() {
		if p.Name == name || name == "" {
			return p, nil
		}
	}
	names := StoreNames()
	return store.Protocol{}, fmt.Errorf("unknown protocol %q (want %s%s)", name, strings.Join(names, ", "),
		nearest.Hint(name, names))
}

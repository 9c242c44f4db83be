// Package catalog has the replicated protocols, and those of stores, by their names, for commands
// and benchmarks.
package catalog

import (
	"cmp"
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
	"github.com/foresay/foresay/store/str"
	"github.com/foresay/foresay/store/tapir"
)

// Protocols returns the protocols of package smr's family, in the order in which commands list
// them.
func Protocols() []smr.Protocol { return all(replicated()) }

// Protocol returns the protocol of a name. Its error lists the names.
func Protocol(name string) (smr.Protocol, error) { return find("protocol", replicated(), name) }

// Names returns the names of all protocols.
func Names() []string { return names(replicated()) }

// Stores returns the protocols of package store's family. The first one is that of a store which
// names none.
func Stores() []store.Protocol { return all(stores()) }

// Store returns the protocol of a name, or the first one if name is empty. Its error lists the
// names.
func Store(name string) (store.Protocol, error) {
	return find("protocol", stores(), cmp.Or(name, stores()[0].name))
}

// StoreNames returns the names of all protocols of stores.
func StoreNames() []string { return names(stores()) }

// entry makes the protocol of a name when somebody asks for it: each command of a program names
// all of them in its help, and few need one.
type entry[P any] struct {
	name string
	make func() P
}

func replicated() []entry[smr.Protocol] {
	return []entry[smr.Protocol]{
		{"raft", raft.Protocol}, {"multipaxos", multipaxos.Protocol}, {"fastpaxos", fastpaxos.Protocol},
		{"mencius", mencius.Protocol}, {"epaxos", epaxos.Protocol}, {"domino", domino.Protocol},
		{"domino-direct", domino.Direct},
	}
}

func stores() []entry[store.Protocol] {
	return []entry[store.Protocol]{
		{"replicatedcommit", replicatedcommit.Protocol}, {"layered", layered.Protocol}, {"carousel", carousel.Protocol},
		{"tapir", tapir.Protocol}, {"str", str.Protocol},
	}
}

func all[P any](of []entry[P]) []P {
	var out []P
	for _, e := range of {
		out = append(out, e.make())
	}
	return out
}

func find[P any](what string, of []entry[P], name string) (p P, err error) {
	for _, e := range of {
		if e.name == name {
			return e.make(), nil
		}
	}
	return p, fmt.Errorf("unknown %s %q (want %s%s)", what, name, strings.Join(names(of), ", "),
		nearest.Hint(name, names(of)))
}

func names[P any](of []entry[P]) []string {
	var out []string
	for _, e := range of {
		out = append(out, e.name)
	}
	return out
}

// Package catalog has the replicated protocols by their names, for commands and benchmarks.
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
	return smr.Protocol{}, fmt.Errorf("unknown protocol %q (want %s%s)", name, strings.Join(Names(), ", "), nearest.Hint(name, Names()))
}

// Names returns the names of all protocols.
func Names() []string {
	var names []string
	for _, p := range Protocols() {
		names = append(names, p.Name)
	}
	return names
}

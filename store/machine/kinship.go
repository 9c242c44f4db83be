package machine

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/foresay/foresay/store"
)

// kinship is what machines must have in common to talk. It is the name of their cluster on the
// network, so that those that differ refuse each other before a node hears anything: in another
// epoch what is said rests on another layout, in another mode on other messages, and a bound on
// clocks holds only if all go by it.
type kinship struct{ machine, store, runs, offset string }

// offsetMark is before the bound on clocks in a kinship's name.
const offsetMark = ", max_offset "

func kinshipOf(cfg *Config) kinship {
	k := kinship{machine: cfg.Machine, store: fmt.Sprintf("%s, epoch %d, ", cfg.Cluster, cfg.Topology.Epoch),
		runs: cfg.Protocol.Title()}
	if cfg.Protocol.Clocked {
		k.offset = offsetMark + cmp.Or(cfg.MaxOffset, store.DefaultMaxOffset).String()
	}
	return k
}

func (k kinship) String() string { return k.store + k.runs + k.offset }

// explain says in what a machine that is refused differs, empty if it is of another store or epoch.
func (k kinship) explain(other string) string {
	other, ok := strings.CutPrefix(other, k.store)
	runs, offset, _ := strings.Cut(other, offsetMark)
	switch {
	case !ok:
		return ""
	case runs != k.runs:
		return fmt.Sprintf("machine %s runs %s, not %.100s", k.machine, k.runs, runs)
	}
	return fmt.Sprintf("machine %s has max_offset %s, not %.100s", k.machine, strings.TrimPrefix(k.offset, offsetMark),
		offset)
}

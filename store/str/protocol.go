package str

import (
	"cmp"
	"slices"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// A variant is a setting of the protocol.
type variant struct {
	name string
	// speculates says that transactions read, and are certified on top of, what is committed locally.
	speculates bool
	// early says that transactions can be answered when they are committed locally.
	early bool
	// degree is how far transactions build on what is not final, of what these two allow.
	degree degree
	// tunes says that coordinators choose another one, if that is better.
	tunes bool
	// physical says that commits are above the clocks of all replicas, and reads wait until a
	// replica's clock has reached their snapshot, as in ClockSI [STR §6.1]. Else they are above the
	// latest reads of their keys [STR §6.3].
	physical   bool
	logEntries int         // that a group keeps in its log; 0: as package smr has it
	ends       uint64      // that a shard remembers; 0: remembered
	pageBytes  int         // of a page of a snapshot; 0: pageBytes
	seen       func(event) // is told what happens; nil: nobody
}

func (v variant) remembers() uint64 {
	if v.ends > 0 {
		return v.ends
	}
	return remembered
}

func (v variant) page() int { return cmp.Or(v.pageBytes, pageBytes) }

// The protocol's modes.
func modes() []variant {
	return []variant{
		{name: "internal", speculates: true, early: true, degree: degreeMost},
		{name: "clocksi-rep", physical: true},
	}
}

// settings are further combinations, which tell apart what each part brings: experiments ask for
// them (Protocol.Variant), and no store is made in one.
func settings() []variant {
	all := []variant{
		{name: "precise"},
		{name: "physical-reads", speculates: true, physical: true, degree: degreeMost},
		{name: "planet", early: true, physical: true}, // [STR §8]
		{name: "internal-tuned", speculates: true, early: true, degree: degreeMost, tunes: true},
	}
	for d := range degreeMost + 1 { // internal-off, internal-reads, internal-1 and so on
		all = append(all, variant{name: "internal-" + d.String(), speculates: true, early: true, degree: d})
	}
	return all
}

// Protocol returns STR as a protocol of the family, in mode internal: transactions read what is
// committed locally, and programs do not notice. In mode clocksi-rep transactions read only what is
// final, and timestamps are those of ClockSI: the baseline that STR is compared with [STR §8].
func Protocol() store.Protocol { return protocolOf(modes()[0]) }

func protocolOf(v variant) store.Protocol {
	var names []string
	for _, m := range modes() {
		names = append(names, m.name)
	}
	p := store.Protocol{
		Name:  "str",
		Doc:   "Speculative snapshots: transactions build on what their site has certified.",
		Level: history.SessionSnapshotIsolation,
		NewServer: func(cfg store.Config) (protocol.Node[store.Message], error) {
			return kit.NodeOf(func(cfg store.Config) (*server, error) { return newServer(cfg, v) })(cfg)
		},
		NewCoordinator: func(cfg store.Config) (protocol.Node[store.Message], error) {
			return kit.NodeOf(func(cfg store.Config) (*coordinator, error) { return newCoordinator(cfg, v) })(cfg)
		},
		NewClient: kit.ClientOf(newClient),
		Codec:     codec(), FixedSites: true, Partial: true, Leads: true, Stamped: true, Steps: true, Snapshots: true,
		CoordinatorStatus: true,
		Speculates:        v.early,
		Modes:             names, Mode: v.name,
	}
	p.Variant = func(name string) store.Protocol {
		for _, m := range slices.Concat(modes(), settings()) {
			if m.name == name {
				m.logEntries, m.ends, m.pageBytes, m.seen = v.logEntries, v.ends, v.pageBytes, v.seen
				return protocolOf(m)
			}
		}
		return p
	}
	return p
}

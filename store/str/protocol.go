package str

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
	// tunes says that coordinators choose another one, if that is better: unless Config.Speculate says
	// which it is.
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

// degrees are what Config.Speculate may be; nil: there is no choice.
func (v variant) degrees() []string {
	if !v.tunes {
		return nil
	}
	all := []string{"tuned"}
	for d := range degreeMost + 1 {
		all = append(all, d.String())
	}
	return all
}

// at returns the variant with a degree that is none of the coordinators' choice, if there is one:
// "" is the first of degrees.
func (v variant) at(speculate string) (variant, error) {
	i := slices.Index(v.degrees(), speculate)
	switch {
	case speculate == "" || i == 0:
		return v, nil
	case i < 0:
		return v, fmt.Errorf("str: Config.Speculate is %q (want %s)", speculate, strings.Join(v.degrees(), ", "))
	}
	v.degree, v.tunes = degree(i-1), false
	return v, nil
}

// The protocol's modes.
func modes() []variant {
	return []variant{
		{name: "internal", speculates: true, early: true, degree: degreeMost, tunes: true},
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
		Readers:           true,
		CoordinatorStatus: true,
		Speculates:        v.early, Degrees: v.degrees(),
		Modes: names, Mode: v.name,
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

package replicated

import (
	"cmp"
	"strings"

	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/domino"
	"github.com/foresay/foresay/smr/plan"
)

// A System is a replicated protocol as an experiment runs it. A variant is named by the catalog's
// protocol that it is of, and what it is: "epaxos, all writes conflict".
type System struct {
	smr.Protocol
	// Options are Domino's, nil of other protocols.
	Options *domino.Options
}

// Systems returns the catalog's protocols.
func Systems() (all []System) {
	for _, p := range catalog.Protocols() {
		all = append(all, SystemOf(p))
	}
	return all
}

// SystemOf returns a protocol of the catalog, or another one that has no variants.
func SystemOf(p smr.Protocol) System {
	s := System{Protocol: p}
	switch plan.System(p.Name) {
	case plan.Domino:
		s.Options = &domino.Options{}
	case plan.DominoDirect:
		o := domino.DirectOptions()
		s.Options = &o
	}
	return s
}

// Domino returns a variant of Domino, of the catalog's next to it.
func Domino(o domino.Options) System {
	name := plan.Domino
	if o.Direct {
		name = plan.DominoDirect
	}
	s := System{Protocol: smr.Protocol{Name: string(name), Doc: "Domino as configured."}}
	return s.With(o)
}

// With returns another variant of Domino.
func (s System) With(o domino.Options) System {
	s.Protocol, s.Options = domino.New(s.named(o.String()), s.Doc, o), &o
	return s
}

// named returns the name of a variant of the same protocol, that of the catalog's if it is none.
func (s System) named(variant string) string {
	if variant == "" {
		return s.Base()
	}
	return s.Base() + ", " + variant
}

// Base returns the name of the catalog's protocol, which tables have in a column of its own.
func (s System) Base() string {
	base, _, _ := strings.Cut(s.Name, ", ")
	return base
}

// Variant says beside the base what the system is, but for what has columns of its own of Domino's
// options.
func (s System) Variant() string {
	if s.Options == nil {
		_, variant, _ := strings.Cut(s.Name, ", ")
		return cmp.Or(variant, "default")
	}
	o := *s.Options
	o.Slack, o.Percentile = 0, 0
	return cmp.Or(o.String(), "thesis")
}

// Cells tell which variant of a protocol a row is about: what Domino adds to predicted arrivals,
// and what else is said of it.
func (s System) Cells() []table.Cell {
	slack := table.Is("slack_ms", "")
	if s.Options != nil {
		slack = table.Measure("slack_ms", table.Ms(s.Options.Slack))
	}
	return []table.Cell{slack, table.Is("options", s.Variant())}
}

package replicated

import (
	"cmp"

	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/domino"
	"github.com/foresay/foresay/smr/plan"
)

// A System is a replicated protocol as an experiment runs it.
type System struct {
	smr.Protocol
	// Options are those of a variant of Domino, nil of other protocols.
	Options *domino.Options
	// Label says in what another protocol differs from the catalog's, "" if in nothing.
	Label string
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

// Domino returns a variant of Domino, which bears the name of the catalog's next to it.
func Domino(o domino.Options) System {
	name := plan.Domino
	if o.Direct {
		name = plan.DominoDirect
	}
	s := System{Protocol: smr.Protocol{Name: string(name), Doc: "Domino as configured."}}
	return s.With(o)
}

// With returns another variant of Domino under the same name.
func (s System) With(o domino.Options) System {
	s.Protocol, s.Options = domino.New(s.Name, s.Doc, o), &o
	return s
}

// Variant says what the options of a variant of Domino are, but for those that have columns of
// their own, and of other protocols their label.
func (s System) Variant() string {
	if s.Options == nil {
		return cmp.Or(s.Label, "default")
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

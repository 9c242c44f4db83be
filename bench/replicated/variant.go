package replicated

import (
	"cmp"

	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/domino"
	"github.com/foresay/foresay/smr/plan"
)

// IsDomino tells whether a protocol is a variant of Domino.
func IsDomino(p smr.Protocol) bool {
	return p.Name == string(plan.Domino) || p.Name == string(plan.DominoDirect)
}

// OptionsOf returns the options of a protocol of the catalog, the zero Options if it is no variant
// of Domino.
func OptionsOf(p smr.Protocol) domino.Options {
	if p.Name == string(plan.DominoDirect) {
		return domino.DirectOptions()
	}
	return domino.Options{}
}

// Variant says what the options of a variant of Domino are, but for those that have columns of
// their own; "default" of other protocols.
func Variant(p smr.Protocol, o domino.Options) string {
	if !IsDomino(p) {
		return "default"
	}
	o.Slack, o.Percentile = 0, 0
	return cmp.Or(o.String(), "thesis")
}

// VariantCells tell which variant of a system a row is about: what Domino adds to predicted
// arrivals, and its options; of others what is said of theirs.
func VariantCells(p smr.Protocol, o domino.Options, others string) []table.Cell {
	if !IsDomino(p) {
		return []table.Cell{table.Is("slack_ms", ""), table.Is("options", cmp.Or(others, Variant(p, o)))}
	}
	return []table.Cell{table.Measure("slack_ms", table.Ms(o.Slack)), table.Is("options", Variant(p, o))}
}

package replicated

import (
	"testing"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/smr/domino"
)

// TestVariantCells: all experiments with replicated protocols say in the same columns, and in the
// same words, what a variant is.
func TestVariantCells(t *testing.T) {
	want := map[string]string{
		"raft": " default", "multipaxos": " default", "fastpaxos": " default", "mencius": " default",
		"epaxos": " default", "epaxos, writes commute": " writes commute",
		"epaxos, all writes conflict": " all writes conflict", "domino": "0 thesis",
		"domino-direct": "0 direct, all learn, arrival, slack adapts",
	}
	say := func(cells []table.Cell) string {
		return table.Row(cells).Text("slack_ms") + " " + table.Row(cells).Text("options")
	}
	for _, d := range deaths(bench.Options{Quick: true}) {
		name := d.system.Name
		if got := say(d.system.Cells()); got != want[name] || d.system.Base() == "epaxos" && name == "epaxos" {
			t.Errorf("smr-failover of %s: %q, want %q", name, got, want[name])
		}
	}
	for _, s := range Systems() {
		if cells := inBatches(s, 0).Cells(); say(cells) != want[s.Name] {
			t.Errorf("smr-throughput of %s: %q, want %q", s.Name, say(cells), want[s.Name])
		}
	}
}

// TestNames: a variant's name has all that tells it from others of its protocol.
func TestNames(t *testing.T) {
	direct := SystemOf(domino.Direct())
	for _, c := range []struct {
		system              System
		name, base, variant string
	}{
		{direct, "domino-direct", "domino-direct", "direct, all learn, arrival, slack adapts"},
		{inBatches(direct, 0), "domino-direct", "domino-direct", "direct, all learn, arrival, slack adapts"},
		{inBatches(direct, 1), "domino-direct, direct, all learn, arrival, slack adapts, batch 1", "domino-direct",
			"direct, all learn, arrival, slack adapts, batch 1"},
		{Domino(domino.Options{}), "domino", "domino", "thesis"},
		{Domino(domino.Options{Slack: time.Millisecond}), "domino, slack 1ms", "domino", "thesis"},
		{Domino(domino.Options{AllLearn: true}).With(domino.Options{Batch: 2}), "domino, batch 2", "domino", "batch 2"},
	} {
		if s := c.system; s.Name != c.name || s.Base() != c.base || s.Variant() != c.variant {
			t.Errorf("%q is %q, %q; want %q: %q, %q", s.Name, s.Base(), s.Variant(), c.name, c.base, c.variant)
		}
	}
}

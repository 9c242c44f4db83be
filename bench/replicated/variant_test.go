package replicated

import (
	"testing"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/smr/domino"
)

// TestVariantCells: all experiments with replicated protocols say in the same columns, and in the
// same words, what a variant is.
func TestVariantCells(t *testing.T) {
	want := map[string]string{
		"raft": " default", "multipaxos": " default", "fastpaxos": " default", "mencius": " default",
		"epaxos": " writes commute", "domino": "0 thesis", "domino-direct": "0 direct, all learn, arrival, slack adapts",
	}
	say := func(cells []table.Cell) string {
		return table.Row(cells).Text("slack_ms") + " " + table.Row(cells).Text("options")
	}
	for _, d := range deaths(bench.Options{Quick: true}) {
		name := d.system.Name
		if got := say(d.system.Cells()); got != want[name] && (name != "epaxos" || got != " all writes conflict") {
			t.Errorf("smr-failover of %s: %q, want %q", name, got, want[name])
		}
	}
	want["epaxos"] = " default"
	for _, s := range Systems() {
		if cells := inBatches(s, 0).Cells(); say(cells) != want[s.Name] {
			t.Errorf("smr-throughput of %s: %q, want %q", s.Name, say(cells), want[s.Name])
		}
	}
	s := inBatches(SystemOf(domino.Direct()), 1)
	if say(s.Cells()) != "0 direct, all learn, arrival, slack adapts, batch 1" || s.Name != "domino-direct" {
		t.Errorf("%s: %q", s.Name, say(s.Cells()))
	}
}

package geostore

import (
	"testing"

	"github.com/foresay/foresay/bench"
)

// TestChains: eight transactions in a task take little longer than one of them, and eight times as
// long in code that waits for each.
func TestChains(t *testing.T) {
	rows, err := chains(t.Context(), bench.Run{Options: bench.Options{Mode: bench.Virtual, Quick: true, Seed: 1,
		Bubble: bubbles(t)}})
	if err != nil {
		t.Fatal(err)
	}
	if want := len(chainSystems()) * len(chainLengths()); len(rows) != want {
		t.Fatalf("%d rows, want %d", len(rows), want)
	}
	for _, r := range rows {
		n, _ := r.Number("transactions")
		of, _ := r.Number("of_one")
		least, most := n*0.95, n*1.05
		if r.Text("system") == "str-task" {
			least, most = 1, 1.15
		}
		if of < least || of > most {
			t.Errorf("%s: %v transactions take %v times as long as one, want %v to %v", r.Text("system"), n, of, least, most)
		}
	}
}

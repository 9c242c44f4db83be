package geostore

import (
	"testing"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// TestComparedReads: first answers count if a quorum has compared them, or a commit has.
func TestComparedReads(t *testing.T) {
	quorum, wrong, atOnce := client.ReadTrace{First: 1, Known: 9, Right: true}, client.ReadTrace{First: 1, Known: 9},
		client.ReadTrace{First: -1, Known: 9}
	carried, dropped := client.ReadTrace{First: 1, Known: -1, Right: true}, client.ReadTrace{First: 1, Known: -1}
	for _, c := range []struct {
		verdict      store.Verdict
		reads        []client.ReadTrace
		count, right int
	}{
		{store.Committed, []client.ReadTrace{quorum, wrong, atOnce}, 2, 1},
		{store.Aborted, []client.ReadTrace{quorum, wrong, atOnce}, 2, 1},
		{store.Committed, []client.ReadTrace{carried, carried, dropped}, 2, 2},
		{store.Aborted, []client.ReadTrace{dropped, dropped, quorum}, 1, 1},
	} {
		a := attemptOf(&client.Trace{Reads: c.reads, Outcome: store.Outcome{Verdict: c.verdict}})
		if a.Reads != c.count || a.Right != c.right || a.Committed != (c.verdict == store.Committed) {
			t.Errorf("%v with %+v: %+v, want %d reads, %d of them right", c.verdict, c.reads, a, c.count, c.right)
		}
	}
}

package epaxos

import (
	"fmt"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/kit"
)

// TestSnapshotLeavesAnEighth counts what stays in memory of what is in a snapshot: an eighth of
// what it has more than the one before, and all of that while a snapshot is on its way to a
// laggard.
func TestSnapshotLeavesAnEighth(t *testing.T) {
	const every = 160
	for _, sends := range []bool{false, true} {
		th := newTheatre(t, 3)
		for _, r := range th.nodes {
			r.Cfg.SnapshotEvery = every
			if sends {
				r.Transfers.Begin(th.envs[r.Cfg.ID], 9, new(kit.Outgoing))
			}
		}
		most := uint64(0)
		for n := range 5 * every {
			th.propose(protocol.ID(n%3+1), workOn(fmt.Sprint(n), fmt.Sprint(n)))
			th.deliver(nil)
			if r := th.nodes[1]; r.taken > 2 {
				kept := uint64(0)
				for p := range r.rows {
					kept += r.stable[p] - r.rows[p].base
				}
				most = max(most, kept)
			}
		}
		least, atMost := uint64(1), uint64(every/4)
		if sends {
			least, atMost = every*3/4, every*3/2
		}
		if most < least || most > atMost {
			t.Errorf("a snapshot is on its way: %v; up to %d instances stay that are in the snapshot, want %d to %d", sends,
				most, least, atMost)
		}
	}
}

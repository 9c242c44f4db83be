package byzantine

import (
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/bft/pbft"
	"github.com/foresay/foresay/bft/zyzzyva"
	"github.com/foresay/foresay/protocol"
)

// TestStrikes: whatever befalls a replica of PBFT in North America, or two in a row of seven, all
// clients are served as before soon.
func TestStrikes(t *testing.T) {
	for _, c := range []struct {
		strategy string
		replicas int
		members  []protocol.ID
		most     time.Duration
	}{
		{Killed, 4, []protocol.ID{1}, time.Second}, {silent, 4, []protocol.ID{1}, time.Second},
		{Killed, 4, []protocol.ID{2}, time.Second}, {Killed, 4, []protocol.ID{3}, time.Second},
		{silent, 4, []protocol.ID{4}, time.Second}, {"equivocate", 4, []protocol.ID{1}, time.Second},
		{"lie-early", 4, []protocol.ID{1}, time.Second}, {"lie-committed", 4, []protocol.ID{1}, time.Second},
		{"conspire", 4, []protocol.ID{1}, time.Second}, {"gap", 4, []protocol.ID{1}, time.Second},
		{"starve", 4, []protocol.ID{1}, time.Second}, {"slow", 4, []protocol.ID{1}, 3 * time.Second},
		{Killed, 7, []protocol.ID{1, 2}, 2 * time.Second}, {"equivocate", 7, []protocol.ID{1, 2}, 2 * time.Second},
	} {
		s := struck{pbft.Protocol(), "na4", c.replicas, c.strategy, c.members}
		t.Run(s.role()+" "+s.strategy, func(t *testing.T) {
			t.Parallel()
			d, err := s.place()
			if err != nil {
				t.Fatal(err)
			}
			a, err := Strike{Protocol: s.protocol, Place: d, Members: s.members, Strategy: s.strategy, Seed: 3}.Play()
			if err != nil {
				t.Fatal(err)
			}
			if a.Restored > c.most || a.Gap > c.most+500*time.Millisecond || a.After < a.Before*0.6 {
				t.Errorf("%+v", a)
			}
			// What a primary has signed gets it replaced, so each client sees few lies.
			if lies := c.strategy == "lie-early"; lies && a.Wrong == 0 || a.Wrong > 20 {
				t.Errorf("%d of %d first replies were wrong", a.Wrong, a.FirstReplies)
			}
		})
	}
}

// TestStrikeIsNoticed: a strike changes what clients get, and not before its time.
func TestStrikeIsNoticed(t *testing.T) {
	s := struck{zyzzyva.Protocol(), "na4", 4, silent, []protocol.ID{3}}
	d, err := s.place()
	if err != nil {
		t.Fatal(err)
	}
	a, err := Strike{Protocol: s.protocol, Place: d, Members: s.members, Strategy: s.strategy, Seed: 1}.Play()
	if err != nil {
		t.Fatal(err)
	}
	// Zyzzyva's clients wait for all replicas in vain, and for certificates then.
	if a.P50Before > 75*time.Millisecond || a.P50After < 2*a.P50Before || a.Before < 1.5*a.After {
		t.Errorf("%+v", a)
	}
}

// TestQuickAttack: a quick run has the primary's strategies that matter most, of each protocol.
func TestQuickAttack(t *testing.T) {
	rows := quick(t, attackExperiment())
	if len(rows) != 12 || slices.ContainsFunc(rows, func(r table.Row) bool { return r.Text("struck") != "primary" }) {
		t.Errorf("%d rows", len(rows))
	}
}

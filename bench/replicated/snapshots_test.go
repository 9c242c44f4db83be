package replicated

import (
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/bench"
)

func TestSnapshotsWithoutProgram(t *testing.T) {
	if _, err := smrSnapshots().Run(t.Context(), bench.Options{Quick: true}); err == nil ||
		!strings.Contains(err.Error(), "Program") {
		t.Errorf("without a program: %v", err)
	}
}

// TestProtocolOption: an experiment that measures protocols measures the one that is asked for, and
// says so if it cannot.
func TestProtocolOption(t *testing.T) {
	for _, c := range []struct {
		e      bench.Experiment
		points func(bench.Options) []bench.Point
	}{{smrSnapshots(), perProtocol(snapshotsRow)}, {smrClients(), perProtocol(clientsRows)}} {
		for _, o := range []bench.Options{{Protocol: "mencius"}, {Protocol: "mencius", Quick: true}} {
			if points := c.points(o); len(points) != 1 || points[0].Doing != "mencius" {
				t.Errorf("%s, quick %v: %v, want one point, mencius", c.e.Name, o.Quick, points)
			}
		}
		if n := len(c.points(bench.Options{})); n != 7 {
			t.Errorf("%s measures %d protocols, want 7", c.e.Name, n)
		}
		if _, err := c.e.Run(t.Context(), bench.Options{Protocol: "paxos"}); err == nil ||
			!strings.Contains(err.Error(), "unknown protocol") {
			t.Errorf("%s: an unknown protocol: %v", c.e.Name, err)
		}
	}
	if _, err := smrFailover().Run(t.Context(), bench.Options{Protocol: "raft"}); err == nil ||
		!strings.Contains(err.Error(), "none can be chosen") {
		t.Errorf("a protocol for an experiment without: %v", err)
	}
}

// TestSnapshotsCells: the ratio is the median of those within a round, a gap is the longest of all
// turns, elections add up.
func TestSnapshotsCells(t *testing.T) {
	with := []snapshotsTurn{
		{perSecond: 50, gap: 7 * time.Millisecond, terms: 1, snapshots: 10}, {perSecond: 400, gap: 3 * time.Millisecond},
		{perSecond: 300, gap: time.Millisecond, terms: 2, snapshots: 5},
	}
	without := []snapshotsTurn{{perSecond: 100, gap: time.Millisecond}, {perSecond: 500, gap: 2 * time.Millisecond,
		terms: 1}, {perSecond: 200}}
	row := snapshotsCells(with, without)
	for name, want := range map[string]float64{
		"ops_per_s": 300, "ops_ratio": 0.8, "gap_ms": 7, "gap_without_ms": 2, "elections": 3, "elections_without": 1,
		"snapshot_slots": 15,
	} {
		if got, ok := row.Number(name); !ok || got != want {
			t.Errorf("%s is %v, want %v", name, row.Value(name), want)
		}
	}
}

// TestGapMeter: answers of many clients come in any order, and only the time without any counts.
func TestGapMeter(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(0, 0).Add(time.Duration(n) * time.Millisecond) }
	m := gapMeter{last: at(0)}
	for _, n := range []int{2, 5, 4, 6, 13, 14} {
		m.note(at(n))
	}
	if m.longest != 7*time.Millisecond || m.count != 6 {
		t.Errorf("longest %v of %d answers, want 7ms of 6", m.longest, m.count)
	}
}

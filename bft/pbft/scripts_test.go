package pbft_test

import (
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bfttest"
	"github.com/foresay/foresay/bft/pbft"
)

// traitors makes traitors of one strategy of some replicas.
func traitors(strategy string, places ...int) map[int]bft.Traitor {
	return bfttest.Of(pbft.Protocol(), strategy, places...)
}

func TestTransfer(t *testing.T) { bfttest.TestTransfer(t, pbft.Protocol()) }

// TestTraitorLeads cuts the first primary off while batches are under way, so that a traitor leads
// the change to view 1. If it breaks the rules nobody follows it; if it only leaves out what it has
// prepared itself, the others' words are enough.
func TestTraitorLeads(t *testing.T) {
	for _, c := range []struct {
		strategy string
		view     bft.View
	}{{"omit", 1}, {"unlawful", 2}, {"hasty", 2}} {
		for seed := range uint64(4) {
			r, err := bfttest.Play(bfttest.Scenario{Protocol: pbft.Protocol(), Seed: seed, Clients: 6, Ordered: true,
				Traitors: traitors(c.strategy, 1), For: 3 * time.Second,
				Script: bfttest.CutOff(0, time.Second, 2500*time.Millisecond)})
			if err != nil {
				t.Errorf("%s, seed %d: %v", c.strategy, seed, err)
			}
			if r.View < c.view || c.strategy == "omit" && r.View != c.view {
				t.Errorf("%s, seed %d: %+v", c.strategy, seed, r)
			}
		}
	}
}

// TestPredicatesAcrossAViewChange has a primary that keeps one proposal in ten back. The view
// change keeps the batches above and makes that one null, so what was guessed on its results is
// tried again, and what was guessed on that: the judge finds that none of it was done.
func TestPredicatesAcrossAViewChange(t *testing.T) {
	retried, cascaded := 0, 0
	for seed := range uint64(8) {
		r, err := bfttest.Play(bfttest.Scenario{Protocol: pbft.Protocol(), Seed: seed, Clients: 6, For: time.Second,
			Traitors: traitors("gap", 0)})
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		retried += r.Retried
		cascaded += r.Cascaded
	}
	if retried == 0 || cascaded == 0 {
		t.Errorf("%d calls were tried again, %d for others", retried, cascaded)
	}
}

func TestCrashAtEachWrite(t *testing.T) { bfttest.TestCrashAtEachWrite(t, pbft.Protocol(), 1, 50) }

// TestAllCrash has all replicas crash at once, again and again: what was confirmed is on the disks
// of so many that it stays.
func TestAllCrash(t *testing.T) {
	for seed := range uint64(16) { // with many clients, or hardly a checkpoint is under way at a crash
		r, err := bfttest.Play(bfttest.Scenario{Protocol: pbft.Protocol(), Seed: seed, Clients: 8, For: 3 * time.Second,
			Script: bfttest.AllCrash(200*time.Millisecond + time.Duration(seed)*20*time.Millisecond)})
		if err != nil || r.Crashes == 0 {
			t.Errorf("seed %d: %+v: %v", seed, r, err)
		}
	}
}

// TestTwins: members that run twice make nobody differ, however the group is parted.
func TestTwins(t *testing.T) { bfttest.TestTwins(t, pbft.Protocol()) }

// TestSmallRoundTrip: timeouts rise to what the group needs, and stay there.
func TestSmallRoundTrip(t *testing.T) { bfttest.TestSmallRoundTrip(t, pbft.Protocol()) }

// TestRot: what becomes wrong on a replica's disk is found and repaired.
func TestRot(t *testing.T) { bfttest.TestRot(t, pbft.Protocol()) }

// TestHugeRequests: what clients send is bounded in bytes.
func TestHugeRequests(t *testing.T) { bfttest.TestHugeRequests(t, pbft.Protocol()) }

// TestLargeResults: what clients get is bounded in bytes.
func TestLargeResults(t *testing.T) { bfttest.TestLargeResults(t, pbft.Protocol()) }

// TestBadClients: whatever clients do, the others are served by the first primary, as if they were
// alone.
func TestBadClients(t *testing.T) {
	for seed := range uint64(4) {
		r, err := bfttest.Play(bfttest.Scenario{Protocol: pbft.Protocol(), Seed: seed, BadClients: 2, For: 3 * time.Second})
		if err != nil || r.View > 0 || r.Withdrawn > 0 || r.Right != r.Guesses {
			t.Errorf("seed %d: %+v: %v", seed, r, err)
		}
	}
}

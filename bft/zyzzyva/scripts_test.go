package zyzzyva_test

import (
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bfttest"
	"github.com/foresay/foresay/bft/zyzzyva"
	"github.com/foresay/foresay/internal/seed"
)

func TestTransfer(t *testing.T) { bfttest.TestTransfer(t, zyzzyva.Protocol()) }

// TestTraitorLeads cuts the first primary off while batches are under way, so that a traitor leads
// the change to view 1. If it breaks the rules nobody follows it, and if it begins the view in two
// ways it does not begin; if it only leaves out what it has itself, the others' words are enough.
func TestTraitorLeads(t *testing.T) {
	for _, c := range []struct {
		strategy string
		view     bft.View
	}{{"omit", 1}, {"stale", 1}, {"unlawful", 2}, {"hasty", 2}, {"forked", 1}} {
		for seed := range uint64(2) {
			r, err := bfttest.Play(bfttest.Scenario{Protocol: zyzzyva.Protocol(), Seed: seed, Clients: 6, Ordered: true,
				Traitors: traitors(c.strategy, 1), For: 3 * time.Second,
				Script: bfttest.CutOff(0, time.Second, 2500*time.Millisecond)})
			if err != nil {
				t.Errorf("%s, seed %d: %v", c.strategy, seed, err)
			}
			if r.View < c.view || c.view == 1 && c.strategy != "forked" && r.View != 1 {
				t.Errorf("%s, seed %d: %+v", c.strategy, seed, r)
			}
		}
	}
}

func TestCrashAtEachWrite(t *testing.T) { bfttest.TestCrashAtEachWrite(t, zyzzyva.Protocol(), 3, 20) }

// TestAllCrash has all replicas crash at once, again and again: what was confirmed is on the disks
// of so many that it stays.
func TestAllCrash(t *testing.T) {
	for seed := range uint64(seed.Count(t, 30)) {
		r, err := bfttest.Play(bfttest.Scenario{Protocol: zyzzyva.Protocol(), Seed: seed, For: 2 * time.Second,
			Script: bfttest.AllCrash(300*time.Millisecond + time.Duration(seed%20)*20*time.Millisecond)})
		if err != nil || r.Crashes == 0 {
			t.Errorf("seed %d: %+v: %v", seed, r, err)
		}
	}
}

// TestHugeRequests: what clients send is bounded in bytes.
func TestHugeRequests(t *testing.T) { bfttest.TestHugeRequests(t, zyzzyva.Protocol()) }

// TestLargeResults: what clients get is bounded in bytes.
func TestLargeResults(t *testing.T) { bfttest.TestLargeResults(t, zyzzyva.Protocol()) }

// TestBadClients: whatever clients do, also with certificates, the others are served by the first
// primary, as if they were alone.
func TestBadClients(t *testing.T) {
	for seed := range uint64(4) {
		r, err := bfttest.Play(bfttest.Scenario{Protocol: zyzzyva.Protocol(), Seed: seed, BadClients: 2,
			For: 2 * time.Second})
		if err != nil || r.View > 0 {
			t.Errorf("seed %d: %+v: %v", seed, r, err)
		}
	}
}

// TestTwins: members that run twice make nobody differ, however the group is parted.
func TestTwins(t *testing.T) { bfttest.TestTwins(t, zyzzyva.Protocol()) }

// TestSmallRoundTrip: timeouts rise to what the group needs, and stay there.
func TestSmallRoundTrip(t *testing.T) { bfttest.TestSmallRoundTrip(t, zyzzyva.Protocol()) }

// TestRot: what becomes wrong on a replica's disk is found and repaired.
func TestRot(t *testing.T) { bfttest.TestRot(t, zyzzyva.Protocol()) }

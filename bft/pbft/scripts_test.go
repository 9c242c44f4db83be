package pbft_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bfttest"
	"github.com/foresay/foresay/bft/pbft"
	"github.com/foresay/foresay/sim"
)

// traitors makes traitors of one strategy of some replicas.
func traitors(strategy string, places ...int) map[int]bft.Traitor {
	out := map[int]bft.Traitor{}
	for _, p := range places {
		out[p] = pbft.Protocol().Traitor(strategy)
	}
	return out
}

// TestTransfer cuts a replica off until the others have forgotten what it lacks: it fetches the
// state, also if the first f of those whom it asks give it wrong parts.
func TestTransfer(t *testing.T) {
	for _, c := range []struct {
		replicas int
		traitors map[int]bft.Traitor
	}{{4, nil}, {4, traitors("lie-reads", 1)}, {7, traitors("lie-reads", 0, 1)}} {
		r, err := bfttest.Play(bfttest.Scenario{Protocol: pbft.Protocol(), Seed: 1, Replicas: c.replicas,
			Traitors: c.traitors, Script: bfttest.CutOff(c.replicas-1, 500*time.Millisecond, 4*time.Second)})
		if err != nil {
			t.Error(err)
		}
		if r.Transfers == 0 || r.Refused > 0 != (len(c.traitors) > 0) {
			t.Errorf("%d replicas, %d traitors: %+v", c.replicas, len(c.traitors), r)
		}
	}
}

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

// TestCrashAtEachWrite has the primary, and then a backup, crash in each call in which it writes,
// in turn with nothing, all, and a part of what was not durable yet. Its first write is at its
// start.
func TestCrashAtEachWrite(t *testing.T) {
	sc := bfttest.Scenario{Protocol: pbft.Protocol(), Seed: 1, For: 500 * time.Millisecond}
	calm, err := bfttest.Play(sc)
	if err != nil {
		t.Fatal(err)
	}
	for place := range 2 {
		t.Run(fmt.Sprint(place), func(t *testing.T) {
			t.Parallel()
			if calm.Writes[place] < 50 {
				t.Fatalf("it writes %d times only", calm.Writes[place])
			}
			for n := uint64(2); n <= calm.Writes[place]; n++ {
				sc := sc
				sc.Script = bfttest.CrashInWrite(place, n, []sim.Keep{sim.KeepNone, sim.KeepAll, 1}[n%3])
				r, err := bfttest.Play(sc)
				if err != nil {
					t.Errorf("write %d: %v", n, err)
				}
				if r.Crashes != 1 || r.Restarts != 1 {
					t.Errorf("write %d: %+v", n, r)
				}
			}
		})
	}
}

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

// TestRot: what becomes wrong on a replica's disk is found and repaired.
func TestRot(t *testing.T) { bfttest.TestRot(t, pbft.Protocol()) }

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

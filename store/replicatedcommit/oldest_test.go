package replicatedcommit

import (
	"testing"

	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store/storetest"
)

// hotAttempts plays clients of three sites that all want one key, and returns how many attempts the
// least lucky transaction took.
func hotAttempts(t *testing.T, seed uint64, near bool) (most, committed int) {
	t.Helper()
	w, err := newWorld(storetest.Scenario{Seed: seed, Clients: 3, Keys: 1, Shards: 1, Hot: true, Near: near,
		Faults: sim.NoFaults})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Play(20e9); err != nil {
		t.Fatal(err)
	}
	return w.Attempts, w.Verdicts[1]
}

// TestOldestWins: with one client per site on one hot key, reservations by age bound the attempts
// that a transaction takes (R7), also where the nearest site waits for the key.
func TestOldestWins(t *testing.T) {
	for _, near := range []bool{false, true} {
		most, committed := 0, 0
		for seed := range uint64(5) {
			n, c := hotAttempts(t, 1+seed, near)
			most, committed = max(most, n), committed+c
		}
		t.Logf("near=%v: at most %d attempts, %d commits", near, most, committed)
		if most > 8 {
			t.Errorf("near=%v: a transaction took %d attempts", near, most)
		}
	}
}

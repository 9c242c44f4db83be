package replicatedcommit

import (
	"testing"

	"github.com/foresay/foresay/sim"
)

// firstMutant is the first seed of mutations: from there on none takes more than some hundreds to be noticed.
const firstMutant = uint64(1250)

// TestMutations leaves out one rule at a time: some seed of the first few must notice. Each names the rule of the errata that it is a part of. Reads do not wait for their turn here,
// so that rivals meet more often.
func TestMutations(t *testing.T) {
	for _, m := range []struct {
		name string
		skip rules
	}{
		{"R1: a version may be below those it replaces", ruleVersionOrder},
		{"R2: reads are not validated", ruleValidateReads},
		{"R2: reads are validated but not locked", ruleReadLocks},
		{"R3: votes are not durable", ruleDurableVotes},
		{"R3: a missing vote counts as no", ruleWaitForVotes},
		{"R3: who was asked may vote yes later", ruleFenceOnAsk},
		{"R4: older versions replace newer ones", ruleApplyByVersion},
		{"R4: sites that voted no do not apply", ruleApplyEverywhere},
		{"R5: the first value with the quorum's version", ruleQuorumValue},
		{"R6: transactions that only read are not validated", ruleValidateReadOnly},
		{"R6: a read alone is believed where the key is about to change", ruleSettledRead},
		{"locks are lost in a crash", ruleLocksSurvive},
		{"deletions leave nothing", ruleTombstones},
		{"absent keys are not validated", ruleAbsentReads},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			for seed := firstMutant; seed < firstMutant+2000; seed++ {
				sc := swarm(seed)
				sc.skip = m.skip | ruleReadQueue
				if _, err := playOnce(sc); err != nil {
					t.Logf("seed %d, faults %v: %.600v", sc.seed, sc.faults, err)
					return
				}
			}
			t.Error("nobody noticed")
		})
	}
}

// hotAttempts plays clients of three sites that all want one key, and returns how many attempts the least lucky transaction took.
func hotAttempts(t *testing.T, seed uint64, near bool, skip rules) (most, committed int) {
	t.Helper()
	w, err := newWorld(scenario{seed: seed, clients: 3, keys: 1, shards: 1, hot: true, near: near, skip: skip, faults: sim.NoFaults})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.play(20e9); err != nil {
		t.Fatal(err)
	}
	return w.attempts, w.verdicts[1]
}

// TestOldestWins: with one client per site on one hot key, reservations by age bound the attempts that a transaction takes (R7), also where the nearest site waits for the key.
func TestOldestWins(t *testing.T) {
	for _, near := range []bool{false, true} {
		most, worst := 0, 0
		committed, without := 0, 0
		for seed := range uint64(5) {
			n, c := hotAttempts(t, 1+seed, near, 0)
			most, committed = max(most, n), committed+c
			n, c = hotAttempts(t, 1+seed, near, rulePriority)
			worst, without = max(worst, n), without+c
		}
		t.Logf("near=%v: at most %d attempts, %d commits; without reservations %d and %d", near, most, committed, worst, without)
		if most > 8 {
			t.Errorf("near=%v: a transaction took %d attempts", near, most)
		}
		if worst <= 8 {
			t.Errorf("near=%v: without reservations it takes %d attempts at most: this test notices nothing", near, worst)
		}
	}
}

package replicatedcommit

import "testing"

// TestSyncMutations leaves out one rule of how a lost site is replaced at a time: some seed must notice. Those that seeds notice seldom have a
// script each.
func TestSyncMutations(t *testing.T) {
	for _, m := range []struct {
		name string
		skip rules
	}{
		{"a newcomer votes and is read before it has copied", ruleSync},
		{"it refuses without a look at what others have decided", ruleLook},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(1000) {
				if _, err := playLossOnce(1+seed, m.skip, nil); err != nil {
					t.Logf("seed %d: %.600v", 1+seed, err)
					return
				}
			}
			t.Error("nobody noticed")
		})
	}
}

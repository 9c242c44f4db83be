package replicatedcommit

import "testing"

// TestSyncMutations leaves out one rule of how a lost site is replaced at a time: some seed must notice. Those that seeds notice seldom have a
// script each.
func TestSyncMutations(t *testing.T) {
	for _, m := range []struct {
		name  string
		skip  rules
		first uint64 // seeds before it do not notice
	}{
		{"a newcomer votes and is read before it has copied", ruleSync, 1},
		{"it does not copy what is known of transactions", ruleSyncTxns, 1200},
		{"it refuses without a look at what others have decided", ruleLook, 1},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			for i := range uint64(1000) {
				seed := m.first + i
				if _, err := playLossOnce(seed, m.skip, nil); err != nil {
					t.Logf("seed %d: %.600v", seed, err)
					return
				}
			}
			t.Error("nobody noticed")
		})
	}
}

package epaxos

import (
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/smrtest"
)

// without returns the protocol without a rule.
func without(skip rules) smr.Protocol {
	p := Protocol()
	p.NewReplica = func(cfg smr.ReplicaConfig) (protocol.Node[smr.Message], error) {
		r, err := NewReplica(cfg)
		if err == nil {
			r.skip = skip
		}
		return r, err
	}
	return p
}

// TestMutations leaves out one rule at a time: some seed of the first ones must notice. Those that take a rare schedule are in script_test.go.
func TestMutations(t *testing.T) {
	for _, m := range []struct {
		name string
		skip rules
	}{
		{"recovery does not decide what the fast path may have decided", ruleFastPath},
		{"what depends on each other is executed as it comes", ruleOrder},
		{"nothing is waited for", ruleWait},
		{"pre-accepts are not on disk", ruleDurableVote},
		{"the fast path is taken by those who do not agree", ruleFastAgreement},
		{"the slow path forgets what others depend on", ruleJoinDeps},
		{"a generation has no end", ruleVoid},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(100) {
				sc := swarm(seed + 1)
				sc.skip = m.skip
				if _, err := sc.play(); err != nil {
					t.Logf("seed %d, faults %v: %.300v", sc.seed, sc.faults, err)
					return
				}
				if seed%2 == 1 {
					continue
				}
				if _, err := smrtest.Play(smrtest.Swarm(without(m.skip), seed+1)); err != nil {
					t.Logf("suite, seed %d: %.300v", seed+1, err)
					return
				}
			}
			t.Error("nobody noticed")
		})
	}
}

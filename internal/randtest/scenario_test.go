package randtest

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// TestSequentialExecutionRepeats: the oracle of a seed is one and the same each
// time, as everything else is compared with it.
func TestSequentialExecutionRepeats(t *testing.T) {
	for seed := range uint64(30) {
		var texts [2]string
		var outs [2]*outcome
		for i := range outs {
			sc := NewScenario(seed, seed%2 == 0)
			texts[i] = sc.String()
			synctest.Test(t, func(t *testing.T) {
				var err error
				if outs[i], err = sc.execute(true, newOracle(), Mutation{}, nil); err != nil {
					t.Fatal(err)
				}
			})
			if wrong := sc.judge(newOracle(), outs[0], outs[i]); len(wrong) > 0 {
				t.Errorf("seed %d: %v", seed, wrong)
			}
		}
		if diff := cmp.Diff(texts[0], texts[1]); diff != "" {
			t.Errorf("seed %d makes two scenarios:\n%s", seed, diff)
		}
		retries := NewScenario(seed, seed%2 == 0).retries() // gRPC draws the pauses between attempts
		if outs[0].took != outs[1].took && !retries {
			t.Errorf("seed %d took %v, then %v", seed, outs[0].took, outs[1].took)
		}
	}
}

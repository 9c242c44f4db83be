package bfttest

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/foresay/foresay/bft/pbft"
	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/internal/wirefmt/wiretest"
)

func TestLayouts(t *testing.T) {
	in := history.KVInput{Kind: history.KVCAS, Key: "k", Value: "v", Expect: history.KVState{Value: "o", Found: true}}
	wiretest.Layouts(t, wiretest.Sample("input", inputLayout, in),
		wiretest.Sample("output", outputLayout, history.KVOutput{State: in.Expect, Swapped: true}))
}

// TestRepeats: a seed is a run.
func TestRepeats(t *testing.T) {
	var hashes [2]uint64
	for i := range hashes {
		r, err := Play(Scenario{Protocol: pbft.Protocol(), Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		hashes[i] = r.Hash
	}
	if hashes[0] != hashes[1] {
		t.Errorf("one seed has the hashes %x", hashes)
	}
}

func Example() {
	r, err := Play(Scenario{Protocol: pbft.Protocol(), Seed: 1})
	fmt.Println(r.Confirmed > 100, err)
	// Output: true <nil>
}

// TestTwinSettings: there are as many settings as there should be.
func TestTwinSettings(t *testing.T) {
	seen := map[string]bool{}
	for n := range 4 * 16 * 16 {
		s := TwinsOf(2, n*stride%(4*16*16))
		if seen[fmt.Sprint(s)] = true; bits.Len(s.Parts[0]) > 4 || bits.Len(s.Parts[1]) > 4 {
			t.Errorf("setting %d parts more than four from the fifth: %v", n, s)
		}
	}
	if len(seen) != 1024 {
		t.Errorf("%d settings", len(seen))
	}
}

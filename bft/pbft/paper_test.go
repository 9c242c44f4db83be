package pbft_test

import (
	"testing"
	"time"

	"github.com/foresay/foresay/bft/bfttest"
	"github.com/foresay/foresay/bft/pbft"
)

// TestFourDelays is §3.1 and §3.2, Figure 1, of the paper on client speculation: the first reply
// comes after one round trip with the primary, the confirmed one after four delays. At its place in
// the second, third and fourth of these each message also waits for a disk, at most 2 ms.
func TestFourDelays(t *testing.T) {
	const delay, disks = 20 * time.Millisecond, 6 * time.Millisecond
	r, err := bfttest.Play(bfttest.Scenario{Protocol: pbft.Protocol(), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r.FirstAfter < 2*delay || r.FirstAfter > 2*delay+time.Millisecond {
		t.Errorf("the first reply comes after %v", r.FirstAfter)
	}
	if r.DoneAfter < 4*delay || r.DoneAfter > 4*delay+disks {
		t.Errorf("the confirmed reply comes after %v", r.DoneAfter)
	}
}

// TestFirstRepliesStand is §3.4: without faults each first reply is the confirmed one.
func TestFirstRepliesStand(t *testing.T) {
	for seed := range uint64(5) {
		r, err := bfttest.Play(bfttest.Scenario{Protocol: pbft.Protocol(), Seed: seed, Clients: 6, For: time.Second})
		if err != nil || r.Guesses == 0 || r.Right != r.Guesses || r.Aborted+r.Retried+r.Withdrawn > 0 {
			t.Errorf("seed %d: %+v: %v", seed, r, err)
		}
	}
}

// TestLyingPrimary is §3.3: if the primary's first replies are wrong nothing that was guessed on
// them is done, and what is confirmed is right. Beyond the paper, the first client that finds it
// out has it replaced.
func TestLyingPrimary(t *testing.T) {
	r, err := bfttest.Play(bfttest.Scenario{Protocol: pbft.Protocol(), Seed: 1, Traitors: traitors("lie-early", 0)})
	if err != nil || r.View != 1 || r.Caught < 2 || r.Aborted == 0 || r.Right == r.Guesses || r.Guesses-r.Right > 20 {
		t.Errorf("%+v: %v", r, err)
	}
}

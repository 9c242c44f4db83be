package zyzzyva_test

import (
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bfttest"
	"github.com/foresay/foresay/bft/zyzzyva"
)

const delay = 20 * time.Millisecond

// TestThreeDelays is §3.1 of the Zyzzyva paper: without faults a result is confirmed after three
// delays, in the second of which a message waits for the disks of the primary, and in the third for
// those of the backups, each at most 2 ms.
func TestThreeDelays(t *testing.T) {
	r, err := bfttest.Play(bfttest.Scenario{Protocol: zyzzyva.Protocol(), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r.DoneAfter < 3*delay || r.DoneAfter > 3*delay+5*time.Millisecond {
		t.Errorf("the confirmed reply comes after %v", r.DoneAfter)
	}
}

// TestFiveDelays is the other case of §3.1: one replica is silent, so clients give a certificate to
// the others, which takes two more, and the wait for the one that is silent.
func TestFiveDelays(t *testing.T) {
	r, err := bfttest.Play(bfttest.Scenario{Protocol: zyzzyva.Protocol(), Seed: 1, Traitors: traitors("mute", 3)})
	if err != nil {
		t.Fatal(err)
	}
	if wait := 3 * delay; r.DoneAfter < 5*delay || r.DoneAfter > 5*delay+wait+7*time.Millisecond {
		t.Errorf("the confirmed reply comes after %v", r.DoneAfter)
	}
}

// TestNoFirstReplies: clients do not speculate, replicas do.
func TestNoFirstReplies(t *testing.T) {
	r, err := bfttest.Play(bfttest.Scenario{Protocol: zyzzyva.Protocol(), Seed: 2})
	if err != nil || r.Guesses > 0 || r.Confirmed < 100 {
		t.Errorf("%+v: %v", r, err)
	}
}

// traitors makes traitors of one strategy of some replicas.
func traitors(strategy string, places ...int) map[int]bft.Traitor {
	return bfttest.Of(zyzzyva.Protocol(), strategy, places...)
}

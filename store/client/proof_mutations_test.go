package client_test

import (
	"testing"
	"testing/synctest"

	"github.com/foresay/foresay/store/client"
)

// TestProofNotices has the client break one rule at a time: some seed must show it, and not
// without. Where blind is set nobody watches the commits, so that the history and the disks alone
// can tell.
func TestProofNotices(t *testing.T) {
	if raceDetector {
		t.Skip("it looks for no races, and takes long with the race detector")
	}
	const away = faultPartition | faultIsolate
	for _, m := range []struct {
		name   string
		bug    bugKind
		faults proofFaults
		blind  bool
	}{
		{"a guess is right if its value is, whatever its version", bugByValue, faultSlow, false},
		{"the commit leaves before the quorum has answered", bugNoBarrier, 0, false},
		{"a commit without an answer is sent again, as another transaction", bugTwice, away, true},
		{"what only reads is not validated", bugNoValidation, faultSlow, true},
		{"what discarded runs wrote is committed", bugLeak, faultSlow, false},
		{"an aborted attempt is said to be committed", bugAbortIsCommit, 0, true},
		{"a read of one key needs no validation, whatever sites say", bugAllSettled, faultSlow, false},
		{"an attempt without an answer is taken for aborted, and made again", bugUnknownIsAbort, away, true},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= 40; seed++ {
				sc := proofScenario{seed: seed, faults: m.faults, drivers: 6, mode: client.Spec, blind: m.blind, bug: m.bug}
				var err error
				synctest.Test(t, func(t *testing.T) { _, err = playProof(t.Context(), sc) })
				if err == nil {
					continue
				}
				t.Logf("seed %d: %.300v", seed, err)
				sc.bug = noBug
				synctest.Test(t, func(t *testing.T) {
					if _, err := playProof(t.Context(), sc); err != nil {
						t.Errorf("seed %d, with nothing wrong: %v", seed, err)
					}
				})
				return
			}
			t.Error("nobody noticed")
		})
	}
}

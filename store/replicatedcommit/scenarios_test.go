package replicatedcommit

import (
	"testing"

	"github.com/foresay/foresay/internal/msgtext"
	"github.com/foresay/foresay/store/storetest"
	"github.com/foresay/foresay/store/storetest/talk"
)

// TestScenarios has the protocol talk: testdata/scenarios, which are there to be read.
func TestScenarios(t *testing.T) {
	talk.Play(t, Protocol(), func(_ msgtext.Format, v any) (string, bool) {
		s, ok := v.(txnState)
		if !ok {
			return "", false
		}
		names := [...]string{
			undecided: "undecided", yes: "yes", no: "no", wanting: "wanting", committed: "committed", aborted: "aborted",
			old: "old", gone: "gone",
		}
		return names[s], true
	})
}

// TestConformance plays 200 seeds under faults, or a fifth of them.
func TestConformance(t *testing.T) { storetest.Conformance(t, subject(0), 200) }

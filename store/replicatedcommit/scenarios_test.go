package replicatedcommit

import (
	"testing"

	"github.com/foresay/foresay/internal/msgtext"
	"github.com/foresay/foresay/store/storetest/talk"
)

// TestScenarios has the protocol talk: testdata/scenarios, which are there to be read.
func TestScenarios(t *testing.T) {
	talk.Play(t, Protocol(), func(_ msgtext.Format, v any) (string, bool) {
		s, ok := v.(State)
		if !ok {
			return "", false
		}
		names := [...]string{
			Undecided: "undecided", Yes: "yes", No: "no", Wanting: "wanting", Committed: "committed", Aborted: "aborted",
			Old: "old", Gone: "gone",
		}
		return names[s], true
	})
}

package tapir

import (
	"testing"

	"github.com/foresay/foresay/internal/msgtext"
	"github.com/foresay/foresay/store/storetest/talk"
)

// TestScenarios has the protocol talk: testdata/scenarios, which are there to be read.
func TestScenarios(t *testing.T) {
	votes := [...]string{unvoted: "none", prepared: "yes", abstain: "abstain", retry: "retry", refused: "no"}
	ends := [...]string{undecided: "none", committed: "committed", aborted: "aborted"}
	talk.Play(t, Protocol(), func(_ msgtext.Format, v any) (string, bool) {
		switch v := v.(type) {
		case vote:
			return votes[v], true
		case end:
			return ends[v], true
		}
		return "", false
	})
}

package layered

import (
	"testing"

	"github.com/foresay/foresay/internal/msgtext"
	"github.com/foresay/foresay/store/storetest/talk"
)

// TestScenarios has the protocol talk: testdata/scenarios, which are there to be read.
func TestScenarios(t *testing.T) {
	names := [...]string{prepared: "prepared", committed: "committed", aborted: "aborted", forgotten: "forgotten"}
	format := format()
	talk.Play(t, Protocol(), func(all msgtext.Format, v any) (string, bool) {
		switch v := v.(type) {
		case grouped: // what the group says is a message like any other
			return all.Of(v.Msg), true
		case state:
			return names[v], true
		case []byte: // of a command of the group, or its result
			if m, err := format.Decode(v); err == nil {
				return all.Of(m), true
			}
		}
		return "", false
	})
}

package layered

import (
	"testing"

	"github.com/foresay/foresay/store/storetest/talk"
)

// TestScenarios has the protocol talk: testdata/scenarios, which are there to be read.
func TestScenarios(t *testing.T) { talk.Play(t, Protocol(), nil) }

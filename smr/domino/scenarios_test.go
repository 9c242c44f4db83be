package domino

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/smrtest/talk"
)

// TestScenarios has the protocol talk: testdata/scenarios, which are there to be read. A slot is
// written as the time that it is, in the scenario's, and whose it is.
func TestScenarios(t *testing.T) { talk.Play(t, Direct(), slotText) }

// slotText writes slots.
func slotText(v any) (string, bool) {
	const began = time.Hour + 2*time.Second // clocks show an hour when a simulation begins
	if verdict, ok := v.(verdict); ok {
		return [...]string{yes: "yes", no: "no", full: "full"}[verdict], true
	}
	if track, ok := v.(trackID); ok && track == control {
		return "control", true
	}
	s, ok := v.(smr.Slot)
	if !ok {
		return "", false
	}
	owner := fmt.Sprint(digitOf(s))
	switch digitOf(s) {
	case sharedDigit:
		owner = "all"
	case controlDigit:
		owner = "control"
	}
	return fmt.Sprintf("%v/%s", (at(s) - began).Round(10*time.Microsecond), owner), true
}

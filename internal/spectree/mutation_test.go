package spectree

import "testing"

func TestRandomMutations(t *testing.T) {
	names := []string{"sound", "noCascade", "forgetPath", "twoSiblings", "twoWinners", "noReplay", "adoptAcrossEffects", "adoptAcrossOrder", "swapOccurrences", "forgetSent", "forgetOnce", "forgetDivergence", "sendBehindWrite", "commuteUnkeyed", "sendImmediate", "confirmEarly", "confirmWithoutCaller", "confirmOutOfOrder", "settleEarly", "forgetJoin", "forgetJoinedEffects", "resolveEarly", "resolveWithEffects", "ignoreOrder", "predictAfterBarrier", "passBarrier", "keepLocalGuess", "forgetWake", "loseRefused", "ignoreWidth"}
	for m := sound + 1; m < mutations; m++ {
		found := -1
		why := ""
		for i := range 100000 {
			nondet := m == forgetDivergence
			if p := execute(1, uint64(i), nondet, false, m, &stats{}, nil); p != "" {
				found = i
				why = p
				break
			}
		}
		t.Logf("%-22s %6d %s", names[m], found, why)
	}
}

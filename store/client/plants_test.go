package client_test

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// TestPlants leaves out, in the source, what reads rest on that are guessed: the tests that are
// named must notice.
func TestPlants(t *testing.T) {
	bugs := []plant.Bug{
		{
			Name: "hooks run with the lock that reads need", Test: "TestHooksHaveNoLock",
			Old: "\tv.mu.Unlock()\n\ttell()\n\tv.mu.Lock()\n",
			New: "\tif !MUTANT {\n\t\tv.mu.Unlock()\n\t}\n\ttell()\n\tif !MUTANT {\n\t\tv.mu.Lock()\n\t}\n",
		},
		{
			Name: "a commit does not wait until reads are told", Test: "TestCommitLeavesOnceReadsAreTold",
			Old: "\tfor v.telling > 0 &&", New: "\tfor v.telling > 0 && !MUTANT &&",
		},
		{
			Name: "a guess counts, whatever who prepares the key says", Test: "TestPreparesAsItGoes",
			Old: "\t\ta.Finish(got.Value, nil)\n\t})\n\tif ended {",
			New: "\t\tif MUTANT {\n\t\t\tgot = first\n\t\t}\n\t\ta.Finish(got.Value, nil)\n\t})\n\tif ended {",
		},
		{
			Name: "keys are prepared again in each step", Test: "TestPreparesAsItGoes",
			Old: "\t\tif !set[k] {\n", New: "\t\tif !set[k] || MUTANT {\n",
		},
		{
			Name: "a transaction that only reads has its keys prepared", Test: "TestOnlyReadsPreparesNothing",
			Old: "\tif len(writes) == 0 {\n\t\treturn\n", New: "\tif len(writes) == 0 && !MUTANT {\n\t\treturn\n",
		},
		{
			Name: "a predictor that was wrong is asked again", Test: "TestWrongPredictorIsNotAskedAgain",
			Old: "; why == store.StaleRead {\n", New: "; why == store.StaleRead && !MUTANT {\n",
		},
		{
			Name: "a predictor is asked for a key in each attempt", Test: "TestWrongPredictorIsNotAskedAgain",
			Old: "if n >= maxPredictions {", New: "if n >= maxPredictions && !MUTANT {",
		},
		{
			Name: "what is known in place of a wrong guess is forgotten", Test: "TestRefutedGuessIsNotGuessedAgain",
			Old: "\t\tt.seed(k, v)\n", New: "\t\tif !MUTANT {\n\t\t\tt.seed(k, v)\n\t\t}\n",
		},
		{
			Name: "attempts after the first one prepare early", Test: "TestOnlyTheFirstAttemptPreparesEarly",
			Old: "PrepareEarly && t.attempts == 1)", New: "PrepareEarly && (t.attempts == 1 || MUTANT))",
		},
		{
			Name: "a predictor does not learn what was written", Test: "TestWrongGuessesDoNotShow",
			Old: "\t\tif d.Version.IsZero() {\n", New: "\t\tif d.Version.IsZero() || MUTANT {\n",
		},
	}
	for i := range bugs {
		bugs[i].Dir = "store/client"
	}
	plant.Catch(t, bugs)
}

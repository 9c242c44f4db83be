package control

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// TestPlants plants a bug for each rule of the fuse and of how requests are compared.
func TestPlants(t *testing.T) {
	const dir = "control"
	plant.Catch(t, []plant.Bug{
		{
			Name: "harm is looked for as if once", Dir: dir, Test: "TestHarmFalseAlarms",
			Old: "return mean >= 1/harmAlpha", New: "return MUTANT && mean >= 3 || mean >= 1/harmAlpha",
		},
		{
			Name: "the lot is a coin", Dir: dir, Test: "TestHarmFalseAlarms",
			Old: "if both := drawn*with + (1-drawn)*without; on {",
			New: "if MUTANT {\n\t\t\tdrawn = 0.5\n\t\t}\n\t\tif both := drawn*with + (1-drawn)*without; on {",
		},
		{
			Name: "nobody is left without", Dir: dir, In: "internal/engine", Test: "TestHarmTrips",
			Old: "r.request.compared = c.begun", New: "r.request.compared = !MUTANT && c.begun",
		},
		{
			Name: "pays again by luck", Dir: dir, Test: "TestPaysAgain",
			Old: "case 1-wilsonUpper(1-rate, n) > least || n >= triedMost && rate > least:",
			New: "case MUTANT || 1-wilsonUpper(1-rate, n) > least || n >= triedMost && rate > least:",
		},
		{
			Name: "judged at once", Dir: dir, Test: "TestPaysAgain",
			Old: "case state == StateActive && t.again && now.Sub(t.since) < atLeast:",
			New: "case !MUTANT && state == StateActive && t.again && now.Sub(t.since) < atLeast:",
		},
		{
			Name: "waits for processors cost nothing", Dir: dir, In: "internal/engine",
			Test: "TestRestsWhileProcessorsAreBusy",
			Old:  "return guessCost + guessWaits*s.quickest.queue.wait()",
			New:  "if MUTANT {\n\t\treturn guessCost\n\t}\n\treturn guessCost + guessWaits*s.quickest.queue.wait()",
		},
		{
			Name: "a few waits pay for all", Dir: dir, In: "internal/engine", Test: "TestRestsWhileProcessorsAreBusy",
			Old: "s.quickest.queue.wait() >= busyWait &&", New: "!MUTANT && s.quickest.queue.wait() >= busyWait &&",
		},
		{
			Name: "a trial is a loss", Dir: dir, In: "internal/engine", Test: "TestHabitOutlivesTrials",
			Old: "return e.trip.at(e.board.now.Load().mode) == StateProbing",
			New: "return !MUTANT && e.trip.at(e.board.now.Load().mode) == StateProbing",
		},
		{
			Name: "a tripped site forgets why", Dir: dir, Test: "TestPaysAgain",
			Old: "	t.last = *seen\n", New: "	if !MUTANT {\n\t\tt.last = *seen\n\t}\n",
		},
	})
}

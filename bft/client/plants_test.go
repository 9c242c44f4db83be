package client_test

import (
	"cmp"
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// TestPlants leaves out one rule of calls in tasks at a time, in the source: the test that is named
// must notice.
func TestPlants(t *testing.T) {
	bugs := []plant.Bug{
		{
			Name: "nobody is told what a caller assumes", Test: "TestDependentCalls",
			Old: "\t\ts.call.Assumes = append(", New: "\t\tif MUTANT {\n\t\t\tcontinue\n\t\t}\n\t\ts.call.Assumes = append(",
		},
		{
			Name: "a program's writes are not conditional", Test: "TestPrograms", In: "bft/bftdeploy",
			Old: "\ton, all := s.Assumes()\n", New: "\ton, all := s.Assumes()\n\tif MUTANT {\n\t\ton = nil\n\t}\n",
		},
		{
			Name: "a refusal is a result", Test: "TestRefusal",
			Old: "\tif s.Speculative() {\n", New: "\tif s.Speculative() && !MUTANT {\n",
		},
		{
			Name: "it is known what became of a call of a session that is over", Test: "TestUnknownAfterAGuess",
			Old: "\t\tcase m.Result.Outcome == bft.Gone:\n", New: "\t\tcase m.Result.Outcome == bft.Gone && !MUTANT:\n",
			Also: []plant.Edit{{Old: "\t\t\ts.fail(err)\n\t\t}\n\tcase abandoned",
				New: "\t\t\tif m.Result.Outcome == bft.Gone {\n\t\t\t\ts.Finish(nil, err)\n\t\t\t\treturn\n\t\t\t}\n" +
					"\t\t\ts.fail(err)\n\t\t}\n\tcase abandoned"}},
		},
		{
			Name: "a guess outlives what speaks for it", Test: "TestWithdrawn",
			Old: "\t\ts.Withdraw(s.first)\n", New: "\t\tif !MUTANT {\n\t\t\ts.Withdraw(s.first)\n\t\t}\n",
		},
		{
			Name: "a first reply that nothing was done is a guess", Test: "TestFirstRefusal",
			Old: "\t\tif m.Result.Outcome == bft.Executed {\n", New: "\t\tif m.Result.Outcome == bft.Executed || MUTANT {\n",
		},
		{
			Name: "a command changes under way", Test: "TestOwnMemory",
			Old: "\tcall.Command = bytes.Clone(call.Command) // the caller",
			New: "\tif !MUTANT {\n\t\tcall.Command = bytes.Clone(call.Command)\n\t}\n\t// the caller",
		},
		{
			Name: "runs share a result", Test: "TestOwnMemory",
			Old: "Value: bytes.Clone(value)}, nil", New: "Value: func() []byte {\n\t\tif MUTANT {\n\t\t\treturn value\n\t\t}\n" +
				"\t\treturn bytes.Clone(value)\n\t}()}, nil",
		},
		{
			Name: "a task's code starts calls", Test: "TestNotInTasks",
			Old: "\tif driver.InTask(ctx) {\n\t\treturn 0, ", New: "\tif driver.InTask(ctx) && !MUTANT {\n\t\treturn 0, ",
		},
		{
			Name: "a command is as long as one likes", Test: "TestNotCarriedOut",
			Old: "n > c.cfg.MaxBytes {", New: "n > c.cfg.MaxBytes && !MUTANT {",
		},
		{
			Name: "a full batch waits for those under way", Dir: "bft/pbft", In: "bft/bftdeploy", Test: "TestCounter/1024",
			Old: "r.Config.MaxUnderway || r.Full())", New: "r.Config.MaxUnderway || r.Full() && !MUTANT)",
		},
	}
	for i := range bugs {
		bugs[i].Dir = cmp.Or(bugs[i].Dir, "bft/client")
	}
	plant.Catch(t, bugs)
}

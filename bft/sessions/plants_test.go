package sessions

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// TestPlants leaves out one rule at a time, in the source: the test that is named must notice.
func TestPlants(t *testing.T) {
	bugs := []plant.Bug{
		{
			Name: "what is repeated is executed again",
			Old:  "\t\tif fresh {\n", New: "\t\tif fresh || MUTANT && e.Seq > 0 {\n",
		},
		{
			Name: "what was too large has been done", Test: "TestOversizedResults",
			Old: "\tt.undo()\n", New: "\tif !MUTANT {\n\t\tt.undo()\n\t}\n",
		},
		{
			Name: "results are as large as they like", Test: "TestOversizedResults",
			Old: "if len(value) <= l.Value && takes(", New: "if (len(value) <= l.Value || MUTANT) && takes(",
		},
		{
			Name: "a client fills the disks with results", Test: "TestSessionBytes",
			Old: "if s.Bytes+uint64(more) > uint64(limit) {", New: "if s.Bytes+uint64(more) > uint64(limit) && !MUTANT {",
		},
		{
			Name: "what is acknowledged takes room for ever", Test: "TestSessionBytes",
			Old: "\t\t\tsizeBytes += uint64(charge(len(e.Result.Value)))\n",
			New: "\t\t\tif !MUTANT {\n\t\t\t\tsizeBytes += uint64(charge(len(e.Result.Value)))\n\t\t\t}\n",
		},
		{
			Name: "a wrong guess does not matter",
			Old:  "case e.Result.Digest() != c.Digest:", New: "case e.Result.Digest() != c.Digest && !MUTANT:",
		},
		{
			Name: "an operation does not wait for the one that it names",
			Old:  "if !ok || e.Result.Outcome != bft.Executed {",
			New:  "if (!ok || e.Result.Outcome != bft.Executed) && !MUTANT {",
		},
		{
			Name: "what is acknowledged is remembered",
			Old:  "\ts.Bytes -= forget(", New: "\tif MUTANT {\n\t\treturn\n\t}\n\ts.Bytes -= forget(",
		},
		{
			Name: "the window has no end",
			Old:  "if !m.Lawful(l) || !Fits(space, m) ||", New: "if !m.Lawful(l) || !Fits(space, m) && !MUTANT ||",
		},
		{
			Name: "a client has as many sessions as it likes",
			Old:  "for len(c.Sessions) > MaxOfClient {", New: "for len(c.Sessions) > MaxOfClient && !MUTANT {",
		},
		{
			Name: "time goes back",
			Old:  "\treturn max(t, before)\n", New: "\tif MUTANT {\n\t\treturn t\n\t}\n\treturn max(t, before)\n",
			Test: "TestTime",
		},
	}
	for i := range bugs {
		if bugs[i].Dir = "bft/sessions"; bugs[i].Test == "" {
			bugs[i].Test = "TestExecute"
		}
	}
	plant.Catch(t, bugs)
}

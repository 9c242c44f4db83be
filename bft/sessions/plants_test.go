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
			Old:  "\tforget(space, sessionKey(entryPrefix, m.Client, m.Session), entryKey(",
			New: "\tif MUTANT {\n\t\treturn\n\t}\n" +
				"\tforget(space, sessionKey(entryPrefix, m.Client, m.Session), entryKey(",
		},
		{
			Name: "the window has no end",
			Old:  "if !m.Lawful() || !Fits(space, m) ||", New: "if !m.Lawful() || !Fits(space, m) && !MUTANT ||",
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

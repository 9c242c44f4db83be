package spectree

import (
	"errors"
	"testing"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/internal/plant/treebugs"
)

// TestPlants plants a bug in each rule of the tree: the tests that are named must notice.
func TestPlants(t *testing.T) { plant.Catch(t, treebugs.Bugs()) }

// TestProgramsNotice executes the random programs that notice a bug by what the tree does: its own
// invariants are not looked at.
func TestProgramsNotice(t *testing.T) {
	for name, e := range map[string]execution{
		"deterministic": {}, "nondeterministic": {nondet: true}, "predicated": {predicated: true},
	} {
		t.Run(name, func(t *testing.T) {
			plant.Seeds(t, treebugs.Bugs(), func(index uint64) error {
				e.seed, e.index, e.unchecked = 1, index, true
				if problem := e.execute(); problem != "" {
					return errors.New(problem)
				}
				return nil
			})
		})
	}
}

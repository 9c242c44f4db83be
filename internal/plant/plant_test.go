package plant

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestCatch: a bug that a test sees is caught; one that it does not see, and one that is said to be
// seen by a test that fails anyway, are not.
func TestCatch(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles a package anew")
	}
	const dir = "quorum"
	seen := Bug{Name: "seen", Dir: dir, Test: "TestSizesAreTheSmallest", Old: "{ return n/2 + 1 }",
		New: "{\n\tif MUTANT {\n\t\treturn n/2 + 2\n\t}\n\treturn n/2 + 1\n}"}
	nothing := Bug{Name: "nothing", Dir: dir, Test: "TestSizesAreTheSmallest", Old: "{ return n - Majority(n) }",
		New: "{\n\t_ = MUTANT\n\treturn n - Majority(n)\n}"}
	c := newCatcher(t, []Bug{seen, nothing})
	if _, err := c.try(t.Context(), seen); err != nil {
		t.Error(err)
	}
	if _, err := c.try(t.Context(), nothing); err == nil || !strings.Contains(err.Error(), "does not catch it") {
		t.Errorf("a bug that changes nothing: %v", err)
	}
	c.sound[dir+" "+seen.Test] = func() error { _, err := c.run(t.Context(), seen, seen.Name, ""); return err }
	if _, err := c.try(t.Context(), seen); err == nil {
		t.Error("a test that fails anyway catches a bug")
	}
	if HasTest(t, dir, "TestNothing") || !HasTest(t, dir, seen.Test) {
		t.Error("HasTest does not tell tests apart")
	}
}

const anyway = "FORESAY_PLANT_ANYWAY"

// seeded are bugs in two places each, which seed 7 catches and not 5; the second seems to be
// caught.
func seeded() []Bug {
	const dir, old = "internal/plant", "const search = patience / 2\n"
	return []Bug{
		{
			Name: "seed 7", Dir: dir, Test: "TestSeeds/5", Old: "\tnamed := map[string]bool{}\n",
			New:  "\tnamed := map[string]bool{}\n\tfirst := MUTANT\n",
			Also: []Edit{{Old: "\tif len(named) == 0 {\n", New: "\tif first && !MUTANT || len(named) == 0 {\n"}},
		},
		{Name: "seed 7 fails anyway", Dir: dir, Test: "TestSeeds/6", Old: old, New: old + "\nvar _ = MUTANT\n"},
	}
}

func TestSeeds(t *testing.T) {
	Seeds(t, seeded(), func(seed uint64) error {
		if planted := os.Getenv(Variable); seed == 7 && (planted == "seed 7" || os.Getenv(anyway) != "") {
			return errors.New("wrong")
		}
		return nil
	})
}

// TestCatchGoesOn: if the seed that a table names does not catch a bug any more, one after it may,
// unless that fails anyway.
func TestCatchGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles a package anew")
	}
	bugs := seeded()
	c := newCatcher(t, bugs)
	if seed, err := c.try(t.Context(), bugs[0]); seed != "7" || err != nil {
		t.Errorf("caught by seed %q: %v", seed, err)
	}
	t.Setenv(anyway, "yes")
	if _, err := c.try(t.Context(), bugs[1]); err == nil || !strings.Contains(err.Error(), "without a bug") {
		t.Errorf("a seed that fails anyway: %v", err)
	}
}

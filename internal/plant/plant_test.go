package plant

import (
	"strings"
	"testing"
)

// TestCatch: a bug that a test sees is caught; one that it does not see, and one that is said to be seen by a test that fails anyway, are not.
func TestCatch(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles a package anew")
	}
	const dir = "quorum"
	seen := Bug{Name: "seen", Dir: dir, Test: "TestSizesAreTheSmallest", Old: "{ return n/2 + 1 }", New: "{\n\tif MUTANT {\n\t\treturn n/2 + 2\n\t}\n\treturn n/2 + 1\n}"}
	nothing := Bug{Name: "nothing", Dir: dir, Test: "TestSizesAreTheSmallest", Old: "{ return n - Majority(n) }", New: "{\n\t_ = MUTANT\n\treturn n - Majority(n)\n}"}
	c := newCatcher(t, []Bug{seen, nothing})
	if err := c.try(t.Context(), seen); err != nil {
		t.Error(err)
	}
	if err := c.try(t.Context(), nothing); err == nil || !strings.Contains(err.Error(), "does not catch it") {
		t.Errorf("a bug that changes nothing: %v", err)
	}
	c.sound[dir+" "+seen.Test] = func() error { _, err := c.run(t.Context(), seen, seen.Name); return err }
	if err := c.try(t.Context(), seen); err == nil {
		t.Error("a test that fails anyway catches a bug")
	}
	if HasTest(t, dir, "TestNothing") || !HasTest(t, dir, seen.Test) {
		t.Error("HasTest does not tell tests apart")
	}
}

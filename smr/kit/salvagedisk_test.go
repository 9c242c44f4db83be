package kit

import (
	"errors"
	"testing"

	"github.com/foresay/foresay/smr"
)

// TestDecisions: a disk that a program wrote that did not write down decisions is not taken for one
// that tells what was executed, before there is a snapshot of what this program has executed.
func TestDecisions(t *testing.T) {
	for _, blank := range []bool{true, false} {
		b := newSavingBench(&blob{})
		load := func(blank bool) (d Decisions) {
			b.do(func() { d.Load(b.env, blank) })
			return d
		}
		d := load(blank)
		if again := load(false); (again.Check() == nil) != blank {
			t.Errorf("blank %v: after a start: %v", blank, again.Check())
		} else if !blank && !errors.Is(again.Check(), smr.ErrNoSalvage) {
			t.Errorf("the error is %v", again.Check())
		}
		b.do(func() { d.Saved(b.env) })
		if again := load(false); again.Check() != nil {
			t.Errorf("blank %v: after a snapshot: %v", blank, again.Check())
		}
	}
}

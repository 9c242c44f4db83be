package randtest

import (
	"fmt"
	"testing"
)

// TestTimesThatWereInDoubt plays programs that took longer than they were allowed to, for want of
// what the engine cannot do without:
//   - a handler's call, sent on a guess, is refused a round trip later, since its server does not
//     stage what clients think it does (the first and the third);
//   - a call that a wrong guess made elsewhere takes longer than it would have taken here.
//
// The goroutines of the last one come to their Groups at one moment.
func TestTimesThatWereInDoubt(t *testing.T) {
	for _, sc := range []*Scenario{
		NewTimed(9651469037160572820), NewTimed(6953550051630906877), NewTimed(9386548497780106152),
		NewCrowded(13845611443704152953),
	} {
		t.Run(fmt.Sprint(sc.Seed), func(t *testing.T) {
			for _, wrong := range sc.Check(t, Mutation{}, false).Wrong {
				t.Error(wrong)
			}
		})
	}
}

// TestProgramsThatWentWrong plays random programs that an hour of them has found to go wrong:
//   - a write that waited for guesses, and was looked for again since the record had changed, had
//     less than its time limit left;
//   - reads that were sent plainly ahead, and never answered, had all streams that a server admits;
//   - a goroutine that waited for the end of its context, which comes by itself, counted as stuck.
func TestProgramsThatWentWrong(t *testing.T) {
	for _, seed := range []uint64{15831907535698344439, 5643412927937750108, 16001660999280035282} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			for _, wrong := range NewScenario(seed, false).Check(t, Mutation{}, false).Wrong {
				t.Error(wrong)
			}
		})
	}
}

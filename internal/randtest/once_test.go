package randtest

import (
	"fmt"
	"testing"
)

// TestProgramsThatWentWrong plays random programs that an hour of them has found to go wrong:
//   - a write that waited for guesses, and was looked for again since the record had changed, had less
//     than its time limit left;
//   - reads that were sent plainly ahead, and never answered, had all streams that a server admits.
func TestProgramsThatWentWrong(t *testing.T) {
	for _, seed := range []uint64{15831907535698344439, 5643412927937750108} {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			for _, wrong := range NewScenario(seed, false).Check(t, Mutation{}, false).Wrong {
				t.Error(wrong)
			}
		})
	}
}

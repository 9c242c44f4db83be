package calls

import (
	"fmt"
	"slices"
	"testing"

	"github.com/foresay/foresay/bench"
)

func TestScheduleIsExactAtEachPlace(t *testing.T) {
	for _, tt := range []struct{ n, calls, percent, right int }{
		{80, 4, 0, 0},
		{80, 4, 90, 72},
		{80, 4, 100, 80},
		{10, 1, 50, 5},
		{7, 3, 50, 4}, // 3.5, rounded up
		{0, 2, 50, 0},
	} {
		t.Run(fmt.Sprintf("%d of %d at %d percent", tt.calls, tt.n, tt.percent), func(t *testing.T) {
			requests := schedule(tt.n, tt.calls, tt.percent, bench.Random(1))
			for place := range tt.calls {
				right := 0
				for _, r := range requests {
					switch r.guesses[place] {
					case rightGuess:
						right++
					case noGuess:
						t.Fatalf("place %d of request %#x has no prediction", place, r.seed)
					}
				}
				if right != tt.right {
					t.Errorf("place %d: %d predictions are right, want %d", place, right, tt.right)
				}
			}
		})
	}
}

func TestScheduleIsShuffledByItsSeed(t *testing.T) {
	lay := func(seed, purpose uint64) string { return fmt.Sprint(schedule(40, 4, 50, bench.Random(seed, purpose))) }
	first, again := lay(1, 2), lay(1, 2)
	if first != again {
		t.Error("one seed gave two schedules")
	}
	if first == lay(2, 2) || first == lay(1, 3) {
		t.Error("another seed, or another purpose, gave the same schedule")
	}
	requests := schedule(40, 2, 50, bench.Random(1))
	same := 0
	for _, r := range requests {
		if r.guesses[0] == r.guesses[1] {
			same++
		}
	}
	if same == 0 || same == len(requests) {
		t.Error("the two places of the chain are not shuffled independently")
	}
}

func TestUnguessedPredictsNothing(t *testing.T) {
	for _, r := range unguessed(5, 3, bench.Random(1)) {
		if slices.Max(r.guesses) != noGuess {
			t.Errorf("request %#x has predictions %v", r.seed, r.guesses)
		}
	}
}

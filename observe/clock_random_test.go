package observe_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/foresay/foresay"
)

// randomSteps composes a program. Within parts there are no tasks.
func randomSteps(chance *rand.Rand, depth int, top bool) []step {
	var out []step
	for range 1 + chance.IntN(4) {
		s := step{took: playRTT + 1 + chance.IntN(60)}
		switch n := chance.IntN(24); {
		case n < 9:
			s.kind = get
			s.guess = []string{"", "right", "right", "right", "wrong"}[chance.IntN(5)]
			s.plain = chance.IntN(4) == 0
		case n < 11:
			s.kind, s.plain = put, chance.IntN(4) == 0
		case n < 12:
			s.kind, s.plain = staged, chance.IntN(4) == 0
		case n < 13:
			s.kind = stream
		case n < 14:
			s.kind, s.took = barrier, 0
		case n < 15:
			s.kind = act
		case n < 16:
			s.kind = hook
		case n < 17:
			s.kind, s.took = work, 1+chance.IntN(8)
		case n < 18:
			s.kind = memo
		case depth == 0:
			s.kind, s.guess = get, "right"
		case n < 21 || !top:
			s.kind, s.took = group, 0
			for range 1 + chance.IntN(3) {
				s.parts = append(s.parts, randomSteps(chance, depth-1, false))
			}
		case n < 23:
			s.kind, s.took = future, 0
			s.parts = [][]step{randomSteps(chance, depth-1, false), randomSteps(chance, depth-1, false)}
		default:
			s.kind, s.took = task, 0
			for range 1 + chance.IntN(3) {
				s.parts = append(s.parts, randomSteps(chance, depth-1, false))
			}
		}
		out = append(out, s)
	}
	return out
}

// TestRandomClock composes programs and holds what is reported of them to the clock.
func TestRandomClock(t *testing.T) {
	seeds, from := 150, 0
	if s := os.Getenv("FORESAY_SEEDS"); s != "" {
		var err error
		if seeds, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	if s := os.Getenv("FORESAY_SEED"); s != "" {
		var err error
		if from, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
		seeds = 1
	}
	for seed := from; seed < from+seeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			steps := randomSteps(rand.New(rand.NewPCG(uint64(seed), 7)), 2, true)
			plain, on := play(t, foresay.ModeObserve, steps), play(t, foresay.ModeOn, steps)
			truth := milliseconds(plain.took - on.took)
			reported := 0.0
			if r := on.report.Realised; r != nil {
				reported = r.SavedMS
			}
			if math.Abs(reported-truth) > 1e-3 {
				t.Errorf("%v\ntrue %.3f (%v less %v), reported %.3f", steps, truth, plain.took, on.took, reported)
			}
		})
	}
}

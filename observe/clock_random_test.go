package observe_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/seed"
)

// randomSteps composes a program. Within parts there are no tasks.
func randomSteps(chance *rand.Rand, depth int, top, handlers bool) []step {
	var out []step
	for range 1 + chance.IntN(4) {
		s := step{took: playRTT + 1 + chance.IntN(60)}
		switch n := chance.IntN(25); {
		case n < 9:
			s.kind = get
			s.guess = []string{"", "right", "right", "right", "wrong"}[chance.IntN(5)]
			s.plain = chance.IntN(4) == 0
		case n < 11:
			s.kind, s.plain = put, chance.IntN(4) == 0
		case n < 12:
			s.kind, s.plain = []kindOf{staged, staged, failing}[chance.IntN(3)], chance.IntN(4) == 0
			if handlers && chance.IntN(3) == 0 {
				s = randomServed(chance, 1)
			}
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
				s.parts = append(s.parts, randomSteps(chance, depth-1, false, handlers))
			}
		case n == 24:
			s.kind, s.took = raw, 0
			for range 1 + chance.IntN(3) {
				s.parts = append(s.parts, []step{{kind: get, took: playRTT + 1 + chance.IntN(60), plain: chance.IntN(2) == 0}})
			}
		case n < 23:
			s.kind, s.took = future, 0
			s.parts = [][]step{randomSteps(chance, depth-1, false, handlers), randomSteps(chance, depth-1, false, handlers)}
		default:
			s.kind, s.took = task, 0
			for range 1 + chance.IntN(3) {
				s.parts = append(s.parts, randomSteps(chance, depth-1, false, handlers))
			}
		}
		out = append(out, s)
	}
	return out
}

// randomHandler composes what a handler does: no tasks, streams or goroutines of its own, and no
// guesses.
func randomHandler(chance *rand.Rand, depth int, beside bool) []step {
	var out []step
	for range 1 + chance.IntN(4) {
		s := step{took: playRTT + 1 + chance.IntN(60)}
		switch n := chance.IntN(16); {
		case n < 5:
			s.kind, s.plain = get, chance.IntN(4) == 0
		case n < 6:
			s.kind, s.plain = put, chance.IntN(4) == 0
		case n < 9:
			s.kind, s.took = barrier, 0
		case n < 10:
			s.kind = act
		case n < 11 && !beside: // without a task around it would run where it stands
			s.kind = hook
		case n < 12:
			s.kind = memo
		case n < 13:
			s.kind = staged
		case depth == 0 || n < 14:
			s.kind, s.took = work, 1+chance.IntN(40)
		case n < 15:
			s.kind, s.took = group, 0
			for range 1 + chance.IntN(3) {
				s.parts = append(s.parts, randomHandler(chance, depth-1, true))
			}
		default:
			s = randomServed(chance, depth-1)
		}
		out = append(out, s)
	}
	return out
}

// randomServed composes a staged call with what its handler does.
func randomServed(chance *rand.Rand, depth int) step {
	s := step{kind: served}
	if chance.IntN(3) == 0 {
		s.kind = again
	}
	s.parts = [][]step{randomHandler(chance, depth, false)}
	return s
}

// TestRandomClockOfHandlers composes a task whose calls are guessed right, with staged calls whose
// handlers wait, call and hold back, two deep, and holds what is reported of it to the clock.
func TestRandomClockOfHandlers(t *testing.T) {
	seeds, from := seedsOf(t, 150)
	for seed := from; seed < from+seeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			chance := rand.New(rand.NewPCG(uint64(seed), 9))
			var steps []step
			for range 1 + chance.IntN(3) {
				steps = append(steps, step{kind: get, took: playRTT + 1 + chance.IntN(90), guess: "right"}, randomServed(chance, 1))
			}
			plain, on := play(t, control.ModeObserve, steps, true), play(t, control.ModeOn, steps, true)
			truth, reported := milliseconds(plain.took-on.took), 0.0
			if r := on.report.Realised; r != nil {
				reported = r.SavedMS
			}
			if math.Abs(reported-truth) > 1e-3 {
				t.Errorf("%v\ntrue %.3f (%v less %v), reported %.3f", steps, truth, plain.took, on.took, reported)
			}
		})
	}
}

// randomLine composes a program whose steps follow each other, each a single one or calls side by
// side.
func randomLine(chance *rand.Rand) []step {
	var out []step
	call := func() step {
		s := step{kind: get, took: playRTT + 1 + chance.IntN(60), plain: chance.IntN(5) == 0}
		s.via = []string{"", "", "", "ordered", "ordered", "ahead"}[chance.IntN(6)]
		switch chance.IntN(9) {
		case 0, 1: // several in a program: what is guessed first may not come first
			s.kind, s.guess = put, []string{"", "right", "wrong"}[chance.IntN(3)]
		case 2:
			s.kind = staged
		case 3:
			s.kind, s.guess = refused, []string{"", "wrong"}[chance.IntN(2)]
		default:
			s.guess = []string{"", "right", "right", "right", "wrong"}[chance.IntN(5)]
		}
		return s
	}
	for range 1 + chance.IntN(6) {
		s := step{took: playRTT + 1 + chance.IntN(60)}
		switch chance.IntN(12) {
		case 0:
			s.kind = stream
		case 1:
			s.kind, s.took = barrier, 0
		case 2:
			s.kind = act
		case 3:
			s.kind = hook
		case 4:
			s.kind, s.took = work, 1+chance.IntN(8)
		case 5, 6:
			s.kind, s.took = group, 0
			for range 1 + chance.IntN(3) {
				s.parts = append(s.parts, []step{call()})
			}
		case 7:
			s.kind, s.took, s.parts = task, 0, [][]step{{call(), call()}}
		default:
			s = call()
		}
		out = append(out, s)
	}
	return out
}

// apart has no two of the steps, nor any two sums of them, take equally long: which of two answers
// counts that arrive at one instant is a matter of chance. A run that is wrong takes a call with it
// that is held, and one that is right sends it; so the clock may read a little more or less then.
func apart(steps []step, nth int) int {
	for i := range steps {
		steps[i].more = time.Nanosecond << nth
		nth++
		for _, part := range steps[i].parts {
			nth = apart(part, nth)
		}
	}
	return nth
}

// TestRandomForesight composes programs of steps that follow each other, which is what the rule of
// the model is right for, and holds what is foreseen of them to the clock: never too much, unless
// a limit was met, which the report tells, and exactly where the model knows all.
func TestRandomForesight(t *testing.T) {
	seeds, from := seedsOf(t, 200)
	for seed := from; seed < from+seeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			steps := randomLine(rand.New(rand.NewPCG(uint64(seed), 8)))
			apart(steps, 0)
			plain, on := play(t, control.ModeObserve, steps, true), play(t, control.ModeOn, steps, true)
			truth, f := milliseconds(plain.took-on.took), plain.report.Foreseen.SavedMS
			if b := plain.report.Foreseen.Beside; b != 0 {
				t.Errorf("%v\ntaken for steps beside each other", steps)
			}
			program := fmt.Sprint(steps)
			if f > truth+1e-3 && !on.limited || f < truth-1e-3 && !mayForeseeLess(program) {
				t.Errorf("%v\ntrue %.3f (%v less %v), foreseen %.3f", steps, truth, plain.took, on.took, f)
			}
		})
	}
}

// seedsOf returns how many of so many seeds there are to try, and the first. A failing one is
// replayed by its name: go test -run TestRandomClock/44 with FORESAY_SEED=44.
func seedsOf(t *testing.T, all int) (seeds, from int) {
	t.Helper()
	return seed.Count(t, all), int(seed.First(t, 0))
}

// mayForeseeLess says whether the model is known to foresee too little of a program: it has a
// staged call, since how long the word takes that confirms one is not known and is taken to be as
// long as the call; or several wrong guesses, after which the program's own computing may be done
// again once for all of them.
func mayForeseeLess(program string) bool {
	return strings.Contains(program, string(staged)) || strings.Contains(program, string(work)) &&
		strings.Count(program, "wrong") > 1
}

// TestRandomClock composes programs and holds what is reported of them to the clock. Where too much
// is foreseen the report says that it may be, but for goroutines that happen to take turns.
func TestRandomClock(t *testing.T) {
	seeds, from := seedsOf(t, 200)
	unsaid := 0 // goroutines may take turns by chance
	for seed := from; seed < from+seeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			steps := randomSteps(rand.New(rand.NewPCG(uint64(seed), 7)), 2, true, true)
			plain, on := play(t, control.ModeObserve, steps, true), play(t, control.ModeOn, steps, true)
			truth := milliseconds(plain.took - on.took)
			reported := 0.0
			if r := on.report.Realised; r != nil {
				reported = r.SavedMS
			}
			if math.Abs(reported-truth) > 1e-3 {
				t.Errorf("%v\ntrue %.3f (%v less %v), reported %.3f", steps, truth, plain.took, on.took, reported)
			}
			if f := plain.report.Foreseen; f.SavedMS > truth+1e-3 && f.Beside == 0 {
				t.Logf("%v\ntrue %.3f, foreseen %.3f without a word that it may be too much", steps, truth, f.SavedMS)
				unsaid++
			}
		})
	}
	if unsaid > 1+seeds/50 {
		t.Errorf("in %d of %d programs too much is foreseen, and the report does not say that it may be", unsaid, seeds)
	}
}

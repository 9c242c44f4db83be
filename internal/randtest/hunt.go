package randtest

import (
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/seed"
)

// Seeds yields so many seeds, one after the other. The first is that of the
// environment, or 1; the others follow from it, so that counting up from any
// seed meets new ones.
func Seeds(t testing.TB, count int) iter.Seq[uint64] {
	t.Helper()
	first := seed.First(t, 1)
	return func(yield func(uint64) bool) {
		for n := range uint64(count) {
			s := first
			if n > 0 {
				s = mix(first + n*0x9e3779b97f4a7c15)
			}
			if !yield(s) {
				return
			}
		}
	}
}

// Run checks so many scenarios, with faults or without. A failure tells how to
// replay it, and shows the scenario in a smaller form if there is one.
func Run(t *testing.T, faults bool, seeds int) {
	t.Helper()
	run(t, seeds, func(seed uint64) *Scenario { return NewScenario(seed, faults) })
}

func run(t *testing.T, seeds int, scenario func(seed uint64) *Scenario) {
	t.Helper()
	var stats Stats
	n := 0
	start := time.Now()
	for s := range Seeds(t, seeds) {
		n++
		sc := scenario(s)
		res := sc.Check(t, Mutation{}, false)
		stats.Add(res.Stats)
		if len(res.Wrong) == 0 {
			continue
		}
		t.Errorf("replay with\n\n  %s=%d go test -count=1 -run '^%s$' ./specgrpc\n\n%s", seed.Variable, s, t.Name(), res)
		small := sc.Shrink(t, Mutation{})
		for range 20 { // what is wrong may depend on the scheduler
			if res = small.Check(t, Mutation{}, false); len(res.Wrong) > 0 {
				t.Errorf("the same, smaller:\n%s", res)
				return
			}
		}
		return
	}
	t.Logf("%d seeds in %v: %+v", n, time.Since(start).Round(time.Millisecond), stats)
}

// Catch checks scenario after scenario with a rule removed, until one shows it,
// and fails if none of so many does.
func Catch(t *testing.T, m Mutation, seeds int) {
	t.Helper()
	n := 0
	for seed := range Seeds(t, seeds) {
		n++
		sc := NewScenario(seed, m.Faults)
		if res := sc.Check(t, m, false); len(res.Wrong) > 0 {
			if sound := sc.Check(t, Mutation{}, false); len(sound.Wrong) > 0 {
				t.Errorf("seed %d fails with the rule in place: %s", seed, sound)
				return
			}
			t.Logf("caught by seed %d, the %d.: %.200s", seed, n, res.Wrong[0])
			return
		}
		if n >= seeds {
			break
		}
	}
	t.Errorf("%q is not caught by %d seeds", m.Name, n)
}

func (r Result) String() string {
	s := ""
	for _, w := range r.Wrong {
		s += "wrong: " + w + "\n"
	}
	return fmt.Sprintf("%s\n%s", s, r.Detail)
}

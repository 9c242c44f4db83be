package critpath_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/critpath"
)

// randomRequest is a request of few calls at few moments, so that ties are frequent.
func randomRequest(chance *rand.Rand) critpath.Request {
	r := critpath.Request{Start: time.Duration(chance.IntN(3))}
	r.End = r.Start + time.Duration(chance.IntN(30))
	for range chance.IntN(8) {
		start := r.Start + time.Duration(chance.IntN(30))
		c := critpath.Call{Start: start, End: start + time.Duration(chance.IntN(12)), Pure: chance.IntN(4) > 0}
		c.Effects, c.Ordered = chance.IntN(4) == 0, chance.IntN(3) == 0
		r.Calls = append(r.Calls, c)
	}
	return r
}

func randomOutcomes(chance *rand.Rand, n int) []critpath.Outcome {
	x := make([]critpath.Outcome, n)
	for i := range x {
		x[i] = critpath.Outcome(chance.IntN(3))
	}
	return x
}

func of(outcomes []critpath.Outcome) func(int) critpath.Outcome {
	return func(i int) critpath.Outcome { return outcomes[i] }
}

// twin is the definition of the package comment, word for word, and slow.
type twin struct {
	critpath.Request
	outcomes []critpath.Outcome
}

// before reports whether call j had ended when call i began; len(Calls) is the request's end.
func (w twin) before(i, j int) bool {
	if i == len(w.Calls) {
		return w.Calls[j].End <= w.End
	}
	a, b := w.Calls[j], w.Calls[i]
	switch {
	case i == j || a.End > b.Start:
		return false
	case a.Start == b.Start && a.End == b.End: // neither takes time
		return j < i
	}
	return true
}

// begins returns when call i, or the request's end, begins, by its gap and by its certainty.
func (w twin) begins(i int) (guessed, known time.Duration) {
	trigger, begun := w.Start, w.End
	if i < len(w.Calls) {
		begun = w.Calls[i].Start
	}
	guessed, known = w.Start, w.Start
	for j, c := range w.Calls {
		if !w.before(i, j) {
			continue
		}
		trigger = max(trigger, c.End)
		_, to := w.span(j)
		known = max(known, to)
		if w.outcomes[j] == critpath.Right {
			to, _ = w.begins(j) // when the program asks, though the call may be held
		}
		guessed = max(guessed, to)
	}
	return guessed + begun - trigger, known
}

func (w twin) span(i int) (from, to time.Duration) {
	from, known := w.begins(i)
	if !w.Calls[i].Pure {
		from = max(from, known)
	}
	for j, c := range w.Calls {
		if w.before(i, j) && (c.Effects || c.Ordered && w.Calls[i].Ordered) {
			_, to := w.span(j)
			from = max(from, to)
		}
	}
	return from, from + w.Calls[i].Duration()
}

func (w twin) replay() critpath.Result {
	guessed, known := w.begins(len(w.Calls))
	result := critpath.Result{End: max(guessed, known)}
	for j, outcome := range w.outcomes {
		if outcome != critpath.Wrong {
			continue
		}
		_, refuted := w.span(j)
		believed := twin{w.Request, slices.Clone(w.outcomes)}
		believed.outcomes[j] = critpath.Right
		for i, c := range w.Calls {
			if from, _ := believed.span(i); c.Pure && w.before(i, j) && from < refuted {
				result.Extra++
				result.ExtraTime += c.Duration()
			}
		}
	}
	return result
}

func TestRandomAgainstTwin(t *testing.T) {
	for seed := range uint64(3000) {
		chance := rand.New(rand.NewPCG(seed, 1))
		r := randomRequest(chance)
		p, err := critpath.New(r)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			outcomes := randomOutcomes(chance, len(r.Calls))
			if diff := cmp.Diff(twin{r, outcomes}.replay(), p.Replay(of(outcomes))); diff != "" {
				t.Fatalf("seed %d: %+v with %v:\n%s", seed, r, outcomes, diff)
			}
		}
	}
}

func TestRandomProperties(t *testing.T) {
	for seed := range uint64(3000) {
		chance := rand.New(rand.NewPCG(seed, 2))
		r := randomRequest(chance)
		p, err := critpath.New(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(p, chance); err != nil {
			t.Fatalf("seed %d: %+v: %v", seed, r, err)
		}
	}
}

func check(p *critpath.Path, chance *rand.Rand) error {
	r := p.Request()
	n := len(r.Calls)
	none := make([]critpath.Outcome, n)
	if got, want := p.Replay(of(none)), (critpath.Result{End: r.End}); got != want {
		return fmt.Errorf("without predictions %+v, want %+v", got, want)
	}
	spans, _ := p.Schedule(of(none))
	for i, c := range r.Calls {
		if (critpath.Span{Start: c.Start, End: c.End}) != spans[i] {
			return fmt.Errorf("without predictions call %d is at %v", i, spans[i])
		}
	}
	sum := time.Duration(0)
	for _, i := range p.Critical() {
		sum += p.Gap(i) + r.Calls[i].Duration()
	}
	if _, gap := p.Last(); sum+gap != p.Duration() {
		return fmt.Errorf("the critical path takes %v, the request %v", sum+gap, p.Duration())
	}

	outcomes := randomOutcomes(chance, n)
	result := p.Replay(of(outcomes))
	if result.End > r.End {
		return fmt.Errorf("%v: ends at %v, later than it did", outcomes, result.End)
	}
	spans, _ = p.Schedule(of(outcomes))
	for i, c := range r.Calls {
		if p.Awaited(i) && result.End < spans[i].End {
			return fmt.Errorf("%v: ends at %v, before the answer of call %d", outcomes, result.End, i)
		}
		if spans[i].Start > c.Start {
			return fmt.Errorf("%v: call %d begins at %v, later than it did", outcomes, i, spans[i].Start)
		}
		for j := range r.Calls {
			if !c.Pure && p.StandsOn(i, j) && spans[i].Start < spans[j].End {
				return fmt.Errorf("%v: call %d has effects and begins at %v, before call %d ended", outcomes, i, spans[i].Start, j)
			}
		}
	}

	for i, outcome := range outcomes { // one more right prediction never makes it later
		if outcome == critpath.Right {
			continue
		}
		better := slices.Clone(outcomes)
		better[i] = critpath.Right
		if got := p.Replay(of(better)); got.End > result.End {
			return fmt.Errorf("%v: ends at %v, with call %d right at %v", outcomes, result.End, i, got.End)
		}
	}
	return nil
}

package critpath

import (
	"iter"
	"math"
	"math/rand/v2"
	"time"
)

// Never is the probability of a call that is not predicted at all, which is not the same as one
// whose predictions are always wrong. Each negative number means it.
const Never = -1.0

const (
	// exactCalls is how many predicted calls there may be for each combination of outcomes to be
	// tried.
	exactCalls = 8
	// With more, that many combinations are drawn, fewer for large requests: about drawWork steps
	// in all.
	maxDraws, minDraws, drawWork = 256, 16, 400_000
)

// Expectation is the mean of results.
type Expectation struct {
	End       time.Duration // on the time axis of Request
	Extra     float64       // calls
	ExtraTime time.Duration
}

// Expected returns the mean of what Outcomes yields.
func (p *Path) Expected(right []float64) Expectation {
	var end, extra, extraTime float64
	for weight, result := range p.Outcomes(right) {
		end += weight * float64(result.End-p.r.Start)
		extra += weight * float64(result.Extra)
		extraTime += weight * float64(result.ExtraTime)
	}
	return Expectation{p.r.Start + time.Duration(math.Round(end)), extra, time.Duration(math.Round(extraTime))}
}

// Outcomes yields results with their probabilities, which add up to 1, where the prediction of call
// i is right with probability right[i], independently of all others, and a call for which that is
// negative, or missing because right is short, is not predicted. With at most eight calls whose
// outcome is open it yields each combination; with more, combinations drawn with a fixed seed, the
// same draws for all probabilities, so that more probable predictions never look worse.
func (p *Path) Outcomes(right []float64) iter.Seq2[float64, Result] {
	var open []int
	outcomes := make([]Outcome, len(p.r.Calls))
	for i := range outcomes {
		switch {
		case i >= len(right) || right[i] < 0 || math.IsNaN(right[i]):
		case right[i] >= 1:
			outcomes[i] = Right
		case right[i] == 0:
			outcomes[i] = Wrong
		default:
			open = append(open, i)
		}
	}
	replay := func() Result { return p.Replay(func(i int) Outcome { return outcomes[i] }) }
	if len(open) <= exactCalls {
		return func(yield func(float64, Result) bool) {
			for mask := range 1 << len(open) {
				weight := 1.0
				for at, i := range open {
					outcomes[i] = Wrong
					chance := 1 - right[i]
					if mask>>at&1 == 1 {
						outcomes[i], chance = Right, right[i]
					}
					weight *= chance
				}
				if !yield(weight, replay()) {
					return
				}
			}
		}
	}
	n := len(p.r.Calls)
	draws := min(max(drawWork/(n*n), minDraws), maxDraws)
	return func(yield func(float64, Result) bool) {
		chance := rand.New(rand.NewPCG(1, uint64(n)))
		u := make([]float64, n)
		for range draws {
			for i := range u { // one for each call, so that the draws do not depend on which are open
				u[i] = chance.Float64()
			}
			for _, i := range open {
				outcomes[i] = Wrong
				if u[i] < right[i] {
					outcomes[i] = Right
				}
			}
			if !yield(1/float64(draws), replay()) {
				return
			}
		}
	}
}

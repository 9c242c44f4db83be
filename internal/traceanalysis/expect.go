package traceanalysis

import (
	"cmp"
	"slices"

	"github.com/foresay/foresay/internal/critpath"
)

const (
	// How many steps of replaying, of some nanoseconds each, one expectation may take: of an
	// entry's rates, and while methods are compared. But so many paths are always replayed, and no
	// more than choicePaths to compare methods.
	rateWork    = 10_000_000
	choiceWork  = 1_000_000
	minPaths    = 30
	choicePaths = 200
	// Up to that many methods all sets are compared; beyond, sets grow by the best method to add.
	exhaustive = 6
	maxMethods = 12
	// little is the part of a request's time that is not worth the trouble.
	little = 0.01
)

// affordable picks paths evenly from the sample, as many as the work allows.
func (m *model) affordable(work, limit int) []*critpath.Path {
	total := 0
	for _, path := range m.paths {
		n := len(path.Request().Calls)
		total += min(1<<min(n, 8), 256) * n * (1 + n/2)
	}
	n := min(len(m.paths), limit)
	if mean := total / len(m.paths); mean > 0 {
		n = min(n, max(work/mean, minPaths))
	}
	picked := make([]*critpath.Path, n)
	for i := range picked {
		picked[i] = m.paths[i*len(m.paths)/n]
	}
	return picked
}

// expected is what is expected of requests.
type expected struct {
	took   Duration
	extra  float64 // wasted calls per call
	vainMS float64 // per request
}

// expect finds what is expected if some calls are predicted, rightly with probability p.
func (m *model) expect(paths []*critpath.Path, predicted func(critpath.Call) bool, p float64) expected {
	var took []weighed
	var x expected
	extra, calls := 0.0, 0
	for _, path := range paths {
		request := path.Request()
		right := make([]float64, len(request.Calls))
		for i, c := range request.Calls {
			right[i] = critpath.Never
			if predicted != nil && predicted(c) {
				right[i] = p
			}
		}
		for weight, result := range path.Outcomes(right) {
			took = append(took, weighed{millis(result.End), weight})
			extra += weight * float64(result.Extra)
			x.vainMS += weight * millis(result.ExtraTime) / float64(len(paths))
		}
		calls += len(request.Calls)
	}
	x.took = durationOf(took)
	if calls > 0 {
		x.extra = extra / float64(calls)
	}
	return x
}

func saved(before, after expected) float64 {
	if before.took.MeanMS == 0 {
		return 0
	}
	return 1 - after.took.MeanMS/before.took.MeanMS
}

// choose finds the best method and the best methods to predict.
func (m *model) choose(modelled []*critpath.Path, before expected) {
	var methods []string
	for _, c := range m.Calls { // those that are waited for longest first
		if c.Alone != nil && len(methods) < maxMethods {
			methods = append(methods, c.Method)
		}
	}
	paths := m.affordable(choiceWork, choicePaths)
	start := m.expect(paths, nil, 0)
	// Each method must bring a little more than its trouble.
	value := func(set []string) float64 {
		x := m.expect(paths, in(set), m.options.HitRate)
		return start.took.MeanMS*(1-little*float64(len(set))) - x.took.MeanMS - *m.options.LoadCost*x.vainMS
	}
	single, worth := grow(nil, methods, value)
	if worth <= 0 {
		single = nil
	}
	var best []string
	if len(methods) <= exhaustive {
		best = bestOfAll(methods, value)
	} else {
		best = single
		for best != nil {
			larger, better := grow(best, methods, value)
			if larger == nil || better <= worth {
				break
			}
			best, worth = larger, better
		}
	}
	m.Single, m.Together = m.choice(modelled, before, single), m.choice(modelled, before, best)
}

// grow adds the method to a set with which it is worth most.
func grow(set, methods []string, value func([]string) float64) (best []string, worth float64) {
	for _, method := range methods {
		if slices.Contains(set, method) {
			continue
		}
		larger := append(slices.Clone(set), method)
		if v := value(larger); best == nil || v > worth {
			best, worth = larger, v
		}
	}
	return best, worth
}

// bestOfAll compares all sets. It returns nil if none is worth anything.
func bestOfAll(methods []string, value func([]string) float64) []string {
	var best []string
	worth := 0.0
	for mask := 1; mask < 1<<len(methods); mask++ {
		var set []string
		for i, method := range methods {
			if mask>>i&1 == 1 {
				set = append(set, method)
			}
		}
		if v := value(set); v > worth {
			best, worth = set, v
		}
	}
	return best
}

func in(set []string) func(critpath.Call) bool {
	return func(c critpath.Call) bool { return slices.Contains(set, c.Method) }
}

func (m *model) choice(paths []*critpath.Path, before expected, set []string) *Choice {
	if len(set) == 0 {
		return nil
	}
	x := m.expect(paths, in(set), m.options.HitRate)
	return &Choice{set, x.took.MeanMS, saved(before, x), x.extra}
}

// weighed is a value that counts more or less.
type weighed struct{ value, weight float64 }

// durationOf sorts its argument.
func durationOf(x []weighed) Duration {
	slices.SortFunc(x, func(a, b weighed) int { return cmp.Compare(a.value, b.value) })
	sum, total := 0.0, 0.0
	for _, w := range x {
		sum += w.value * w.weight
		total += w.weight
	}
	if total == 0 {
		return Duration{}
	}
	return Duration{sum / total, quantile(x, 0.5*total), quantile(x, 0.95*total)}
}

// quantile returns the least value at or below which there is as much weight.
func quantile(x []weighed, weight float64) float64 {
	sum := 0.0
	for _, w := range x {
		if sum += w.weight; sum >= weight-1e-9 {
			return w.value
		}
	}
	return x[len(x)-1].value
}

package traceanalysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/foresay/foresay/internal/critpath"
)

// maxChains is how many chains an entry shows.
const maxChains = 5

// chainKind is a chain's requests.
type chainKind struct {
	stages []Stage
	paths  []*critpath.Path
}

func (m *model) findChains() {
	kinds := make(map[string]*chainKind)
	for _, path := range m.paths {
		stages := stagesOf(path)
		name := chainName(stages)
		if kinds[name] == nil {
			kinds[name] = &chainKind{stages: stages}
		}
		kinds[name].paths = append(kinds[name].paths, path)
	}
	var order []*chainKind
	for _, kind := range kinds {
		order = append(order, kind)
	}
	slices.SortFunc(order, func(a, b *chainKind) int {
		return cmp.Or(cmp.Compare(len(b.paths), len(a.paths)), cmp.Compare(chainName(a.stages), chainName(b.stages)))
	})
	typical := max(0, slices.IndexFunc(order, func(k *chainKind) bool { return len(k.stages) > 0 }))
	m.Timeline = timelineOf(order[typical].paths)
	for i, kind := range order {
		if i == maxChains {
			m.OtherChains = len(order) - maxChains
			break
		}
		mean := 0.0
		for _, path := range kind.paths {
			mean += millis(path.Duration()) / float64(len(kind.paths))
		}
		m.Chains = append(m.Chains, Chain{kind.stages, float64(len(kind.paths)) / float64(m.Sampled), mean})
	}
}

// stagesOf orders the calls that a request waited for by how many triggers come before them.
func stagesOf(path *critpath.Path) []Stage {
	calls := path.Request().Calls
	counts := []map[string]int{}
	for i, c := range calls {
		if !path.Awaited(i) {
			continue
		}
		stage := 0
		for at := path.Trigger(i); at >= 0; at = path.Trigger(at) {
			stage++
		}
		for len(counts) <= stage {
			counts = append(counts, map[string]int{})
		}
		counts[stage][c.Method]++
	}
	stages := make([]Stage, len(counts))
	for i, methods := range counts {
		for method, n := range methods {
			switch {
			case n > 3:
				method += " ×many"
			case n > 1:
				method = fmt.Sprintf("%s ×%d", method, n)
			}
			stages[i].Methods = append(stages[i].Methods, method)
		}
		slices.Sort(stages[i].Methods)
	}
	return withLoops(stages)
}

// maxLoop is how many stages a loop may have, minTurns how often it must come to be one.
const (
	maxLoop  = 4
	minTurns = 3
)

// withLoops takes stages that come again and again together, so that requests that differ in how
// often fall together.
func withLoops(stages []Stage) []Stage {
	out := []Stage{}
	for at := 0; at < len(stages); {
		length, turns := 1, 1
		for n := 1; n <= maxLoop && turns < minTurns; n++ {
			length, turns = n, turnsOf(stages[at:], n)
		}
		if turns < minTurns {
			length, turns = 1, 1
		}
		for _, stage := range stages[at : at+length] {
			out = append(out, Stage{stage.Methods, turns > 1})
		}
		at += length * turns
	}
	return out
}

// turnsOf counts how often the first n stages come one time after the other.
func turnsOf(stages []Stage, n int) int {
	if len(stages) < n {
		return 0
	}
	turns := 1
	for len(stages) >= (turns+1)*n && chainName(stages[turns*n:(turns+1)*n]) == chainName(stages[:n]) {
		turns++
	}
	return turns
}

// chainName names each chain differently.
func chainName(stages []Stage) string {
	var b strings.Builder
	for _, stage := range stages {
		fmt.Fprintf(&b, "%q %v ", stage.Methods, stage.Repeated)
	}
	return b.String()
}

func timelineOf(paths []*critpath.Path) *Timeline {
	paths = slices.Clone(paths)
	slices.SortStableFunc(paths, func(a, b *critpath.Path) int { return cmp.Compare(a.Duration(), b.Duration()) })
	path := paths[(len(paths)-1)/2]
	calls := path.Request().Calls
	spans, result := path.Schedule(func(i int) critpath.Outcome {
		if calls[i].Pure {
			return critpath.Right
		}
		return critpath.Unpredicted
	})
	t := &Timeline{BeforeMS: millis(path.Duration()), AfterMS: millis(result.End)}
	critical := path.Critical()
	for i, c := range calls {
		t.Bars = append(t.Bars, Bar{
			Method: c.Method, Predicted: c.Pure, Critical: slices.Contains(critical, i),
			From: millis(c.Start), To: millis(c.End), AfterFrom: millis(spans[i].Start), AfterTo: millis(spans[i].End),
		})
	}
	slices.SortFunc(t.Bars, func(a, b Bar) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Method, b.Method))
	})
	return t
}

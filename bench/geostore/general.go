package geostore

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/plan"
)

// carouselGeneral has transactions declare nothing: their keys are prepared as their code reaches
// them, and what they read is predicted, some of it at once and the rest by the nearest copy. The
// layered protocol's clients wait for what they read, one key after the other.
func carouselGeneral() bench.Experiment {
	e := variation("carousel-general",
		"Retwis on Carousel's five sites, no keys declared, of whose reads 0 to 100 % are predicted right at once, by "+
			"protocol", "predicted_percent", "reads predicted at once (%)",
		append(protocolSystems(waiting(), plan.Layered),
			protocolSystems([]client.Mode{client.Predicated}, plan.CarouselFast, plan.CarouselDirect)...),
		func(o bench.Options) ([]studyPoint, error) {
			return collect(bench.Pick(o, []int{0, 100}, []int{0, 25, 50, 75, 100}), func(percent int) (studyPoint, error) {
				return varied(o, zipfAlpha, func(p *studyPoint) {
					p.params = append(p.params, table.Is("predicted_percent", percent))
					p.place.general, p.place.predicted = true, percent
				})
			})
		}, readWrite, besideSequential, "system")
	e.Figures = append(e.Figures, figure.Spec{
		Suffix: "ratio", Title: "General transactions that write, against layered with sequential reads",
		X: "predicted_percent", XLabel: "reads predicted at once (%)", Y: "attempt_ratio_to_layered",
		YLabel: "mean latency, against layered", Series: []string{"system"}, Where: table.Is("figure", "predicted_percent"),
	})
	return e
}

// besideSequential compares with the layered protocol, whose clients are in another mode.
func besideSequential(rows []table.Row) {
	addRatiosWhere(rows, string(plan.Layered), func(a, b table.Row) bool {
		return same(a, b, "site", "class", "predicted_percent")
	}, "attempt")
}

// An oracle is a predictor that is right about a share of the keys that it is asked for, and has no
// guess for the others. It knows what all clients have learned: a real one would be a cache of what
// its own has seen, which is as right as the workload lets it be.
type oracle struct {
	percent int
	mu      sync.Mutex
	rand    *rand.Rand
	values  map[string]store.Value
}

var _ control.Predictor = (*oracle)(nil)

func newOracle(percent int, seed uint64) *oracle {
	return &oracle{percent: percent, rand: rand.New(rand.NewPCG(seed, 0)), values: map[string]store.Value{}}
}

// Predict implements control.Predictor. What nobody has written holds nothing.
func (o *oracle) Predict(_ context.Context, request any) []any {
	key, ok := request.(string)
	o.mu.Lock()
	defer o.mu.Unlock()
	if !ok || o.rand.IntN(100) >= o.percent {
		return nil
	}
	return []any{o.values[key]}
}

// Learn implements control.Predictor.
func (o *oracle) Learn(_ context.Context, request, response any) {
	key, isKey := request.(string)
	v, isValue := response.(store.Value)
	if !isKey || !isValue {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if v.Version.After(o.values[key].Version) {
		o.values[key] = v
	}
}

package geostore

import (
	"testing"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/store/plan"
)

// TestPlacementsArePlayed: the ring, and placements on which direct does better and worse than
// there; each takes what the model says of it, in trips of its own, beside layered on the same.
func TestPlacementsArePlayed(t *testing.T) {
	quick := bench.Options{Mode: bench.Virtual, Quick: true, Seed: 3, Bubble: bubbles(t)}
	study := latencyStudy{
		systems: protocolSystems(waiting(), plan.Layered, plan.CarouselDirect), rows: protocolRows, compare: besideFloor,
		points: func(o bench.Options) ([]studyPoint, error) {
			points, err := placementPoints(o)
			for i := range points {
				points[i].clients, points[i].sharing, points[i].every = 2, 2, 1200*time.Millisecond
				points[i].lasting = 6 * time.Second
			}
			return points, err
		},
	}
	rows, err := study.run(t.Context(), bench.Run{Options: quick})
	if err != nil {
		t.Fatal(err)
	}
	ratios, trips := map[string]float64{}, map[string]float64{}
	for _, r := range rows {
		if r.Text("site") != "all" || r.Text("system") != string(plan.CarouselDirect) {
			continue
		}
		place := r.Text("placement")
		switch r.Text("class") {
		case string(plan.LocalReplica):
			ratios[place], _ = r.Number("attempt_ratio_to_floor")
		case string(plan.All):
			trips[place], _ = r.Number("wide_area_trips")
			mean, _ := r.Number("attempt_mean_ms")
			model, _ := r.Number("model_mean_ms")
			layered, ok := r.Number("attempt_ratio_to_layered")
			if mean < 0.97*model || mean > 1.15*model || !ok || layered > 0.6 {
				t.Errorf("%s: %v ms, the model says %v; %v of layered", place, mean, model, layered)
			}
		}
	}
	if len(ratios) != 3 || ratios["ring"] == 0 {
		t.Fatalf("placements are %v, want the ring and two others", ratios)
	}
	least, most := 10.0, 0.0
	for place, r := range ratios {
		if place != "ring" {
			least, most = min(least, r), max(most, r)
		}
	}
	if least > 1.2 || most < 1.4 {
		t.Errorf("transactions of a site's own copies take %v times the floor", ratios)
	}
	distinct := map[float64]bool{}
	for _, n := range trips {
		distinct[n] = true
	}
	if len(distinct) < 2 {
		t.Errorf("trips are the same wherever copies are: %v", trips)
	}
}

// TestSamePoint: a row is compared with the same placement's, or with one that has none to choose.
func TestSamePoint(t *testing.T) {
	at := func(placement string) table.Row { return table.Row{table.Is("placement", placement)} }
	for _, c := range []struct {
		a, b string
		want bool
	}{{"ring", "ring", true}, {"ring", "021", false}, {everywhere, "021", true}, {"ring", everywhere, true}} {
		if samePoint(at(c.a), at(c.b)) != c.want {
			t.Errorf("%s and %s: want %v", c.a, c.b, c.want)
		}
	}
}

// TestPlacementLabels: the ring is told by its name, in whatever order its followers are.
func TestPlacementLabels(t *testing.T) {
	p, err := ringOf("carousel")
	if err != nil {
		t.Fatal(err)
	}
	if p.label() != "ring" {
		t.Errorf("the ring is %q", p.label())
	}
	p.placement[0][1], p.placement[0][2] = p.placement[0][2], p.placement[0][1]
	if p.label() != "ring" {
		t.Errorf("the ring, its followers named the other way round, is %q", p.label())
	}
	labels := map[string]bool{}
	for q := range plan.Balanced(p.matrix.Sites()) {
		p.moveTo(q)
		labels[p.label()] = true
	}
	if len(labels) != 216 || !labels["ring"] {
		t.Errorf("216 placements have %d labels", len(labels))
	}
}

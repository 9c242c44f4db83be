package simulated

import (
	"testing"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/store/plan"
)

// TestFigures: rows of all experiments have what their figures show.
func TestFigures(t *testing.T) {
	var rows []table.Row
	for _, perS := range []int{bandwidthTarget, 8000} {
		for _, s := range throughputSystems() {
			m := &measured{target: target{system: s, cpu: thesisCPU(), perS: perS, lasting: time.Second}, committed: perS,
				took: []time.Duration{time.Millisecond}}
			m.nodes = [roles]int{40, 5, 10, 0}
			m.sent, m.got = [roles]int{1, 2, 3, 4}, [roles]int{4, 3, 2, 1}
			rows = append(rows, m.rows()...)
		}
	}
	draw(t, carouselThroughput(), rows)
	rows = nil
	for _, s := range []plan.System{plan.TAPIR, plan.CarouselDirect} {
		for _, v := range victims(s) {
			f := &fell{failover: failover{system: s, victim: v, in: fiveSites()}, one: time.Second}
			f.up.took, f.gone.took = []time.Duration{time.Second}, []time.Duration{2 * time.Second}
			rows = append(rows, f.row())
		}
	}
	draw(t, carouselFailover(), rows)
	draw(t, strFailover(), rows)
	draw(t, strReaders(), sampleRows(readersContentions(), table.Is("readers", 2)))
	draw(t, strSynthetic(), sampleRows(contentions()))
	draw(t, strTuning(), sampleRows(contentions()))
	draw(t, strClocks(), sampleRows([]string{"clocks"}, table.Is("keys", 10), table.Is("commits_ratio_to_physical", 1.0)))
	draw(t, strTPCC(), sampleRows(strMixes()))
	draw(t, strRUBiS(), sampleRows([]string{"rubis"}))
}

func draw(t *testing.T, e bench.Experiment, rows []table.Row) {
	t.Helper()
	pictures, err := e.Draw(&bench.Result{Experiment: e.Name, Mode: bench.Virtual, Rows: rows})
	if err != nil || len(pictures) != len(e.Figures) {
		t.Errorf("%s: %d pictures of %d figures are drawn, error %v", e.Name, len(pictures), len(e.Figures), err)
	}
}

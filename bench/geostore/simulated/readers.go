package simulated

import (
	"context"
	"fmt"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
)

// strReaders has fewer copies serve reads than there are: commits wait for fewer, and more reads go
// to another site.
func strReaders() bench.Experiment {
	e := bench.Experiment{
		Name: "str-readers",
		Summary: "ten keys read and updated on nine sites, six copies of each partition, of which two to all six serve " +
			"reads: commits, final latency, and what the model says",
		Modes: []bench.Mode{bench.Virtual}, Intervals: nineIntervals(),
		Measure: bench.PointsAtOnce(readersPoints),
	}
	for _, contention := range readersContentions() {
		for _, f := range []struct{ suffix, y, label string }{
			{"commits", "commits_per_s", "commits per second"},
			{"final", "final_mean_ms", "mean final latency (ms)"},
		} {
			e.Figures = append(e.Figures, figure.Spec{Suffix: contention + "-" + f.suffix,
				Title: "contention " + contention + ", local and remote: " + f.label, X: "readers",
				XLabel: "copies that serve reads", Y: f.y, YLabel: f.label, Series: []string{"system"},
				Where: table.Is("figure", contention)})
		}
	}
	return e
}

func readersContentions() []string { return []string{"low-low", "high-low"} }

// readersUsers is how many users a server has: servers are not busy, so that latency is the
// network's.
const readersUsers = 10

func readersPoints(o bench.Options) (points []bench.Point) {
	for _, contention := range readersContentions() {
		l := syntheticLoad(o, contention)
		for _, readers := range []int{2, 3, 4, 5, paperCopies} {
			for _, system := range bench.Pick(o, []nineSystem{strInternal()}, []nineSystem{clockSIRep(), strInternal()}) {
				n := nine{system: system, servers: 1, users: readersUsers, readers: readers, cpu: paperCPU(), seed: o.Seed}
				points = append(points, bench.Point{
					Doing: fmt.Sprintf("%s%s readers=%d", system.name, cellsText(l.cells), readers),
					Run: func(context.Context) ([]table.Row, error) {
						rows, err := n.measure(l)
						for i := range rows {
							rows[i] = append(rows[i], table.Is("readers", readers), table.Is("figure", contention))
						}
						return rows, err
					},
				})
			}
		}
	}
	return points
}

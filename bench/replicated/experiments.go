package replicated

import (
	"context"
	"slices"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/smr"
)

// acks are what a call of a replicated service waits for, of what all protocols have.
func acks() []smr.Ack { return []smr.Ack{smr.AckDurable, smr.AckExecuted} }

func durableName(durable bool) string {
	if durable {
		return "yes"
	}
	return "no"
}

// Experiments returns the experiments on state machine replication, in the order in
// which they are best read.
func Experiments() []bench.Experiment {
	return []bench.Experiment{
		smrThroughput(), smrClients(), smrSnapshots(), smrMembers(), smrLarge(), smrIdle(), smrFailover(),
	}
}

// protocols returns the protocols that are measured: the one asked for; else the first for a quick
// run, and all for a full one.
func protocols(o bench.Options) []smr.Protocol {
	all := catalog.Protocols()
	if o.Protocol != "" {
		return slices.DeleteFunc(all, func(p smr.Protocol) bool { return p.Name != o.Protocol })
	}
	return bench.Pick(o, all[:1], all)
}

// perProtocol measures a protocol after the other, whose replicas are processes.
func perProtocol(
	rows func(context.Context, bench.Options, smr.Protocol) ([]table.Row, error),
) func(bench.Options) []bench.Point {
	return func(o bench.Options) (points []bench.Point) {
		for _, p := range protocols(o) {
			points = append(points, bench.Point{Doing: p.Name, Run: func(ctx context.Context) ([]table.Row, error) {
				if o.Program == "" {
					return nil, bench.ErrNoProgram
				}
				return rows(ctx, o, p)
			}})
		}
		return points
	}
}

package bench

import (
	"slices"
	"time"

	"github.com/foresay/foresay/smr"
)

// acks are what a call of a replicated service waits for, of what all protocols have.
func acks() []smr.Ack { return []smr.Ack{smr.AckDurable, smr.AckExecuted} }

// syncTime is what a sync of a disk takes in virtual time, where it is modelled.
const syncTime = time.Millisecond

func durableName(durable bool) string {
	if durable {
		return "yes"
	}
	return "no"
}

// latencyCells returns the usual figures of latencies, which it sorts.
func latencyCells(took []time.Duration) []Cell {
	slices.Sort(took)
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	return []Cell{
		measure("mean_ms", ms(sum)/float64(max(len(took), 1))), measure("p50_ms", ms(quantile(took, 0.5))),
		measure("p95_ms", ms(quantile(took, 0.95))), measure("p99_ms", ms(quantile(took, 0.99))),
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

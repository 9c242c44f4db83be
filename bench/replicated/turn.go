package replicated

import (
	"slices"
	"time"
)

// A Turn is what a system did in one of its turns.
type Turn struct {
	PerSecond float64
	// CPUPerOp is the servers' processor time per call in microseconds.
	CPUPerOp float64
	Took     []time.Duration // by call, in no order
}

// NewTurn returns what clients' calls took in a turn, by client, in which the servers used so much
// processor time.
func NewTurn(took [][]time.Duration, lasted, cpu time.Duration) Turn {
	t := Turn{Took: slices.Concat(took...)}
	t.PerSecond = float64(len(t.Took)) / lasted.Seconds()
	t.CPUPerOp = float64(cpu.Microseconds()) / float64(max(len(t.Took), 1))
	return t
}

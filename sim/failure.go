package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/foresay/foresay/protocol"
)

// A Failure is why a simulation ended, or did not get where it was to get.
type Failure struct {
	Seed   uint64
	Step   uint64
	At     time.Duration
	Node   protocol.ID // 0: no single node
	Kind   string      // "invariant", "panic", "codec", "bound" or "liveness"
	Err    error
	Trace  []string // what happened last, oldest first
	Replay string   // the command that repeats it, if Config names one
}

// failureLines bounds the lines of trace in a failure's text.
const failureLines = 40

// Error returns a text of several lines: what failed, how to repeat it, and what happened before.
func (f *Failure) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "sim: seed %d, step %d, at %v", f.Seed, f.Step, f.At)
	if f.Node != 0 {
		fmt.Fprintf(&b, ", node %d", f.Node)
	}
	fmt.Fprintf(&b, ": %s: %v", f.Kind, f.Err)
	if f.Replay != "" {
		fmt.Fprintf(&b, "\nreplay: %s", f.Replay)
	}
	lines := f.Trace[max(0, len(f.Trace)-failureLines):]
	if len(lines) > 0 {
		fmt.Fprintf(&b, "\nthe last %d lines of the trace:", len(lines))
	}
	for _, l := range lines {
		b.WriteString("\n  " + l)
	}
	return b.String()
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

func (s *Sim[M]) newFailure(n *node[M], kind string, err error) *Failure {
	f := &Failure{Seed: s.config.Seed, Step: s.steps, At: s.now, Kind: kind, Err: err, Replay: s.config.Replay}
	if n != nil {
		f.Node = n.id
	}
	s.trace.kept(func(l *line[M]) bool {
		f.Trace = append(f.Trace, l.String())
		return true
	})
	return f
}

// fail ends the simulation, unless it has failed before.
func (s *Sim[M]) fail(n *node[M], kind string, err error) {
	if s.failure == nil {
		s.failure = s.newFailure(n, kind, err)
	}
}

package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxReplayBytes bounds how much of a trace Twice keeps to compare.
const maxReplayBytes = 64 << 20

// A Run is what Twice needs of a simulation that was run.
type Run struct {
	Hash  uint64
	Steps uint64
	Err   error
}

// Twice makes a run two times, and returns an error if the two differ: then something in it depends
// on more than the seed, such as the order of a map, a clock, or a variable that both share. The
// error shows where, if it happens again with a trace. Otherwise Twice returns what both runs
// returned.
//
// run makes a simulation with Config.Trace set to its argument, which may be nil, and runs it.
func Twice(run func(trace io.Writer) Run) (Run, error) {
	first, second := run(nil), run(nil)
	if first.Hash == second.Hash && first.Steps == second.Steps && text(first.Err) == text(second.Err) {
		return first, nil
	}
	err := fmt.Errorf("sim: two runs with the same seed differ: %d steps with the hash %016x, and %d with %016x",
		first.Steps, first.Hash, second.Steps, second.Hash)
	seen := &keeper{}
	run(seen)
	c := &comparer{want: seen.Bytes()}
	run(c)
	if c.where != "" {
		return first, fmt.Errorf("%w\nthey part at %s", err, c.where)
	}
	return first, err
}

func text(err error) string {
	if err == nil {
		return ""
	}
	var f *Failure
	if errors.As(err, &f) {
		return fmt.Sprint(f.Step, f.Node, f.Kind) // a panic's text holds addresses
	}
	return err.Error()
}

// A keeper keeps the beginning of what is written to it.
type keeper struct{ bytes.Buffer }

func (k *keeper) Write(p []byte) (int, error) {
	if k.Len() < maxReplayBytes {
		k.Buffer.Write(p)
	}
	return len(p), nil
}

// A comparer notes where what is written to it parts from what it wants. Each Write is a line.
type comparer struct {
	want  []byte
	where string
}

func (c *comparer) Write(p []byte) (int, error) {
	if c.where != "" || len(c.want) == 0 {
		return len(p), nil
	}
	if rest, ok := bytes.CutPrefix(c.want, p); ok {
		c.want = rest
		return len(p), nil
	}
	line, _, _ := bytes.Cut(c.want, []byte("\n"))
	c.where = fmt.Sprintf("\n  %s\nand\n  %s", line, bytes.TrimSuffix(p, []byte("\n")))
	return len(p), nil
}

// Result returns what Twice needs of this simulation.
func (s *Sim[M]) Result(err error) Run { return Run{Hash: s.Hash(), Steps: s.Steps(), Err: err} }

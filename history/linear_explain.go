package history

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	// explainTime bounds the search for a small explanation, which is a courtesy.
	explainTime = 2 * time.Second
	// maxExplained is how many operations an explanation prints.
	maxExplained = 40
)

// Linearizability is what CheckLinearizable found.
type Linearizability struct {
	Verdict Verdict
	// Part names the part of the object, such as the key, that is not linearizable.
	Part string
	// Explanation tells, of a violation, operations of that part that no order explains, in few
	// lines: none of them can be left out, as far as time allowed to try.
	Explanation string

	draw func(io.Writer) error
}

// WriteHTML writes a page with porcupine's drawing: of a violation the part up to the first return
// that cannot be explained, else the whole history. It searches once more, with the same timeout.
func (l Linearizability) WriteHTML(w io.Writer) error {
	if l.draw == nil {
		return fmt.Errorf("history: there is no history to draw")
	}
	return l.draw(w)
}

// drawing returns what WriteHTML does.
func (c linearChecker[S, I, O]) drawing(parts []part[I, O], timeout time.Duration) func(io.Writer) error {
	return func(w io.Writer) error {
		var all []porcupine.Operation
		m := c.porcupineModel()
		for _, p := range parts {
			all = append(all, porcupineOps(p.ops)...)
		}
		if c.model.Partition != nil {
			m.Partition = partition[I, O](c.model.Partition)
		}
		_, info := porcupine.CheckOperationsVerbose(m, all, max(0, timeout))
		if err := porcupine.Visualize(m, info, w); err != nil {
			return fmt.Errorf("history: draw: %w", err)
		}
		return nil
	}
}

func partition[I, O any](name func(I) string) func([]porcupine.Operation) [][]porcupine.Operation {
	return func(ops []porcupine.Operation) [][]porcupine.Operation {
		var parts [][]porcupine.Operation
		index := make(map[string]int)
		for _, op := range ops {
			name := name(op.Input.(*Op[I, O]).Input)
			i, ok := index[name]
			if !ok {
				i = len(parts)
				index[name] = i
				parts = append(parts, nil)
			}
			parts[i] = append(parts[i], op)
		}
		return parts
	}
}

// explain makes the result for a part that is not linearizable.
func (c linearChecker[S, I, O]) explain(p part[I, O]) Linearizability {
	deadline := time.Now().Add(explainTime)
	violates := func(ops []Op[I, O]) bool {
		left := time.Until(deadline)
		return left > 0 && c.decide(ops, left) == Violation
	}
	prefix := shortestPrefix(p.ops, violates)
	core := smallest(prefix, func(some []Op[I, O]) bool { return c.explains(some, prefix) && violates(some) })

	var b strings.Builder
	if c.model.Partition != nil {
		fmt.Fprintf(&b, "%q is not linearizable: ", p.name)
	}
	fmt.Fprintf(&b, "no order explains what these operations, %d of %d, returned\n", len(core), len(p.ops))
	if skipped := len(core) - maxExplained; skipped > 0 {
		fmt.Fprintf(&b, "\t%d earlier ones\n", skipped)
		core = core[skipped:]
	}
	for _, op := range core {
		fmt.Fprintf(&b, "\tclient %d %s %s\n", op.Client, span(op.Call, op.Return, op.Outcome), c.describe(op))
	}
	return Linearizability{
		Verdict:     Violation,
		Part:        p.name,
		Explanation: b.String(),
		draw:        c.drawing([]part[I, O]{{name: p.name, ops: prefix}}, explainTime),
	}
}

// explains reports whether what some are violated by, all are.
func (c linearChecker[S, I, O]) explains(some, all []Op[I, O]) bool {
	if c.model.Explains != nil {
		return c.model.Explains(some, all)
	}
	writes := func(ops []Op[I, O]) int {
		n := 0
		for _, op := range ops {
			if !c.readOnly(op) {
				n++
			}
		}
		return n
	}
	return writes(some) == writes(all)
}

// shortestPrefix returns the history up to the first return that makes it a violation.
// Linearizability is closed under prefixes, so that return is found by bisection. Operations under
// way at that time have unknown outcome.
func shortestPrefix[I, O any](ops []Op[I, O], violates func([]Op[I, O]) bool) []Op[I, O] {
	var returns []time.Duration
	for _, op := range ops {
		if op.Outcome == Returned {
			returns = append(returns, op.Return)
		}
	}
	slices.Sort(returns)
	returns = slices.Compact(returns)
	i, _ := slices.BinarySearchFunc(returns, true, func(at time.Duration, _ bool) int {
		if violates(upTo(ops, at)) {
			return 0
		}
		return -1
	})
	if i == len(returns) { // no time left to find it
		return ops
	}
	return upTo(ops, returns[i])
}

// upTo returns what was known at a time.
func upTo[I, O any](ops []Op[I, O], at time.Duration) []Op[I, O] {
	var known []Op[I, O]
	for _, op := range ops {
		if op.Call > at {
			continue
		}
		if op.Outcome == Returned && op.Return > at {
			var none O
			op.Outcome, op.Return, op.Output = Unknown, 0, none
		}
		known = append(known, op)
	}
	return known
}

// smallest returns operations that hold, of which no run of 1, 2, 4... can be left out, as delta
// debugging finds them [Zeller and Hildebrandt, 2002]. It returns ops if these do not hold.
func smallest[I, O any](ops []Op[I, O], holds func([]Op[I, O]) bool) []Op[I, O] {
	size := 1
	for size*2 < len(ops) {
		size *= 2
	}
	for {
		removed := false
		for from := 0; from < len(ops); {
			rest := slices.Concat(ops[:from], ops[min(from+size, len(ops)):])
			if len(rest) > 0 && holds(rest) {
				ops = rest
				removed = true
			} else {
				from += size
			}
		}
		switch {
		case size > 1:
			size /= 2
		case !removed:
			slices.SortStableFunc(ops, func(a, b Op[I, O]) int { return cmp.Compare(a.Call, b.Call) })
			return ops
		}
	}
}

package history

import (
	"fmt"
	"slices"
	"strings"
)

// maxWitnesses is how many anomalies of one name a report holds; it counts all.
const maxWitnesses = 10

// Anomaly is one thing that a level forbids.
type Anomaly struct {
	Phenomenon Phenomenon
	// Order is, of a cycle, the strongest order that it needs besides dependencies.
	Order Order
	// Txns are the transactions concerned: of a cycle in its order.
	Txns []TxnID
	// Explanation says what happened, in a sentence or in a line for each step of a cycle.
	Explanation string

	cycle []cycleStep
}

// cycleStep is one edge of a cycle, from the transaction of the same index to the next.
type cycleStep struct {
	label string // of the edge: what it is and on which key
	text  string // the whole story
}

// Name returns the usual name of the anomaly, such as G-single-realtime.
func (a Anomaly) Name() string {
	if a.Order == NoOrder {
		return a.Phenomenon.String()
	}
	return fmt.Sprintf("%v-%v", a.Phenomenon, a.Order)
}

// Report is what CheckTransactions found.
type Report struct {
	Level Level
	// Anomalies are sorted by phenomenon and order. Of each name there are a few: Count tells how
	// many were found.
	Anomalies []Anomaly

	counts map[string]int
}

// Verdict returns OK if there is no anomaly, else Violation. It is never Undecided.
func (r Report) Verdict() Verdict {
	if len(r.Anomalies) == 0 {
		return OK
	}
	return Violation
}

// Count returns how many anomalies of a name were found. Cycles are counted once for each knot of
// transactions that they tie.
func (r Report) Count(name string) int {
	return r.counts[name]
}

// Names returns the names of the anomalies that were found, in their order.
func (r Report) Names() []string {
	var names []string
	for _, a := range r.Anomalies {
		if name := a.Name(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// String returns the report as text.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %v\n", r.Level, r.Verdict())
	for i, a := range r.Anomalies {
		name := a.Name()
		if n := r.Count(name); n > 1 && (i == 0 || r.Anomalies[i-1].Name() != name) {
			fmt.Fprintf(&b, "%s: %d found, such as\n", name, n)
		}
		fmt.Fprintf(&b, "%s: %s\n", name, strings.TrimSuffix(a.Explanation, "\n"))
	}
	return b.String()
}

// add notes an anomaly. It calls explain only if there is room.
func (r *Report) add(a Anomaly, explain func() string) {
	if r.counts == nil {
		r.counts = make(map[string]int)
	}
	name := a.Name()
	r.counts[name]++
	if r.counts[name] > maxWitnesses {
		return
	}
	a.Explanation = explain()
	r.Anomalies = append(r.Anomalies, a)
}

func (r *Report) sort() {
	slices.SortStableFunc(r.Anomalies, func(a, b Anomaly) int {
		if a.Phenomenon != b.Phenomenon {
			return int(a.Phenomenon) - int(b.Phenomenon)
		}
		return int(a.Order) - int(b.Order)
	})
}

// DOT returns the anomaly as a graph in Graphviz's language: its transactions, and of a cycle its
// edges.
func (a Anomaly) DOT() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %q {\n", a.Name())
	a.dot(&b, "\t", "")
	b.WriteString("}\n")
	return b.String()
}

// DOT returns all anomalies as one graph, a cluster for each.
func (r Report) DOT() string {
	var b strings.Builder
	b.WriteString("digraph anomalies {\n")
	for i, a := range r.Anomalies {
		fmt.Fprintf(&b, "\tsubgraph cluster_%d {\n\t\tlabel=%q\n", i, a.Name())
		a.dot(&b, "\t\t", fmt.Sprintf("a%d_", i))
		b.WriteString("\t}\n")
	}
	b.WriteString("}\n")
	return b.String()
}

func (a Anomaly) dot(b *strings.Builder, indent, prefix string) {
	for _, id := range a.Txns {
		fmt.Fprintf(b, "%s\"%s%v\" [label=%q]\n", indent, prefix, id, id)
	}
	for i, step := range a.cycle {
		fmt.Fprintf(b, "%s\"%s%v\" -> \"%s%v\" [label=%q]\n", indent,
			prefix, a.Txns[i], prefix, a.Txns[(i+1)%len(a.Txns)], step.label)
	}
}

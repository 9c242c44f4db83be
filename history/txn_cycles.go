package history

import (
	"cmp"
	"slices"
)

// maxTries is how many edges of a knot are followed back to their beginning in search of a short
// cycle.
const maxTries = 12

// cycleFinder looks for a cycle of each forbidden kind in each knot of a graph.
type cycleFinder struct {
	g      *graph
	x      *txnIndex
	report *Report
	// knot numbers, from 1, the strongly connected components of the graph with all edges: all
	// cycles lie in them.
	knot []int32

	// Of the present search: within numbers the states that it may visit; from and seen say how
	// each was reached.
	within []int32
	seen   []int32
	from   []int32 // the edge
	before []int32 // the state
	stamp  int32
}

// findCycles reports the cycles that the report's level forbids.
func findCycles(g *graph, x *txnIndex, report *Report) {
	level := report.Level
	f := &cycleFinder{g: g, x: x, report: report}
	whole := &view{graph: g, kinds: cycleKinds(level.cycles()) | orderKinds(level.order())}
	knots := whole.knots()
	if len(knots) == 0 {
		return
	}
	f.knot = make([]int32, g.nodes)
	for i, knot := range knots {
		for _, node := range knot {
			f.knot[node] = int32(i + 1)
		}
	}
	f.within, f.seen = make([]int32, 2*g.nodes), make([]int32, 2*g.nodes)
	f.from, f.before = make([]int32, 2*g.nodes), make([]int32, 2*g.nodes)
	for order := NoOrder; order <= level.order(); order++ {
		for _, p := range []Phenomenon{G0, G1c, GNonadjacent, G2Item} {
			if p <= level.cycles() {
				f.find(p, order)
			}
		}
	}
}

// cycleKinds returns the edges that the cycles of a phenomenon consist of.
func cycleKinds(p Phenomenon) edgeKind {
	switch p {
	case G0:
		return edgePass | edgeWW
	case G1c:
		return edgePass | edgeWW | edgeWR
	}
	return edgePass | edgeWW | edgeWR | edgeRW
}

// orderKinds returns the edges of an order. Real time includes the clients' own.
func orderKinds(o Order) edgeKind {
	switch o {
	case Session:
		return edgeSession
	case RealTime:
		return edgeSession | edgeTime
	}
	return 0
}

// find reports a cycle of a phenomenon and an order in each knot that has one. GNonadjacent stands
// for GSingle too.
func (f *cycleFinder) find(p Phenomenon, order Order) {
	v := &view{
		graph: f.g, kinds: cycleKinds(p) | orderKinds(order), doubled: p == GNonadjacent, knot: f.knot,
	}
	for _, knot := range v.knots() {
		f.stamp++
		for _, state := range knot {
			f.within[state] = f.stamp
		}
		slices.Sort(knot)
		f.findIn(v, knot, p, order)
	}
}

// findIn reports the shortest cycle of the kind wanted that it finds in a knot. A cycle with an
// order is one because of the order's edges, one without because of what no graver cycle has: so
// the search starts with such edges.
func (f *cycleFinder) findIn(v *view, knot []int32, p Phenomenon, order Order) {
	var start edgeKind
	switch {
	case order == RealTime:
		start = edgeTime
	case order == Session:
		start = edgeSession
	case p == G0:
		start = edgeWW
	case p == G1c:
		start = edgeWR
	default:
		start = edgeRW
	}
	views := []*view{v}
	if p == GNonadjacent {
		// Cycles with one anti-dependency only come first: they leave its end by other edges.
		single := *v
		single.kinds &^= edgeRW
		if order == NoOrder {
			views = []*view{&single, v}
		}
	}
	for _, search := range views {
		if best, found := f.shortest(v, search, knot, start, p, order); found {
			f.reportCycle(best, order)
			return
		}
	}
}

// shortest follows some edges of a kind, of those in a knot of v, back to their beginning in the
// view search.
func (f *cycleFinder) shortest(
	v, search *view, knot []int32, start edgeKind, p Phenomenon, order Order,
) (best []int32, found bool) {
	tries := 0
	for _, state := range knot {
		first, end := f.g.out(v.nodeOf(state))
		for i := first; i < end && tries < maxTries; i++ {
			e := &f.g.edges[i]
			to, ok := v.next(state, e)
			if e.kind != start || !ok || f.within[to] != f.within[state] {
				continue
			}
			tries++
			back, ok := f.path(search, to, state)
			if !ok {
				continue
			}
			cycle := append([]int32{i}, back...)
			gotPhenomenon, gotOrder := f.classify(cycle)
			if family(gotPhenomenon) != p || gotOrder != order {
				continue // found where graver ones are sought
			}
			if !found || f.length(cycle) < f.length(best) {
				best, found = cycle, true
			}
		}
	}
	return best, found
}

// family returns the phenomenon under which cycles are sought.
func family(p Phenomenon) Phenomenon {
	if p == GSingle {
		return GNonadjacent
	}
	return p
}

// path returns the edges of a shortest path between two states of a knot. Edges that leave a node
// that stands for several transactions cost nothing.
func (f *cycleFinder) path(v *view, from, to int32) ([]int32, bool) {
	member := f.within[from]
	f.stamp++
	mark := f.stamp
	f.seen[from] = mark
	near, far := []int32{from}, []int32(nil)
	for len(near) > 0 {
		s := near[len(near)-1]
		near = near[:len(near)-1]
		if s == to {
			return f.trace(from, to), true
		}
		first, end := f.g.out(v.nodeOf(s))
		for i := first; i < end; i++ {
			e := &f.g.edges[i]
			t, ok := v.next(s, e)
			if !ok || f.within[t] != member || f.seen[t] == mark {
				continue
			}
			f.seen[t], f.from[t], f.before[t] = mark, i, s
			if e.kind == edgePass {
				near = append(near, t)
			} else {
				far = append(far, t)
			}
		}
		if len(near) == 0 {
			near, far = far, near
		}
	}
	return nil, false
}

func (f *cycleFinder) trace(from, to int32) []int32 {
	var edges []int32
	for s := to; s != from; s = f.before[s] {
		edges = append(edges, f.from[s])
	}
	slices.Reverse(edges)
	return edges
}

// length counts a cycle's edges, from transaction to transaction.
func (f *cycleFinder) length(cycle []int32) int {
	n := 0
	for _, i := range cycle {
		if f.g.edges[i].kind != edgePass {
			n++
		}
	}
	return n
}

// classify names a cycle by its edges.
func (f *cycleFinder) classify(cycle []int32) (Phenomenon, Order) {
	var kinds []edgeKind
	all := edgeKind(0)
	for _, i := range cycle {
		if kind := f.g.edges[i].kind; kind != edgePass {
			kinds = append(kinds, kind)
			all |= kind
		}
	}
	order := NoOrder
	switch {
	case all&edgeTime != 0:
		order = RealTime
	case all&edgeSession != 0:
		order = Session
	}
	anti, adjacent := 0, false
	for i, kind := range kinds {
		if kind == edgeRW {
			anti++
			adjacent = adjacent || kinds[(i+1)%len(kinds)] == edgeRW
		}
	}
	switch {
	case anti == 1:
		return GSingle, order
	case anti > 1 && adjacent:
		return G2Item, order
	case anti > 1:
		return GNonadjacent, order
	case all&edgeWR != 0:
		return G1c, order
	}
	return G0, order
}

// rotate turns a cycle so that it begins with the transaction that comes first in the history.
func (f *cycleFinder) rotate(cycle []int32) []int32 {
	best := 0
	for i := range cycle {
		if cmp.Less(f.g.edges[cycle[i]].from, f.g.edges[cycle[best]].from) {
			best = i
		}
	}
	return slices.Concat(cycle[best:], cycle[:best])
}

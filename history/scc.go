package history

import (
	"math"
)

// view is a graph with some of its edges. A doubled view has two states for each node, 2v and 2v+1:
// the latter is the node when an anti-dependency led to it, and no anti-dependency leaves it. Its
// cycles are those of the graph without two adjacent anti-dependencies.
type view struct {
	*graph
	kinds   edgeKind
	doubled bool
	// knot restricts the view to edges within one knot: it numbers each node's, from 1. Nil is no
	// restriction.
	knot []int32
}

// states is the number of states.
func (v *view) states() int {
	if v.doubled {
		return 2 * v.nodes
	}
	return v.nodes
}

// nodeOf returns the node that a state belongs to.
func (v *view) nodeOf(state int32) int32 {
	if v.doubled {
		return state / 2
	}
	return state
}

// next returns the state to which an edge leads from a state, or false if the view does not have
// the edge.
func (v *view) next(state int32, e *edge) (int32, bool) {
	if e.kind&v.kinds == 0 || v.knot != nil && v.knot[e.from] != v.knot[e.to] {
		return 0, false
	}
	if !v.doubled {
		return e.to, true
	}
	switch {
	case e.kind == edgePass:
		return 2*e.to + state&1, true
	case e.kind != edgeRW:
		return 2 * e.to, true
	case state&1 == 0:
		return 2*e.to + 1, true
	}
	return 0, false
}

// knots returns the strongly connected components of more than one state, by Tarjan's algorithm
// (1972) with a stack of its own: a history is deeper than a goroutine's stack. With a restriction,
// states outside of any knot are left out.
func (v *view) knots() [][]int32 {
	t := tarjan{view: v, index: make([]int32, v.states()), low: make([]int32, v.states())}
	for s := range int32(v.states()) {
		if t.index[s] == 0 && (v.knot == nil || v.knot[v.nodeOf(s)] != 0) {
			t.visit(s)
		}
	}
	return t.found
}

type tarjan struct {
	*view
	count int32
	// index numbers the states in the order of discovery, from 1; done is that of states whose
	// component is known.
	index []int32
	low   []int32
	stack []int32 // states whose component is not known yet
	calls []tarjanCall
	found [][]int32
}

const done = math.MaxInt32

type tarjanCall struct {
	state int32
	edge  int32 // the next to follow
}

func (t *tarjan) enter(s int32) {
	t.count++
	t.index[s], t.low[s] = t.count, t.count
	t.stack = append(t.stack, s)
	from, _ := t.out(t.nodeOf(s))
	t.calls = append(t.calls, tarjanCall{s, from})
}

func (t *tarjan) visit(root int32) {
	t.enter(root)
	for len(t.calls) > 0 {
		call := &t.calls[len(t.calls)-1]
		if _, end := t.out(t.nodeOf(call.state)); call.edge < end {
			e := &t.edges[call.edge]
			call.edge++
			to, ok := t.next(call.state, e)
			switch {
			case !ok || t.index[to] == done:
			case t.index[to] == 0:
				t.enter(to)
			default:
				t.low[call.state] = min(t.low[call.state], t.index[to])
			}
			continue
		}
		s := call.state
		t.calls = t.calls[:len(t.calls)-1]
		if n := len(t.calls); n > 0 {
			parent := t.calls[n-1].state
			t.low[parent] = min(t.low[parent], t.low[s])
		}
		if t.low[s] == t.index[s] {
			t.close(s)
		}
	}
}

// close takes the component of its first state off the stack.
func (t *tarjan) close(s int32) {
	i := len(t.stack) - 1
	for t.stack[i] != s {
		i--
	}
	for _, member := range t.stack[i:] {
		t.index[member] = done
	}
	if len(t.stack)-i > 1 {
		t.found = append(t.found, append([]int32(nil), t.stack[i:]...))
	}
	t.stack = t.stack[:i]
}

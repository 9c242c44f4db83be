package history

import (
	"cmp"
	"slices"
)

// edgeKind says why one transaction comes before another. Kinds are bits, so that a search follows
// some of them.
type edgeKind uint8

const (
	edgeWW      edgeKind = 1 << iota // replaced its version
	edgeWR                           // read its version
	edgeRW                           // replaced the version that it read
	edgeSession                      // the same client's later one
	edgeTime                         // began after it ended
	// edgePass leads from a node that stands for several transactions: the edge to that node said
	// why.
	edgePass
)

const edgeOrders = edgeSession | edgeTime

// edge says that the transaction from comes before to. Nodes from the number of transactions on
// stand for several.
type edge struct {
	from, to int32
	// key, and before and after on it: the version that from wrote or read, and that to read or
	// wrote. Of edges to a node that stands for several, after is none.
	key, before, after int32
	kind               edgeKind
}

// graph is Adya's direct serialization graph, with the orders that need no dependency.
type graph struct {
	txns  int // nodes below are transactions
	nodes int
	edges []edge  // by from
	first []int32 // of each node the index of its first edge; one more at the end
}

// graphBuilder collects a graph's edges.
type graphBuilder struct {
	x     *txnIndex
	nodes int32
	edges []edge
	kinds edgeKind // those that are wanted
}

// add adds an edge, unless it is not wanted or leads from a node to itself.
func (b *graphBuilder) add(e edge) {
	if e.kind&b.kinds != 0 && e.from != e.to {
		b.edges = append(b.edges, e)
	}
}

// node adds a node that stands for several transactions.
func (b *graphBuilder) node() int32 {
	b.nodes++
	return b.nodes - 1
}

// pack sorts the edges by the node that they leave.
func (b *graphBuilder) pack() *graph {
	g := &graph{
		txns:  len(b.x.h.Txns),
		nodes: int(b.nodes),
		edges: make([]edge, len(b.edges)),
		first: make([]int32, b.nodes+1),
	}
	for i := range b.edges {
		g.first[b.edges[i].from+1]++
	}
	for v := range b.nodes {
		g.first[v+1] += g.first[v]
	}
	next := slices.Clone(g.first)
	for _, e := range b.edges {
		g.edges[next[e.from]] = e
		next[e.from]++
	}
	return g
}

// out returns the indices of the edges that leave a node.
func (g *graph) out(v int32) (from, to int32) {
	return g.first[v], g.first[v+1]
}

// addWrites adds the write dependencies: each version's writer before the next one's.
func (b *graphBuilder) addWrites(chains []chain) {
	for k := range chains {
		c := &chains[k]
		for i := 1; i < len(c.writes); i++ {
			before, after := c.writes[i-1], c.writes[i]
			b.add(edge{
				from: b.x.writes[before].txn, to: b.x.writes[after].txn,
				key: int32(k), before: before, after: after, kind: edgeWW,
			})
		}
		if n := len(c.writes); n > 0 {
			b.addTail(c, edge{from: b.x.writes[c.writes[n-1]].txn, key: int32(k), before: c.writes[n-1], kind: edgeWW})
		}
	}
}

// addRead adds what follows from a transaction's read of another one's version, the initial one or
// nobody's place: the writer comes before, and whoever wrote the next version after.
func (b *graphBuilder) addRead(c *chain, reader, k, w, place int32) {
	writer := int32(-1)
	if w >= 0 {
		writer = b.x.writes[w].txn
		if b.x.seen[writer] {
			b.add(edge{from: writer, to: reader, key: k, before: w, after: w, kind: edgeWR})
		}
		if place == noPlace {
			return
		}
	}
	i := 0
	if w >= 0 {
		i = int(c.after[place])
	}
	// Of an intermediate read, the writer itself wrote the next version. That says nothing new.
	for i < len(c.writes) && b.x.writes[c.writes[i]].txn == writer {
		i++
	}
	e := edge{from: reader, key: k, before: w, kind: edgeRW}
	if i == len(c.writes) {
		b.addTail(c, e)
		return
	}
	e.to, e.after = b.x.writes[c.writes[i]].txn, c.writes[i]
	b.add(e)
}

// chain is a key's versions that count, in order: less garbage and aborted ones.
type chain struct {
	writes []int32
	// after gives, by place in the key's order, the index in writes of the next version.
	after []int32
	// tail holds the appends that committed and that nobody saw, the first of each transaction.
	// They come after the longest read, in any order. If they are several, node stands for them.
	tail []int32
	node int32
}

// chains makes the chains of all keys.
func (b *graphBuilder) chains() []chain {
	chains := make([]chain, len(b.x.keys))
	for k := range chains {
		key, c := &b.x.keys[k], &chains[k]
		c.after = make([]int32, len(key.writes))
		for place, w := range key.writes {
			if w >= 0 && b.x.seen[b.x.writes[w].txn] {
				c.writes = append(c.writes, w)
			}
			c.after[place] = int32(len(c.writes))
		}
		if key.list && !key.recorded && !key.broken {
			b.findTail(key, c, int32(k))
		}
	}
	return chains
}

func (b *graphBuilder) findTail(key *keyVersions, c *chain, k int32) {
	last := int32(-1)
	for _, w := range key.all {
		txn := b.x.writes[w].txn
		if b.x.writes[w].place == noPlace && b.x.seen[txn] && txn != last {
			c.tail = append(c.tail, w)
			last = txn
		}
	}
	if len(c.tail) < 2 {
		return
	}
	c.node = b.node()
	for _, w := range c.tail {
		b.add(edge{from: c.node, to: b.x.writes[w].txn, key: k, before: w, after: w, kind: edgePass})
	}
}

// addTail adds an edge to all of a chain's tail. One of the tail has no edge to it: it would lead
// back to it.
func (b *graphBuilder) addTail(c *chain, e edge) {
	switch len(c.tail) {
	case 0:
		return
	case 1:
		e.to, e.after = b.x.writes[c.tail[0]].txn, c.tail[0]
	default:
		// The tail is sorted by transaction, as all writes of a key are.
		_, there := slices.BinarySearchFunc(c.tail, e.from, func(w, txn int32) int {
			return cmp.Compare(b.x.writes[w].txn, txn)
		})
		if there {
			return
		}
		e.to, e.after = c.node, writeInitial
	}
	b.add(e)
}

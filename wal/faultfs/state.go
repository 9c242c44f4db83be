package faultfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// sectorBytes is what a disk writes as a whole.
const sectorBytes = 512

const rootNode = 0

// state is what is on the disk, and what is only in the machine's memory. It changes through apply
// only, so that a trace can be replayed.
type state struct {
	nodes []*node
}

// node is a file or a directory. The first part is on the disk, the second is not.
type node struct {
	isDir  bool
	shared bool // with another state: copied before it is changed

	durable []byte
	names   map[string]int

	view      []byte // what reads see
	dirty     []dirtyWrite
	viewNames map[string]int
	pending   []nameChange
}

type dirtyWrite struct {
	offset int64
	data   []byte
}

// nameChange gives a name to a node, or takes one away, or both: a rename within a directory is
// atomic.
type nameChange struct {
	add    string
	node   int
	remove string
}

func newState() *state { return &state{nodes: []*node{newDir()}} }

func newDir() *node {
	return &node{isDir: true, names: make(map[string]int), viewNames: make(map[string]int)}
}

// clone returns a copy. It costs as much as there are files; what they hold is copied when it is
// changed.
func (s *state) clone() *state {
	for _, n := range s.nodes {
		n.shared = true
	}
	return &state{nodes: slices.Clone(s.nodes)}
}

// own returns a node that may be changed.
func (s *state) own(id int) *node {
	n := s.nodes[id]
	if n.shared {
		n = &node{
			isDir: n.isDir, durable: slices.Clone(n.durable), names: maps.Clone(n.names),
			view: slices.Clone(n.view), dirty: slices.Clone(n.dirty), viewNames: maps.Clone(n.viewNames),
			pending: slices.Clone(n.pending),
		}
		s.nodes[id] = n
	}
	return n
}

func (s *state) apply(c change) {
	switch c.kind {
	case KindCreate, KindMkdir:
		for c.node >= len(s.nodes) {
			s.nodes = append(s.nodes, &node{})
		}
		if c.newIsDir {
			s.nodes[c.node] = newDir()
		}
		s.own(c.dir).rename(nameChange{add: c.name, node: c.node})
	case KindRemove:
		s.own(c.dir).rename(nameChange{remove: c.name})
	case KindRename:
		if c.dir == c.toDir {
			s.own(c.dir).rename(nameChange{add: c.toName, node: c.node, remove: c.name})
			return
		}
		s.own(c.toDir).rename(nameChange{add: c.toName, node: c.node})
		s.own(c.dir).rename(nameChange{remove: c.name})
	case KindWrite:
		n := s.own(c.node)
		n.view = writeAt(n.view, c.offset, c.data)
		n.dirty = append(n.dirty, dirtyWrite{c.offset, c.data})
	case KindSync:
		n := s.own(c.node)
		for _, w := range n.dirty {
			n.durable = writeAt(n.durable, w.offset, w.data)
		}
		n.dirty = nil
	case kindSyncLost:
		s.own(c.node).dirty = nil // clean, as the kernel says: no later sync writes it
	case KindSyncDir:
		n := s.own(c.node)
		for _, p := range n.pending {
			p.apply(n.names)
		}
		n.pending = nil
	case KindRead, KindReadAt, KindOpen:
	}
}

func (n *node) rename(c nameChange) {
	c.apply(n.viewNames)
	n.pending = append(n.pending, c)
}

func (c nameChange) apply(names map[string]int) {
	if c.remove != "" {
		delete(names, c.remove)
	}
	if c.add != "" {
		names[c.add] = c.node
	}
}

func writeAt(content []byte, offset int64, data []byte) []byte {
	if end := int(offset) + len(data); end > len(content) {
		content = append(content, make([]byte, end-len(content))...)
	}
	copy(content[offset:], data)
	return content
}

// crashed returns what a machine finds after its power failed in this state.
func (s *state) crashed(rnd *rand.Rand) *state {
	after := &state{nodes: make([]*node, len(s.nodes))}
	for i, n := range s.nodes {
		after.nodes[i] = n.crashed(rnd)
	}
	return after
}

// fate is what becomes of what was not synced.
type fate int

const (
	allLost fate = iota
	allKept
	mixed
	fates
)

func (n *node) crashed(rnd *rand.Rand) *node {
	fate := fate(rnd.IntN(int(fates)))
	if n.isDir {
		kept := 0
		switch fate {
		case allLost:
		case allKept:
			kept = len(n.pending)
		default:
			kept = rnd.IntN(len(n.pending) + 1)
		}
		names := maps.Clone(n.names)
		for _, c := range n.pending[:kept] {
			c.apply(names)
		}
		return &node{isDir: true, names: names, viewNames: maps.Clone(names)}
	}
	if len(n.dirty) == 0 || fate == allLost {
		return &node{durable: n.durable, view: n.durable, shared: true}
	}
	content := slices.Clone(n.durable)
	for _, w := range n.dirty {
		content = w.survive(content, fate, rnd)
	}
	return &node{durable: content, view: content, shared: true}
}

// survive writes what is left of a write after a crash: all, nothing, or some of its sectors.
func (w dirtyWrite) survive(content []byte, fate fate, rnd *rand.Rand) []byte {
	if fate == mixed {
		switch rnd.IntN(4) {
		case 0:
			return content
		case 1, 2:
			return w.tear(content, rnd)
		}
	}
	return writeAt(content, w.offset, w.data)
}

func (w dirtyWrite) tear(content []byte, rnd *rand.Rand) []byte {
	offset, data := w.offset, w.data
	if rnd.IntN(2) == 0 {
		// The length is on the disk, whatever becomes of the sectors.
		content = writeAt(content, offset+int64(len(data)), nil)
	}
	for len(data) > 0 {
		n := min(len(data), sectorBytes-int(offset%sectorBytes))
		if rnd.IntN(2) == 0 {
			content = writeAt(content, offset, data[:n])
		}
		offset, data = offset+int64(n), data[n:]
	}
	return content
}

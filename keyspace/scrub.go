package keyspace

import (
	"bytes"
	"crypto/sha256"
	"fmt"
)

// Damage is what a [Scrub] has found: something on the disk is not what the state wrote there.
type Damage struct {
	Part   string // of the tree, by the half bytes of the sums of its keys
	Key    []byte // nil if it is the tree itself that is damaged
	Reason string
}

func (d Damage) String() string {
	if d.Key == nil {
		return fmt.Sprintf("keyspace: the part %s of the tree: %s", d.Part, d.Reason)
	}
	return fmt.Sprintf("keyspace: the key %q: %s", d.Key, d.Reason)
}

// A Scrub compares a whole state with its digests, a few keys at a time, while the state goes on:
// first the tree and what its keys have, then whether there are keys that the tree does not have.
//
// What it finds it reports, and has the tree tell the truth about it: then the next checkpoint has
// another digest than those of other replicas have, and a [Fetch] of theirs asks for what differs.
type Scrub struct {
	s     *State
	begun bool
	last  Digest // the tree was looked at up to here, if begun
	keys  bool   // all of the tree was, and now the keys are
	key   []byte // the first that was not looked at
	done  bool
	left  int // how many keys the step still looks at
	found []Damage
}

// Scrub begins to compare the state with its digests.
func (s *State) Scrub() *Scrub { return &Scrub{s: s} }

// Done reports whether all was compared.
func (x *Scrub) Done() bool { return x.done }

// Step compares about so many keys. While a Fetch is under way it does nothing.
func (x *Scrub) Step(keys int) []Damage {
	if x.s.fetching != nil || x.done {
		return nil
	}
	x.left, x.found = keys, nil
	if x.keys {
		x.strays()
	} else {
		x.keys = x.subtree(path{}, x.s.root)
	}
	return x.found
}

// subtree compares what is at a path and was not looked at, and tells whether it got to the end.
func (x *Scrub) subtree(p path, r ref) bool {
	end := p.last()
	if r.keys == 0 || x.begun && bytes.Compare(end[:], x.last[:]) <= 0 {
		return true
	}
	t, err := x.s.load(p)
	if err == nil && t.ref() != r {
		err = fmt.Errorf("keyspace: its sum is %v, not %v", t.ref().sum, r.sum)
	}
	if err != nil {
		x.found = append(x.found, Damage{Part: p.String(), Reason: err.Error()})
		x.s.regrow(p)
		x.begun, x.last = true, end
		return false // the tree is another one
	}
	if !t.node {
		for _, e := range t.bucket {
			x.entry(p, e)
		}
		x.left -= len(t.bucket)
		x.begun, x.last = true, end
		return x.left > 0
	}
	for i, c := range t.children {
		if !x.subtree(p.child(uint8(i)), c) {
			return false
		}
	}
	return true
}

func (x *Scrub) entry(p path, e entry) {
	value, ok := Moment{x.s, x.s.newest()}.Get(e.key)
	switch {
	case !ok:
		x.doubt(p, e.key, "it is not there")
	case sha256.Sum256(value) != e.value:
		x.doubt(p, e.key, "it has another value")
	}
}

// doubt notes what is wrong with a key: the next checkpoint takes it as it is.
func (x *Scrub) doubt(p path, key []byte, why string) {
	x.found = append(x.found, Damage{Part: p.String(), Key: key, Reason: why})
	x.s.changed[string(key)] = true
}

// strays looks for keys that the tree does not have.
func (x *Scrub) strays() {
	for key := range x.s.Committed().Scan(x.key, nil) {
		if x.left--; x.left < 0 {
			x.key = bytes.Clone(key)
			return
		}
		hash := Digest(sha256.Sum256(key))
		p := pathTo(hash, maxDepth)
		t, err := find(x.s.load, x.s.root, p)
		if err != nil {
			x.found = append(x.found, Damage{Part: p.String(), Reason: err.Error()})
		} else if _, ok := t.find(hash); !ok && !x.s.changed[string(key)] {
			x.doubt(p, bytes.Clone(key), "it was never put")
		}
	}
	x.done = true
}

// last is the highest sum that a path has.
func (p path) last() Digest {
	for i := p.depth; i < maxDepth; i++ {
		p.hash[i/2] |= 0xf0 >> (4 * (i % 2))
	}
	return p.hash
}

// regrow makes a part of the tree anew of the keys that are there. It reads them all.
func (s *State) regrow(p path) {
	last := p.last()
	for depth := p.depth; depth < maxDepth; depth++ {
		first, end := s.key(kindTree, pathTo(p.hash, depth).key()), s.key(kindTree, pathTo(last, depth).key())
		for key := range s.disk.Scan(first, append(end, 0)) {
			s.disk.Delete(bytes.Clone(key))
		}
	}
	var all []change
	for key, value := range s.Committed().Scan(nil, nil) {
		if hash := Digest(sha256.Sum256(key)); p.has(hash) {
			all = append(all, change{entry{hash, sha256.Sum256(value), bytes.Clone(key)}, true})
		}
	}
	s.root = s.regrowAt(path{}, s.root, p, byHashes(all))
	s.writeMeta()
}

// regrowAt is regrow of what is at a path on the way to the part.
func (s *State) regrowAt(at path, was ref, part path, all []change) ref {
	if at.depth == part.depth {
		return s.build(at, ref{}, merged(nil, all))
	}
	t, i := s.mustLoad(at), half(part.hash, at.depth)
	t.children[i] = s.regrowAt(at.child(i), t.children[i], part, all)
	return s.putNode(at, was, t)
}

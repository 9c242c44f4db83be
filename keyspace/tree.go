package keyspace

import (
	"slices"
)

// change is what became of a key since the tree was made.
type change struct {
	entry
	there bool // it was not deleted
}

// update brings the tree up to date with changes, in the order of their hashes. It reads and writes
// the subtrees on the way to the changes and no others. A change that the tree has already changes
// nothing.
func (s *State) update(changes []change) {
	s.root = s.updateAt(path{}, s.root, changes)
}

// updateAt is update of the subtree at a path, which is was.
func (s *State) updateAt(p path, was ref, changes []change) ref {
	if len(changes) == 0 {
		return was
	}
	t := &subtree{}
	if was.keys > 0 {
		t = s.mustLoad(p)
	}
	if !t.node {
		return s.build(p, was, merged(t.bucket, changes))
	}
	for i := range t.children {
		n := 0
		for n < len(changes) && half(changes[n].hash, p.depth) == uint8(i) {
			n++
		}
		t.children[i] = s.updateAt(p.child(uint8(i)), t.children[i], changes[:n])
		changes = changes[n:]
	}
	return s.putNode(p, was, t)
}

// putNode stores a node whose children may have changed: as a bucket, if they have few keys by now.
func (s *State) putNode(p path, was ref, t *subtree) ref {
	now := t.ref()
	if now.keys > maxBucket {
		return s.store(p, was, now, t)
	}
	var all []entry
	for i, c := range t.children {
		if c.keys > 0 {
			below := p.child(uint8(i))
			all = append(all, s.mustLoad(below).bucket...)
			s.store(below, c, ref{}, nil)
		}
	}
	return s.build(p, was, all)
}

// build makes the subtree at a path of all its entries.
func (s *State) build(p path, was ref, all []entry) ref {
	if len(all) <= maxBucket {
		t := &subtree{bucket: all}
		return s.store(p, was, t.ref(), t)
	}
	t := &subtree{node: true}
	for i := range t.children {
		n := 0
		for n < len(all) && half(all[n].hash, p.depth) == uint8(i) {
			n++
		}
		t.children[i] = s.build(p.child(uint8(i)), ref{}, all[:n])
		all = all[n:]
	}
	return s.store(p, was, t.ref(), t)
}

// store writes a subtree, or removes it if it has no keys.
func (s *State) store(p path, was, now ref, t *subtree) ref {
	switch {
	case now.keys == 0 && was.keys == 0:
		return ref{}
	case now == was:
		return now
	}
	key := s.key(kindTree, p.key())
	if n := len(s.checkpoints); n > 0 && !s.kept[p] {
		s.kept[p] = true
		old, ok := s.disk.Get(key)
		s.disk.Put(s.numbered(kindOldTree, s.checkpoints[n-1].number, p.key()), oldRecord(old, ok))
	}
	if now.keys == 0 {
		s.disk.Delete(key)
		return ref{}
	}
	s.disk.Put(key, t.record())
	return now
}

// merged returns a bucket's entries after changes.
func merged(bucket []entry, changes []change) []entry {
	out := make([]entry, 0, len(bucket)+len(changes))
	for _, c := range changes {
		for len(bucket) > 0 && byHash(bucket[0], c.entry) < 0 {
			out, bucket = append(out, bucket[0]), bucket[1:]
		}
		if len(bucket) > 0 && bucket[0].hash == c.hash {
			bucket = bucket[1:]
		}
		if c.there {
			out = append(out, c.entry)
		}
	}
	return append(out, bucket...)
}

// find returns the subtree at a path: a bucket above it has what is below the path.
func find(load func(path) (*subtree, error), root ref, p path) (*subtree, error) {
	at := path{}
	for r := root; r.keys > 0; {
		t, err := load(at)
		switch {
		case err != nil:
			return nil, err
		case !t.node:
			return t.below(p), nil
		case at.depth == p.depth:
			return t, nil
		}
		i := half(p.hash, at.depth)
		r, at = t.children[i], at.child(i)
	}
	return &subtree{}, nil
}

// byHashes puts changes in the order in which the tree takes them.
func byHashes(changes []change) []change {
	slices.SortFunc(changes, func(a, b change) int { return byHash(a.entry, b.entry) })
	return changes
}

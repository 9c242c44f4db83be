package keyspace

import (
	"slices"
)

// change is what became of a key since the tree was made.
type change struct {
	entry
	there bool // it was not deleted
}

// update brings the tree up to date with changes, in the order of their hashes, and returns what
// its root has become. It reads and writes the subtrees on the way to the changes and no others. A
// change that the tree has already changes nothing.
func (s *State) update(changes []change) ref {
	u := updating{s: s, kept: map[path]bool{}}
	s.root = u.at(path{}, s.root, changes)
	return s.root
}

// updating is one update of the tree.
type updating struct {
	s    *State
	kept map[path]bool // the subtrees of which the newest checkpoint has its own already
}

// at is update of the subtree at a path, which is was.
func (u *updating) at(p path, was ref, changes []change) ref {
	if len(changes) == 0 {
		return was
	}
	t := &subtree{}
	if was.keys > 0 {
		t = u.s.mustLoad(p)
	}
	if !t.node {
		return u.build(p, was, merged(t.bucket, changes))
	}
	for i := range t.children {
		n := 0
		for n < len(changes) && half(changes[n].hash, p.depth) == uint8(i) {
			n++
		}
		t.children[i] = u.at(p.child(uint8(i)), t.children[i], changes[:n])
		changes = changes[n:]
	}
	now := t.ref()
	if now.keys > maxBucket {
		return u.store(p, was, now, t)
	}
	var all []entry
	for i, c := range t.children {
		if c.keys > 0 {
			below := p.child(uint8(i))
			all = append(all, u.s.mustLoad(below).bucket...)
			u.store(below, c, ref{}, nil)
		}
	}
	return u.build(p, was, all)
}

// build makes the subtree at a path of all its entries.
func (u *updating) build(p path, was ref, all []entry) ref {
	if len(all) <= maxBucket {
		t := &subtree{bucket: all}
		return u.store(p, was, t.ref(), t)
	}
	t := &subtree{node: true}
	for i := range t.children {
		n := 0
		for n < len(all) && half(all[n].hash, p.depth) == uint8(i) {
			n++
		}
		t.children[i] = u.build(p.child(uint8(i)), ref{}, all[:n])
		all = all[n:]
	}
	return u.store(p, was, t.ref(), t)
}

// store writes a subtree, or removes it if it has no keys.
func (u *updating) store(p path, was, now ref, t *subtree) ref {
	switch {
	case now.keys == 0 && was.keys == 0:
		return ref{}
	case now == was:
		return now
	}
	key := u.s.key(kindTree, p.key())
	if n := len(u.s.checkpoints); n > 0 && !u.kept[p] {
		u.kept[p] = true
		old, ok := u.s.disk.Get(key)
		u.s.disk.Put(u.s.numbered(kindOldTree, u.s.checkpoints[n-1].number, p.key()), oldRecord(old, ok))
	}
	if now.keys == 0 {
		u.s.disk.Delete(key)
		return ref{}
	}
	u.s.disk.Put(key, t.record())
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

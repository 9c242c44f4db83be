package keyspace

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
)

// Checkpoint fixes the committed state as the one of a number, higher than those before, and
// returns its digest. It can be read as a [Moment] until it is released. It costs what changed
// since the checkpoint before. It panics while a Fetch is under way.
func (s *State) Checkpoint(number uint64) Digest {
	s.mustBeWhole("make a checkpoint")
	if number <= s.newest().number {
		panic(fmt.Sprintf("keyspace: checkpoint %d after %d", number, s.newest().number))
	}
	s.settle()
	s.checkpoints = append(s.checkpoints, checkpoint{number, s.root})
	s.writeMeta()
	return s.newest().digest()
}

// settle brings the tree up to date. The keys that were changed are forgotten: a new checkpoint, or
// none, has to follow.
func (s *State) settle() {
	var changes []change
	for _, key := range slices.Sorted(maps.Keys(s.changed)) {
		c := change{entry: entry{hash: sha256.Sum256([]byte(key)), key: []byte(key)}}
		value, ok := s.disk.Get(s.key(kindValue, c.key))
		if c.there = ok; ok {
			c.value = sha256.Sum256(value)
		}
		changes = append(changes, c)
	}
	s.update(byHashes(changes))
	s.changed, s.kept = map[string]bool{}, map[path]bool{}
}

func (c checkpoint) digest() Digest {
	if c.root.keys == 0 {
		return Empty()
	}
	return c.root.sum
}

// Release forgets the checkpoints with lower numbers than this, but not the newest one. It costs
// what changed since the oldest one that is forgotten.
func (s *State) Release(before uint64) {
	for len(s.checkpoints) > 1 && s.checkpoints[0].number < before {
		s.forget(s.checkpoints[0].number)
		s.checkpoints = s.checkpoints[1:]
		s.writeMeta()
	}
}

// forget removes what is kept for a checkpoint.
func (s *State) forget(number uint64) {
	for _, kind := range []byte{kindOld, kindOldTree} {
		prefix := s.numbered(kind, number, nil)
		for key := range s.disk.Scan(prefix, after(string(prefix))) {
			s.disk.Delete(bytes.Clone(key))
		}
	}
}

// Checkpoints returns the numbers of the checkpoints that can be read, the oldest first.
func (s *State) Checkpoints() []uint64 {
	var out []uint64
	for _, c := range s.checkpoints {
		out = append(out, c.number)
	}
	return out
}

// A Moment is the state as it was at a checkpoint. When that was released it is not used any more.
type Moment struct {
	s  *State
	of checkpoint
}

// At returns the state of a checkpoint, false if there is none of that number.
func (s *State) At(number uint64) (Moment, bool) {
	for _, c := range s.checkpoints {
		if c.number == number {
			return Moment{s, c}, true
		}
	}
	return Moment{}, false
}

// Digest returns the state's digest.
func (m Moment) Digest() Digest { return m.of.digest() }

// Keys returns how many keys the state has.
func (m Moment) Keys() uint64 { return m.of.root.keys }

// Get returns the value of a key as it was.
func (m Moment) Get(key []byte) ([]byte, bool) { return m.read(kindOld, kindValue, key) }

// read returns what was at a place: what the first checkpoint from then on has kept, or else what
// is there now.
func (m Moment) read(old, now byte, key []byte) ([]byte, bool) {
	for _, c := range m.s.checkpoints {
		if c.number < m.of.number {
			continue
		}
		if b, ok := m.s.disk.Get(m.s.numbered(old, c.number, key)); ok {
			return readOld(b)
		}
	}
	return m.s.disk.Get(m.s.key(now, key))
}

// load returns the subtree that was at a path. There was one.
func (m Moment) load(p path) (*subtree, error) {
	b, ok := m.read(kindOldTree, kindTree, p.key())
	if !ok {
		return nil, fmt.Errorf("keyspace: the disk has nothing at %v of the tree", p)
	}
	return decodeRecord(p, b)
}

// load returns the subtree that is at a path now. There is one.
func (s *State) load(p path) (*subtree, error) {
	b, ok := s.disk.Get(s.key(kindTree, p.key()))
	if !ok {
		return nil, fmt.Errorf("keyspace: the disk has nothing at %v of the tree", p)
	}
	return decodeRecord(p, b)
}

// mustLoad is load where nothing can be done about a disk that has something else.
func (s *State) mustLoad(p path) *subtree {
	t, err := s.load(p)
	if err != nil {
		panic(err)
	}
	return t
}

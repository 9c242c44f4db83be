package keyspace

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/foresay/foresay/internal/wirefmt"
)

// State is a key space on a disk: what is committed, its checkpoints, and layers above it. It is
// used by the node whose disk it is, in its calls, between [State.Enter] and [State.Leave]. Make
// one with [Open].
type State struct {
	disk   Disk // of the present call of the node, nil between two
	prefix string
	above  overlay
	root   ref // of the tree. Invariant: of what is committed, but for the keys in changed
	// checkpoints, the oldest first. There is one, unless a Fetch is under way.
	checkpoints []checkpoint
	fetching    *checkpoint // what is being fetched
	fetch       *Fetch      // nil after a crash, until another one is begun
	// changed has the keys that were changed since the newest checkpoint. What they were then is
	// kept on disk.
	changed map[string]bool
	// kept has the subtrees that were changed since then, likewise: a checkpoint that is made is
	// the next one, so there are few.
	kept map[path]bool
}

// checkpoint is a moment of the committed state that can still be read.
type checkpoint struct {
	number uint64
	root   ref
}

// A State has its keys on disk below its prefix, and then one of these.
const (
	kindMeta    = 'm' // which checkpoints there are
	kindOld     = 'o' // for a checkpoint and a key: what the key was then, if it was changed since
	kindTree    = 't' // for a path: the subtree there
	kindOldTree = 'u' // for a checkpoint and a path: what was there then
	kindValue   = 'v' // for a key: its value
)

// Open returns the state that is on a disk below a prefix, in a call that has been entered. A disk
// that has none is given an empty one, whose first checkpoint has the number 0. It reads the keys
// that were changed since the newest checkpoint.
func Open(disk Disk, prefix string) (*State, error) {
	s := &State{disk: disk, prefix: prefix, changed: map[string]bool{}, kept: map[path]bool{}}
	b, ok := disk.Get(s.key(kindMeta, nil))
	if !ok {
		s.checkpoints = []checkpoint{{}}
		s.writeMeta()
		return s, nil
	}
	m, err := metaLayout.Decode(b)
	if err != nil {
		return nil, err
	}
	s.checkpoints, s.root = m.checkpoints, m.root
	if m.fetching {
		s.fetching = &m.target
		return s, nil
	}
	if len(s.checkpoints) == 0 {
		return nil, fmt.Errorf("keyspace: a disk with no checkpoint")
	}
	for key := range scanWithin(disk, string(s.numbered(kindOld, s.newest().number, nil)), nil, nil) {
		s.changed[string(key)] = true
	}
	for key := range scanWithin(disk, string(s.numbered(kindOldTree, s.newest().number, nil)), nil, nil) {
		p, err := Want(key).path()
		if err != nil {
			return nil, err
		}
		s.kept[p] = true
	}
	return s, nil
}

// Enter says that a call of the node begins, which has that disk.
func (s *State) Enter(disk Disk) { s.disk = disk }

// Leave says that the call ends. The state keeps nothing of its disk.
func (s *State) Leave() { s.disk = nil }

// meta is what a state says of itself on disk.
type meta struct {
	checkpoints []checkpoint
	root        ref
	fetching    bool
	target      checkpoint
}

const metaVersion = 1

var metaLayout = wirefmt.NewLayout("keyspace: state", func(c *wirefmt.Coder, m *meta) {
	wirefmt.Version(c, metaVersion)
	wirefmt.List(c, &m.checkpoints, 2+sha256.Size, checkpointFields)
	refFields(c, &m.root)
	if wirefmt.Bool(c, &m.fetching); m.fetching {
		checkpointFields(c, &m.target)
	}
})

func checkpointFields(c *wirefmt.Coder, p *checkpoint) {
	wirefmt.Uint(c, &p.number)
	refFields(c, &p.root)
}

func refFields(c *wirefmt.Coder, r *ref) {
	wirefmt.Uint(c, &r.keys)
	digestField(c, &r.sum)
}

func digestField(c *wirefmt.Coder, d *Digest) {
	b := d[:]
	if wirefmt.View(c, &b); c.Err() != nil || !c.Reading() {
		return
	}
	if len(b) != len(d) {
		c.Failf("a digest of %d bytes", len(b))
		return
	}
	*d = Digest(b)
}

func (s *State) writeMeta() {
	m := meta{checkpoints: s.checkpoints, root: s.root}
	if s.fetching != nil {
		m.fetching, m.target = true, *s.fetching
	}
	s.disk.Put(s.key(kindMeta, nil), metaLayout.Encode(m))
}

// key returns where something is on disk.
func (s *State) key(kind byte, key []byte) []byte {
	b := append(make([]byte, 0, len(s.prefix)+1+len(key)), s.prefix...)
	return append(append(b, kind), key...)
}

// numbered returns where something of a checkpoint is on disk.
func (s *State) numbered(kind byte, number uint64, key []byte) []byte {
	b := append(make([]byte, 0, len(s.prefix)+9+len(key)), s.prefix...)
	return append(binary.BigEndian.AppendUint64(append(b, kind), number), key...)
}

// oldRecord is what something was, which may not have been there.
func oldRecord(old []byte, ok bool) []byte {
	if !ok {
		return []byte{}
	}
	return append(append(make([]byte, 0, 1+len(old)), 1), old...)
}

func readOld(b []byte) ([]byte, bool) {
	if len(b) == 0 {
		return nil, false
	}
	return b[1:], true
}

func (s *State) newest() checkpoint { return s.checkpoints[len(s.checkpoints)-1] }

// Committed returns the committed base, without the layers above it.
func (s *State) Committed() Reader { return committed{s} }

// CommittedOn returns the committed base of the state that is on a disk below a prefix. It is for
// those who look at the disk of a node from outside, and changes nothing.
func CommittedOn(disk Reader, prefix string) Reader {
	return committed{&State{disk: lookedAt{disk}, prefix: prefix}}
}

type lookedAt struct{ Reader }

func (lookedAt) Put(_, _ []byte) { panic("keyspace: a disk is written from outside") }
func (lookedAt) Delete([]byte)   { panic("keyspace: a disk is written from outside") }

type committed struct{ s *State }

func (c committed) Get(key []byte) ([]byte, bool) { return c.s.disk.Get(c.s.key(kindValue, key)) }

func (c committed) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return scanWithin(c.s.disk, string(c.s.key(kindValue, nil)), lo, hi)
}

// Push makes a layer above all others. It panics while a Fetch is under way.
func (s *State) Push() *Layer {
	s.mustBeWhole("push a layer")
	return s.above.push(committed{s})
}

// Layers returns how many layers there are.
func (s *State) Layers() int { return len(s.above.layers) }

// Merge commits the lowest layer, which is gone then. There is one.
func (s *State) Merge() { s.above.merge(s.commit) }

// Drop undoes a layer and all above it, which are gone then.
func (s *State) Drop(l *Layer) { s.above.drop(l) }

// commit changes a key of the base.
func (s *State) commit(key string, v version) {
	at := s.key(kindValue, []byte(key))
	if !s.changed[key] {
		old, ok := s.disk.Get(at)
		if !ok && v.deleted {
			return
		}
		s.changed[key] = true
		s.disk.Put(s.numbered(kindOld, s.newest().number, []byte(key)), oldRecord(old, ok))
	}
	if v.deleted {
		s.disk.Delete(at)
	} else {
		s.disk.Put(at, v.value)
	}
}

// mustBeWhole panics while the base is neither what it was nor what it is to become.
func (s *State) mustBeWhole(what string) {
	if s.fetching != nil {
		panic("keyspace: " + what + " while another state is fetched")
	}
}

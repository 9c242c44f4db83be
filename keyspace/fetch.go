package keyspace

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
)

// ErrUnasked is what a Fetch says of a page that it did not ask for, or has already.
var ErrUnasked = errors.New("keyspace: a page that nobody has asked for")

// maxPrunes is how many subtrees that the other state does not have one call of Wants removes.
const maxPrunes = 64

// A Fetch makes a state what others say that it is at a checkpoint: it asks for what differs, from
// the root of the tree downwards, and takes nothing that does not belong to the digest that it was
// given. What it has taken stays if it is given up: the next one goes on from there.
//
// While it is under way the state is neither the old nor the new one: it has no checkpoints, and
// nothing is to be read of it.
type Fetch struct {
	s      *State
	target checkpoint
	todo   []task // the last first
	asked  map[Want]task
	done   bool
}

// task is a part of the tree that may differ.
type task struct {
	at  path
	sum Digest
	// prune says that the other state has no keys there but these few.
	prune bool
	keep  []Digest
}

// Fetch begins to fetch the state of a checkpoint, whose digest is known to be right. What the
// state was is given up: there are no layers any more, and no checkpoints. A Fetch that is under
// way ends.
func (s *State) Fetch(number uint64, root Digest) *Fetch {
	if len(s.above.layers) > 0 {
		s.Drop(s.above.layers[0])
	}
	old := s.checkpoints
	s.checkpoints = nil // so that nothing more is kept for them
	s.settle()
	for _, c := range old {
		s.forget(c.number)
	}
	s.fetching = &checkpoint{number: number, root: ref{sum: root}}
	s.writeMeta()
	if s.fetch != nil {
		s.fetch.todo, s.fetch.asked = nil, nil
	}
	f := &Fetch{s: s, target: *s.fetching, asked: map[Want]task{}}
	s.fetch = f
	if s.root.sum == root || s.root.keys == 0 && root == Empty() {
		f.finish()
		return f
	}
	f.todo = []task{{sum: root}}
	return f
}

// Fetching returns the checkpoint that is being fetched, also by a Fetch from before a crash. That
// is to be begun anew, or one of a later checkpoint.
func (s *State) Fetching() (number uint64, root Digest, ok bool) {
	if s.fetching == nil {
		return 0, Digest{}, false
	}
	return s.fetching.number, s.fetching.root.sum, true
}

// Done reports whether the state is that of the checkpoint, which has been made then.
func (f *Fetch) Done() bool { return f.done }

// Wants returns what is to be asked for next, at most so much. It is not returned again, unless
// [Fetch.Again] says so. The fewer are under way, the less memory it takes.
func (f *Fetch) Wants(most int) []Want {
	var out []Want
	for prunes := 0; len(f.todo) > 0 && len(out) < most && prunes < maxPrunes; {
		t := f.todo[len(f.todo)-1]
		f.todo = f.todo[:len(f.todo)-1]
		if t.prune {
			prunes++
			f.pruneAt(t)
			continue
		}
		w := wantOf(t.at)
		f.asked[w] = t
		out = append(out, w)
	}
	f.endIfDone()
	return out
}

// Asked returns how many wants are not answered.
func (f *Fetch) Asked() int { return len(f.asked) }

// Again says that a want will not be answered by whom it was sent to: Wants returns it once more.
func (f *Fetch) Again(w Want) {
	if t, ok := f.asked[w]; ok {
		delete(f.asked, w)
		f.todo = append(f.todo, t)
	}
}

// Take takes the page that answers a want, and puts what it brings into the state. It keeps no part
// of the page. After an error nothing was changed, and the want is still unanswered: who sent the
// page does not have the state of the digest, or lies.
func (f *Fetch) Take(w Want, page []byte) error {
	want, ok := f.asked[w]
	switch {
	case !ok:
		return ErrUnasked
	case len(page) == 0:
		return errors.New("keyspace: an empty page")
	}
	var err error
	switch tag := page[0]; {
	case want.at.depth == maxDepth && tag == tagEntry:
		err = f.takeEntry(want, page[1:])
	case want.at.depth < maxDepth && tag == tagNode:
		err = f.takeNode(want, page)
	case want.at.depth < maxDepth && tag == tagBucket:
		err = f.takeBucket(want, page[1:])
	default:
		err = fmt.Errorf("keyspace: a page of the kind %d for %v", tag, w)
	}
	if err == nil {
		delete(f.asked, w)
		f.endIfDone()
	}
	return err
}

func (f *Fetch) takeEntry(want task, b []byte) error {
	it, rest, err := readEntry(b)
	switch {
	case err != nil:
		return err
	case len(rest) > 0:
		return fmt.Errorf("keyspace: %d bytes behind a key", len(rest))
	case it.hash != want.at.hash:
		return fmt.Errorf("keyspace: the key %q was not asked for", it.key)
	case it.entry.value != want.sum:
		return fmt.Errorf("keyspace: another value of the key %q than that of the digest", it.key)
	}
	f.install([]item{it}, nil)
	return nil
}

func (f *Fetch) takeNode(want task, page []byte) error {
	if len(page) != nodeBytes || sha256.Sum256(page) != want.sum {
		return fmt.Errorf("keyspace: a node %v that is not the one of the digest", want.at)
	}
	theirs, err := decodeNode(page)
	if err != nil {
		return err
	}
	ours := f.own(want.at)
	for i := fanOut - 1; i >= 0; i-- { // so that the first one is the next
		c, at := theirs.children[i], want.at.child(uint8(i))
		switch r := ours.child(at); {
		case c.keys == 0 && r.keys > 0:
			f.todo = append(f.todo, task{at: at, prune: true})
		case c.keys > 0 && r.sum != c.sum:
			f.todo = append(f.todo, task{at: at, sum: c.sum})
		}
	}
	return nil
}

func (f *Fetch) takeBucket(want task, b []byte) error {
	items, err := readBucket(want.at, want.sum, b)
	if err != nil {
		return err
	}
	ours, prune := f.own(want.at), task{at: want.at, prune: true}
	var full []item
	for _, it := range items {
		prune.keep = append(prune.keep, it.hash)
		there := ours
		if ours.node {
			there = f.own(pathTo(it.hash, maxDepth))
		}
		if e, ok := there.find(it.hash); ok && e.value == it.entry.value {
			continue
		}
		if it.full {
			full = append(full, it)
		} else {
			f.todo = append(f.todo, task{at: pathTo(it.hash, maxDepth), sum: it.entry.value})
		}
	}
	if ours.node {
		f.todo = append(f.todo, prune)
		f.install(full, nil)
		return nil
	}
	f.install(full, f.strays(prune))
	return nil
}

// own returns what the state has itself at a path.
func (f *Fetch) own(p path) *subtree {
	t, err := find(f.s.load, f.s.root, p)
	if err != nil {
		panic(err)
	}
	return t
}

// pruneAt removes the keys of a subtree that the other state does not have, or has its children
// done first if that is a node.
func (f *Fetch) pruneAt(t task) {
	ours := f.own(t.at)
	if !ours.node {
		f.install(nil, f.strays(t))
		return
	}
	for i, c := range ours.children {
		if c.keys > 0 {
			f.todo = append(f.todo, task{at: t.at.child(uint8(i)), prune: true, keep: t.keep})
		}
	}
}

// strays returns the keys of a bucket that the other state does not have.
func (f *Fetch) strays(t task) []entry {
	var out []entry
	for _, e := range f.own(t.at).bucket {
		if !slices.Contains(t.keep, e.hash) {
			out = append(out, e)
		}
	}
	return out
}

// install writes keys and removes others, and brings the tree up to date.
func (f *Fetch) install(put []item, remove []entry) {
	var changes []change
	for _, it := range put {
		f.s.disk.Put(f.s.key(kindValue, it.key), it.value)
		changes = append(changes, change{it.entry, true})
	}
	for _, e := range remove {
		f.s.disk.Delete(f.s.key(kindValue, e.key))
		changes = append(changes, change{e, false})
	}
	if len(changes) > 0 {
		f.s.update(byHashes(changes))
		f.s.writeMeta()
	}
}

func (f *Fetch) endIfDone() {
	if f.s.fetch == f && len(f.todo) == 0 && len(f.asked) == 0 {
		f.finish()
	}
}

// finish makes the checkpoint.
func (f *Fetch) finish() {
	c := checkpoint{f.target.number, f.s.root}
	if c.digest() != f.target.root.sum {
		panic(fmt.Sprintf("keyspace: all of checkpoint %d was fetched, with the digest %v instead of %v", c.number,
			c.digest(), f.target.root.sum))
	}
	f.done = true
	f.s.checkpoints, f.s.fetching, f.s.fetch = []checkpoint{c}, nil, nil
	f.s.writeMeta()
}

package kv

import (
	"fmt"
	"io"
	"slices"

	"github.com/tidwall/btree"

	"github.com/foresay/foresay/internal/wirefmt"
)

// Snapshot writes the store, in the order of its keys.
func (s *Store) Snapshot(to io.Writer) error {
	if _, err := io.Copy(to, s.Freeze()); err != nil {
		return fmt.Errorf("kv: snapshot: %w", err)
	}
	return nil
}

// Freeze returns what Snapshot would write now. It takes as long as there are leases and changes to
// watch, however many keys there are: the tree of keys is shared, and nodes of it are copied when
// they are written.
func (s *Store) Freeze() io.Reader {
	f := s.freeze(s.memory.changes.items)
	snapshotHeadFields(f.c, &snapshotHead{snapshotVersion, s.last, uint64(f.items.Len())})
	f.next = f.allKeys
	return f
}

func (s *Store) freeze(newest []Item) *frozen {
	f := &frozen{
		items: s.memory.items.Copy(), leases: s.memory.listLeases(), changes: slices.Clone(newest), forgotten: s.forgotten,
		loading: s.loading, quota: s.quota,
	}
	f.c = f.w.Coder()
	return f
}

// since is what has changed since a moment.
type since struct {
	version uint64          // the store's newest one in that moment
	keys    []string        // that were written or removed, in the order in which they first were
	there   map[string]bool // in keys
}

func (s *since) note(key string) {
	if s != nil && !s.there[key] {
		s.there[key] = true
		s.keys = append(s.keys, key)
	}
}

// Mark begins to note what changes. It is part of smr.Differ, as Changes and Patch are.
func (s *Store) Mark() { s.memory.since = &since{version: s.last, there: map[string]bool{}} }

// Changes returns what has changed since the last Mark.
func (s *Store) Changes() io.Reader {
	f := s.freeze(s.memory.changes.after(s.memory.since.version))
	f.keys = slices.Clip(s.memory.since.keys)
	snapshotHeadFields(f.c, &snapshotHead{patchVersion, s.last, uint64(len(f.keys))})
	f.next = f.changedKeys
	return f
}

// frozen is a moment of a store as bytes, which are made as they are read.
type frozen struct {
	items *btree.Map[string, item]
	next  func(size int) (whole bool) // adds about so many bytes of what comes next; nil once all is in w, or was read
	keys  []string                    // that are wanted, if not all
	// the newest key that is in w, if all are wanted. Keys may be empty: begun says whether there
	// is one.
	after string
	begun bool

	leases    []Lease
	changes   []Item
	forgotten uint64
	loading   bool
	quota     Quota

	w    wirefmt.Writer //tidy:ok a snapshot is written and read a part at a time
	c    *wirefmt.Coder // of w
	read int            // of w
}

func (f *frozen) Read(p []byte) (int, error) {
	if f.read == len(f.w.Buf) {
		f.w.Buf, f.read = f.w.Buf[:0], 0
	}
	if len(f.w.Buf) == 0 || f.next != nil && len(f.w.Buf)-f.read < len(p) {
		f.w.Buf, f.read = append(f.w.Buf[:0], f.w.Buf[f.read:]...), 0 // what was read is not kept
		f.fill(len(p))
	}
	n := copy(p, f.w.Buf[f.read:])
	f.read += n
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// fill adds about so many bytes.
func (f *frozen) fill(size int) {
	for f.next != nil && len(f.w.Buf) < size {
		if f.next(size) && f.items != nil {
			f.items = nil
			f.middle()
			f.next = f.allChanges
		}
	}
}

func (f *frozen) allKeys(size int) (whole bool) {
	whole = true
	f.items.Ascend(f.after, func(key string, i item) bool {
		if f.begun && key == f.after {
			return true
		}
		if len(f.w.Buf)-f.read >= size {
			whole = false
			return false
		}
		storedFields(f.c, &stored{key, i})
		f.after, f.begun = key, true
		return true
	})
	return whole
}

func (f *frozen) changedKeys(size int) (whole bool) {
	for n, key := range f.keys {
		if len(f.w.Buf)-f.read >= size {
			f.keys = f.keys[n:]
			return false
		}
		i, there := f.items.Get(key)
		changedFields(f.c, &changed{stored{key, i}, there})
	}
	return true
}

// middle adds what comes between the keys and the changes.
func (f *frozen) middle() {
	wirefmt.List(f.c, &f.leases, leaseBytes, leaseFields)
	changesHeadFields(f.c, &changesHead{f.loading, f.forgotten, uint64(len(f.changes))})
}

// allChanges adds what was changed last, of which there are megabytes, and what comes behind it.
func (f *frozen) allChanges(size int) (whole bool) {
	for n, i := range f.changes {
		if len(f.w.Buf)-f.read >= size {
			f.changes = f.changes[n:]
			return false
		}
		itemFields(f.c, &i)
	}
	quotaFields(f.c, &f.quota)
	f.changes, f.next = nil, nil
	return true
}

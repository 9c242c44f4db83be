package kv

import (
	"fmt"
	"io"
	"slices"

	"github.com/tidwall/btree"

	"github.com/foresay/foresay/internal/wirefmt"
)

// The versions of snapshots.
const (
	snapshotWithoutQuota = 2
	snapshotVersion      = 3
)

// Snapshot writes the store, in the order of its keys.
func (s *Store) Snapshot(to io.Writer) error {
	if _, err := io.Copy(to, s.Freeze()); err != nil {
		return fmt.Errorf("kv: snapshot: %w", err)
	}
	return nil
}

// Freeze returns what Snapshot would write now. It takes as long as there are leases and changes to watch, however many keys there are: the tree
// of keys is shared, and nodes of it are copied when they are written.
func (s *Store) Freeze() io.Reader {
	f := &frozen{items: s.items.Copy(), changes: slices.Clone(s.changes.items), forgotten: s.changes.forgotten, loading: s.loading, quota: s.quota}
	f.leases = s.listLeases().Leases
	f.w.Buf = append(f.w.Buf, snapshotVersion)
	f.w.Uint(s.last)
	f.w.List(f.items.Len())
	return f
}

// frozen is a moment of a store as bytes, which are made as they are read.
type frozen struct {
	items *btree.Map[string, item] // nil once all of it is in w, or was read
	after string                   // the newest key that is. Keys may be empty: first tells whether there is one.
	begun bool

	leases    []Lease
	changes   []Item
	forgotten uint64
	loading   bool
	quota     Quota

	w    wirefmt.Writer
	read int // of w
}

func (f *frozen) Read(p []byte) (int, error) {
	if f.read == len(f.w.Buf) {
		f.w.Buf, f.read = f.w.Buf[:0], 0
	}
	if len(f.w.Buf) == 0 || f.items != nil && len(f.w.Buf)-f.read < len(p) {
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
	if f.items == nil {
		return
	}
	whole := true
	f.items.Ascend(f.after, func(key string, i item) bool {
		if f.begun && key == f.after {
			return true
		}
		if len(f.w.Buf)-f.read >= size {
			whole = false
			return false
		}
		f.w.String(key)
		f.w.Bytes(i.value)
		f.w.Uint(i.version)
		f.w.Uint(uint64(i.lease))
		f.after, f.begun = key, true
		return true
	})
	if whole {
		f.items = nil
		f.end()
	}
}

// end adds what comes behind the keys.
func (f *frozen) end() {
	f.w.List(len(f.leases))
	for _, l := range f.leases {
		l.write(&f.w)
	}
	f.w.Bool(f.loading)
	f.w.Uint(f.forgotten)
	f.w.List(len(f.changes))
	for _, i := range f.changes {
		i.write(&f.w)
	}
	f.w.Uint(f.quota.Bytes)
	f.w.Uint(f.quota.Keys)
}

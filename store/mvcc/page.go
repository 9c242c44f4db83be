package mvcc

import (
	"fmt"
	"slices"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A Cursor says where a page begins: nil is the beginning of all. It is good for the store that
// gave it, and for others with the same keys.
type Cursor []byte

// An Item is a version of a key.
type Item struct {
	Key   store.Key
	Value store.Value
}

// A Page is a part of a store, in the order of the keys; of one key's versions the newest one comes
// first.
type Page struct {
	Horizon clock.Stamp // of the store when the page was read
	Items   []Item
	Next    Cursor // where the next page begins; nil: there is none
}

// Snapshot returns the page from a cursor on of what the snapshot of a timestamp has: no deletions.
// All pages of one timestamp are a consistent picture, however long it takes to read them, if the
// timestamp is not above the ceiling and all writes at or below it have been carried out. It looks
// at about maxBytes of keys and values, so that a page may be empty and not the last one. The error
// is a *HorizonError, also if the horizon has passed the timestamp since the first page.
func (s Store) Snapshot(keys protocol.Keys, snapshot clock.Stamp, from Cursor, maxBytes int) (Page, error) {
	if h := s.Horizon(keys); snapshot < h {
		return Page{}, &HorizonError{snapshot, h}
	}
	var done []byte // the beginning of the versions of the key that the page has already
	return s.page(keys, from, maxBytes, func(begin []byte, v store.Value) (take bool, behind []byte) {
		switch {
		case slices.Equal(done, begin):
			return false, end(begin)
		case stampOf(v.Version) > snapshot || snapshot < 0:
			return false, nil
		}
		done = begin
		return v.Present, end(begin)
	}), nil
}

// Copy returns the page from a cursor on of all versions that are there, deletions too, for another
// node to install. It looks at about maxBytes of keys and values.
func (s Store) Copy(keys protocol.Keys, from Cursor, maxBytes int) Page {
	return s.page(keys, from, maxBytes, func([]byte, store.Value) (bool, []byte) { return true, nil })
}

// page goes through versions. For each, choose says whether the page has it, and where the next
// page may begin if this is the last one that is looked at; nil: just behind it.
func (s Store) page(
	keys protocol.Keys, from Cursor, maxBytes int, choose func(begin []byte, v store.Value) (bool, []byte),
) Page {
	p := Page{Horizon: s.Horizon(keys)}
	lo := append(s.key(versionPart, len(from)), from...)
	hi := s.key(versionPart+1, 0)
	seen := 0
	var next []byte
	for raw, b := range keys.Scan(lo, hi) {
		if seen > 0 && seen+len(raw)+len(b) > maxBytes {
			p.Next = Cursor(slices.Clone(next[len(s.prefix)+1:]))
			break
		}
		seen += len(raw) + len(b)
		key, v := s.value(raw, b)
		take, behind := choose(slices.Clone(raw[:len(raw)-versionBytes]), v)
		if take {
			p.Items = append(p.Items, Item{key, v})
		}
		if next = behind; next == nil {
			next = append(slices.Clone(raw), 0)
		}
	}
	return p
}

// Install writes what a page of another store's Copy has, and raises the horizon to that of the
// page. The store may have versions of its own and go on writing meanwhile, but it does not collect
// and serves no snapshots until it has all pages: what it deletes itself may come again with a page
// from before.
func (s Store) Install(w Writer, p Page) {
	for _, i := range slices.Backward(p.Items) { // the oldest first: each is the newest when it comes
		s.put(w, i.Key, i.Value)
	}
	s.RaiseHorizon(w, p.Horizon)
}

// String names a version, for people.
func (i Item) String() string {
	if !i.Value.Present {
		return fmt.Sprintf("%q is deleted at %v", i.Key, i.Value.Version)
	}
	return fmt.Sprintf("%q is %q at %v", i.Key, i.Value.Bytes, i.Value.Version)
}

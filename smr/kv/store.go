package kv

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
)

// Bounds of one scan's result.
const (
	maxScanItems = 10_000
	maxScanBytes = 1 << 20
)

// Store is a key-value store, an smr.StateMachine. Make one with New.
type Store struct {
	items map[string]item
	last  uint64 // the newest version. Invariant: no item has a higher one.
	// keys are in order, but for those in fresh, and may hold some that are not there any more; scans put that right.
	keys  []string
	fresh []string
}

type item struct {
	value   []byte
	version uint64
}

// New returns an empty store.
func New() *Store { return &Store{items: map[string]item{}} }

// Apply executes a command, or a query.
func (s *Store) Apply(command []byte) []byte { return s.run(command, true) }

// Read answers a query. A command that would change something is Malformed here.
func (s *Store) Read(query []byte) []byte { return s.run(query, false) }

func (s *Store) run(b []byte, write bool) []byte {
	q, err := decodeRequest(b)
	if err != nil {
		return Result{Status: Malformed, Message: err.Error()}.encode()
	}
	if !write && q.op < opGet {
		return Result{Status: Malformed, Message: "kv: a query that would change the store"}.encode()
	}
	switch q.op {
	case opPut:
		return s.put(q).encode()
	case opDelete:
		return s.delete(q).encode()
	case opCompareAndSet:
		return s.compareAndSet(q).encode()
	case opGet:
		return s.get(q).encode()
	}
	return s.scan(q).encode()
}

func (s *Store) put(q request) Result {
	key := string(q.key)
	if _, ok := s.items[key]; !ok {
		s.fresh = append(s.fresh, key)
	}
	s.last++
	s.items[key] = item{q.value, s.last}
	return Result{Status: OK, Version: s.last}
}

func (s *Store) delete(q request) Result {
	if _, ok := s.items[string(q.key)]; !ok {
		return Result{Status: NotFound}
	}
	delete(s.items, string(q.key))
	s.last++
	return Result{Status: OK, Version: s.last}
}

func (s *Store) compareAndSet(q request) Result {
	if there := s.items[string(q.key)]; there.version != q.version {
		return Result{Status: Conflict, Version: there.version, Value: there.value}
	}
	return s.put(q)
}

func (s *Store) get(q request) Result {
	there, ok := s.items[string(q.key)]
	if !ok {
		return Result{Status: NotFound}
	}
	return Result{Status: OK, Version: there.version, Value: there.value}
}

func (s *Store) scan(q request) Result {
	s.sort()
	limit, size := min(q.limit, maxScanItems), 0
	if q.limit == 0 {
		limit = maxScanItems
	}
	out := Result{Status: OK}
	from, _ := slices.BinarySearch(s.keys, string(q.key))
	for _, key := range s.keys[from:] {
		there, ok := s.items[key]
		switch {
		case len(q.end) > 0 && key >= string(q.end):
			return out
		case !ok:
			continue
		case uint64(len(out.Items)) >= limit, size > 0 && size+len(key)+len(there.value) > maxScanBytes:
			out.More = true
			return out
		}
		size += len(key) + len(there.value)
		out.Items = append(out.Items, Item{Key: []byte(key), Value: there.value, Version: there.version})
	}
	return out
}

// sort brings keys up to date.
func (s *Store) sort() {
	if len(s.fresh) == 0 && len(s.keys) <= 2*len(s.items) {
		return
	}
	s.keys = slices.DeleteFunc(append(s.keys, s.fresh...), func(key string) bool {
		_, ok := s.items[key]
		return !ok
	})
	slices.Sort(s.keys)
	s.keys = slices.Compact(s.keys)
	s.fresh = nil
}

// Snapshot writes the store, in the order of its keys.
func (s *Store) Snapshot(to io.Writer) error {
	w := wirefmt.Writer{Buf: []byte{formatVersion}}
	w.Uint(s.last)
	w.List(len(s.items))
	for _, key := range slices.Sorted(maps.Keys(s.items)) {
		w.String(key)
		w.Bytes(s.items[key].value)
		w.Uint(s.items[key].version)
	}
	if _, err := to.Write(w.Buf); err != nil {
		return fmt.Errorf("kv: snapshot: %w", err)
	}
	return nil
}

// Restore replaces the store's contents by what Snapshot wrote. After an error the store is as it was.
func (s *Store) Restore(from io.Reader) error {
	var b bytes.Buffer
	if _, err := b.ReadFrom(from); err != nil {
		return fmt.Errorf("kv: restore: %w", err)
	}
	r := wirefmt.NewReader(b.Bytes())
	if v := r.Byte(); r.Err() == nil && v != formatVersion {
		return fmt.Errorf("kv: snapshot of version %d, this program knows version %d", v, formatVersion)
	}
	last := r.Uint()
	items := map[string]item{}
	var keys []string
	for range r.List(3) {
		key, there := r.String(), item{r.Bytes(), r.Uint()}
		if len(keys) > 0 && keys[len(keys)-1] >= key || there.version > last || there.version == 0 {
			r.Failf("the key %q is out of order, or its version %d out of range", key, there.version)
		}
		items[key] = there
		keys = append(keys, key)
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("kv: snapshot: %w", err)
	}
	s.items, s.last, s.keys, s.fresh = items, last, keys, nil
	return nil
}

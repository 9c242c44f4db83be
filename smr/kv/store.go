package kv

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/tidwall/btree"

	"github.com/foresay/foresay/internal/wirefmt"
)

// Bounds of one scan's result.
const (
	maxScanItems = 10_000
	maxScanBytes = 1 << 20
)

// Store is a key-value store, an smr.StateMachine. Make one with New.
type Store struct {
	items   btree.Map[string, item]
	last    uint64 // the newest version. Invariant: no item has a higher one.
	bytes   int    // of all keys and values
	quota   Quota
	leases  map[LeaseID]*tied
	changes changes
	loading bool                      // a part of a backup was loaded, and not the last one
	observe func(l Lease, ended bool) // nil: nobody does
	since   *since                    // what was changed since a moment; nil: nobody wants to know
}

type item struct {
	value   []byte
	version uint64
	lease   LeaseID
}

// New returns an empty store.
func New() *Store { return &Store{leases: map[LeaseID]*tied{}} }

// Apply executes a command, or a query.
func (s *Store) Apply(command []byte) []byte { return s.run(command, true) }

// Read answers a query. A command that would change something is Malformed here.
func (s *Store) Read(query []byte) []byte { return s.run(query, false) }

func (s *Store) run(b []byte, write bool) []byte {
	q, err := decodeRequest(b)
	if err != nil {
		return Result{Status: Malformed, Message: err.Error()}.encode()
	}
	if !write && q.op.changes() {
		return Result{Status: Malformed, Message: "kv: a query that would change the store"}.encode()
	}
	return s.execute(q).encode()
}

func (s *Store) execute(q request) Result {
	if s.loading && q.op.changes() && q.op != opLoad && q.op != opQuota {
		return Result{Status: Malformed, Message: "a backup is being restored"}
	}
	switch q.op {
	case opPut:
		return s.put(q)
	case opDelete:
		return s.delete(q)
	case opCompareAndSet:
		return s.compareAndSet(q)
	case opGrant:
		return s.grant(q)
	case opKeepAlive:
		return s.keepAlive(q)
	case opRevoke:
		return s.revoke(q)
	case opExpire:
		return s.expire(q)
	case opLoad:
		return s.loadPart(q.load)
	case opGet:
		return s.get(q)
	case opChanges:
		return s.changesAfter(q)
	case opLeases:
		return s.listLeases()
	case opQuota:
		s.quota = q.quota
		return s.showUsage()
	case opUsage:
		return s.showUsage()
	}
	return s.scan(q)
}

func (s *Store) put(q request) Result {
	if _, ok := s.leases[q.lease]; !ok && q.lease != 0 {
		return Result{Status: NotFound}
	}
	key := string(q.key)
	before, ok := s.items.Get(key)
	moreBytes, moreKeys := len(q.value)-len(before.value), 0
	if !ok {
		moreBytes, moreKeys = len(key)+len(q.value), 1
	}
	if why := s.overQuota(moreBytes, moreKeys); why != "" {
		return Result{Status: QuotaExceeded, Message: why}
	}
	s.last++
	s.bytes += moreBytes
	s.items.Set(key, item{q.value, s.last, q.lease})
	s.since.note(key)
	s.tie(key, before.lease, q.lease)
	s.changes.add(Item{Key: []byte(key), Value: q.value, Version: s.last, Lease: q.lease})
	return Result{Status: OK, Version: s.last}
}

func (s *Store) delete(q request) Result {
	key := string(q.key)
	before, ok := s.items.Get(key)
	if !ok {
		return Result{Status: NotFound}
	}
	s.items.Delete(key)
	s.since.note(key)
	s.bytes -= len(key) + len(before.value)
	s.last++
	s.tie(key, before.lease, 0)
	s.changes.add(Item{Key: []byte(key), Version: s.last, Deleted: true})
	return Result{Status: OK, Version: s.last}
}

func (s *Store) compareAndSet(q request) Result {
	if there, _ := s.items.Get(string(q.key)); there.version != q.version {
		return Result{Status: Conflict, Version: there.version, Value: there.value}
	}
	return s.put(q)
}

func (s *Store) get(q request) Result {
	there, ok := s.items.Get(string(q.key))
	if !ok {
		return Result{Status: NotFound}
	}
	return Result{Status: OK, Version: there.version, Value: there.value, Lease: there.lease}
}

func (s *Store) scan(q request) Result {
	limit, size := scanLimit(q.limit), 0
	out := Result{Status: OK, Version: s.last}
	s.items.Ascend(string(q.key), func(key string, there item) bool {
		switch {
		case len(q.end) > 0 && key >= string(q.end):
			return false
		case len(out.Items) >= limit, size > 0 && size+len(key)+len(there.value) > maxScanBytes:
			out.More = true
			return false
		}
		size += len(key) + len(there.value)
		out.Items = append(out.Items, Item{Key: []byte(key), Value: there.value, Version: there.version, Lease: there.lease})
		return true
	})
	return out
}

// Restore replaces the store's contents by what Snapshot wrote. After an error the store is as it was.
func (s *Store) Restore(from io.Reader) error {
	b, err := contents(from)
	if err != nil {
		return fmt.Errorf("kv: restore: %w", err)
	}
	r := wirefmt.NewReader(b)
	version := r.Byte()
	if r.Err() == nil && version != snapshotVersion && version != snapshotWithoutQuota {
		return fmt.Errorf("kv: snapshot of version %d, this program knows versions %d and %d", version, snapshotWithoutQuota, snapshotVersion)
	}
	restored := New()
	restored.last = r.Uint()
	restored.readItems(r)
	restored.readRest(r)
	if version == snapshotVersion {
		restored.quota = readQuota(r)
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("kv: snapshot: %w", err)
	}
	s.become(restored)
	return nil
}

// become takes over what another store has.
func (s *Store) become(restored *Store) {
	restored.observe = s.observe
	for _, id := range slices.Sorted(maps.Keys(s.leases)) {
		if _, ok := restored.leases[id]; !ok {
			s.tell(Lease{ID: id}, true)
		}
	}
	*s = *restored
	s.tellAll()
}

// contents returns what a reader has, without a copy if that can be.
func contents(from io.Reader) ([]byte, error) {
	if b, ok := from.(*bytes.Buffer); ok {
		return b.Next(b.Len()), nil
	}
	return io.ReadAll(from)
}

// readRest reads what snapshots have behind the keys.
func (s *Store) readRest(r *wirefmt.Reader) {
	s.readLeases(r)
	s.loading = r.Bool()
	s.readChanges(r)
}

func readQuota(r *wirefmt.Reader) Quota { return Quota{Bytes: r.Uint(), Keys: r.Uint()} }

func (s *Store) readItems(r *wirefmt.Reader) {
	for range r.List(4) {
		key, there := r.String(), item{r.Bytes(), r.Uint(), LeaseID(r.Uint())}
		if last, _, ok := s.items.Max(); ok && last >= key || there.version > s.last || there.version == 0 {
			r.Failf("the key %q is out of order, or its version %d out of range", key, there.version)
		}
		s.items.Load(key, there)
		s.bytes += len(key) + len(there.value)
	}
}

// readLeases reads the leases; which keys end with them, the items tell.
func (s *Store) readLeases(r *wirefmt.Reader) {
	said := map[LeaseID]int{}
	for range r.List(leaseBytes) {
		l := readLease(r)
		if _, ok := s.leases[l.ID]; ok || l.ID == 0 || uint64(l.ID) > s.last || l.TTL < MinTTL || l.TTL > MaxTTL {
			r.Failf("the lease %d is there twice, or out of range", l.ID)
		}
		s.leases[l.ID] = &tied{ttl: l.TTL, renewals: l.Renewals, keys: map[string]bool{}}
		said[l.ID] = l.Keys
	}
	s.items.Scan(func(key string, i item) bool {
		if _, ok := s.leases[i.lease]; !ok && i.lease != 0 {
			r.Failf("the key %q ends with lease %d, which is not there", key, i.lease)
		}
		s.tie(key, 0, i.lease)
		return true
	})
	for _, l := range s.listLeases().Leases {
		if l.Keys != said[l.ID] {
			r.Failf("lease %d has %d keys, not %d", l.ID, l.Keys, said[l.ID])
		}
	}
}

// readChanges reads changes that come behind those that are there, some of which may be forgotten by now.
func (s *Store) readChanges(r *wirefmt.Reader) {
	forgotten := r.Uint()
	for len(s.changes.items) > 0 && s.changes.items[0].Version <= forgotten {
		s.changes.forgetFirst()
	}
	before := forgotten
	if n := len(s.changes.items); n > 0 {
		before = s.changes.items[n-1].Version
	}
	for range r.List(itemBytes) {
		i := readItem(r)
		if i.Version <= before || i.Version > s.last {
			r.Failf("the change of version %d is out of order", i.Version)
		}
		before = i.Version
		s.changes.add(i)
	}
	s.changes.forgotten = max(s.changes.forgotten, forgotten)
}

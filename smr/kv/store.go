package kv

import "github.com/tidwall/btree"

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
	notice  func(i Item, all bool)    // likewise
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
	q, err := requestLayout.DecodeShared(b)
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
	s.changed(Item{Key: []byte(key), Value: q.value, Version: s.last, Lease: q.lease})
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
	s.changed(Item{Key: []byte(key), Version: s.last, Deleted: true})
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

package kv

// Bounds of one scan's result.
const (
	maxScanItems = 10_000
	maxScanBytes = 1 << 20
)

// A machine executes commands and queries. All stores are one; they differ in where the records
// are.
type machine struct {
	head
	items  itemTable
	leases leaseTable
	newest changeTable
	// timed says that leases end by a time on which all replicas agree.
	timed   bool
	observe func(l Lease, ended bool) // nil: nobody does
	notice  func(i Item, all bool)    // likewise
}

// head is what is known of all records together.
type head struct {
	last    uint64 // the newest version. Invariant: no item has a higher one.
	bytes   int64  // of all keys and values
	keys    int
	leased  int // how many leases there are
	quota   Quota
	loading bool // a part of a backup was loaded, and not the last one

	changed      int    // how many changes are remembered
	changedBytes int    // of their keys and values
	forgotten    uint64 // the version of the newest change that was forgotten
}

type item struct {
	value   []byte
	version uint64
	lease   LeaseID
}

// itemTable has the keys of a store.
type itemTable interface {
	item(key []byte) (item, bool)
	setItem(key string, i item)
	// removeItem removes a key and returns what it had, false if it is not there.
	removeItem(key string) (item, bool)
	// scanItems has a listing take the keys from one on, in their order, as long as it wants more.
	scanItems(from []byte, to *listing)
}

// leaseTable has the leases of a store, and which keys end with them.
type leaseTable interface {
	lease(id LeaseID) (Lease, bool)
	// setLease makes a lease, or begins its time anew. It leaves it its keys.
	setLease(l Lease)
	// removeLease removes a lease that has no keys.
	removeLease(id LeaseID)
	// tie has a key end with a lease, which is there; or not.
	tie(key string, id LeaseID, tied bool)
	// listLeases returns the leases in the order of their IDs, and keysOf the keys of one in theirs.
	listLeases() []Lease
	keysOf(id LeaseID) []string
}

// changeTable has the newest changes of a store.
type changeTable interface {
	addChange(i Item)
	// removeOldest removes the oldest change, which is newer than a version, and returns it.
	removeOldest(after uint64) Item
	// changesAfter has a listing take the changes that are newer than a version, likewise.
	changesAfter(version uint64, to *listing)
}

func (m *machine) run(b []byte, write bool) []byte {
	var r Result
	switch q, err := requestLayout.DecodeShared(b); {
	case err != nil:
		r = Result{Status: Malformed, Message: err.Error()}
	case !write && q.op.changes():
		r = Result{Status: Malformed, Message: "kv: a query that would change the store"}
	default:
		r = m.execute(q)
	}
	return r.encode()
}

func (m *machine) execute(q request) Result {
	if m.loading && q.op.changes() && q.op != opLoad && q.op != opQuota {
		return Result{Status: Malformed, Message: "a backup is being restored"}
	}
	switch q.op {
	case opPut:
		return m.put(q)
	case opDelete:
		return m.remove(q)
	case opCompareAndSet:
		return m.compareAndSet(q)
	case opGrant:
		return m.grant(q)
	case opKeepAlive:
		return m.keepAlive(q)
	case opRevoke:
		return m.revoke(q)
	case opExpire:
		return m.expire(q)
	case opLoad:
		return m.loadPart(q.load)
	case opGet:
		return m.get(q)
	case opChanges:
		return m.showChanges(q)
	case opLeases:
		return m.showLeases()
	case opQuota:
		m.quota = q.quota
		return m.showUsage()
	case opUsage:
		return m.showUsage()
	}
	return m.scan(q)
}

func (m *machine) put(q request) Result {
	if q.lease != 0 {
		if _, ok := m.leases.lease(q.lease); !ok {
			return Result{Status: NotFound}
		}
	}
	before, ok := m.items.item(q.key)
	moreBytes, moreKeys := len(q.value)-len(before.value), 0
	if !ok {
		moreBytes, moreKeys = len(q.key)+len(q.value), 1
	}
	if why := m.overQuota(moreBytes, moreKeys); why != "" {
		return Result{Status: QuotaExceeded, Message: why}
	}
	key := string(q.key)
	m.last++
	m.bytes += int64(moreBytes)
	m.keys += moreKeys
	m.items.setItem(key, item{q.value, m.last, q.lease})
	m.tie(key, before.lease, q.lease)
	// The key stays where its value does, in the command.
	m.change(&Item{Key: q.key, Value: q.value, Version: m.last, Lease: q.lease})
	return Result{Status: OK, Version: m.last}
}

func (m *machine) remove(q request) Result {
	key := string(q.key)
	before, ok := m.items.removeItem(key)
	if !ok {
		return Result{Status: NotFound}
	}
	m.bytes -= int64(len(key) + len(before.value))
	m.keys--
	m.last++
	m.tie(key, before.lease, 0)
	m.change(&Item{Key: []byte(key), Version: m.last, Deleted: true})
	return Result{Status: OK, Version: m.last}
}

func (m *machine) compareAndSet(q request) Result {
	if there, _ := m.items.item(q.key); there.version != q.version {
		return Result{Status: Conflict, Version: there.version, Value: there.value}
	}
	return m.put(q)
}

func (m *machine) get(q request) Result {
	there, ok := m.items.item(q.key)
	if !ok {
		return Result{Status: NotFound}
	}
	return Result{Status: OK, Version: there.version, Value: there.value, Lease: there.lease}
}

func (m *machine) scan(q request) Result {
	l := m.listing(q)
	m.items.scanItems(q.key, l)
	return l.out
}

// A listing is what a query for several goes through, in their order, and gives.
type listing struct {
	lo, hi      []byte
	limit, size int
	out         Result
}

func (m *machine) listing(q request) *listing {
	return &listing{lo: q.key, hi: q.end, limit: scanLimit(q.limit), out: Result{Status: OK, Version: m.last}}
}

// item takes the next key, and reports whether another one is wanted.
func (l *listing) item(key string, there item) bool {
	if len(l.hi) > 0 && key >= string(l.hi) || !l.room(len(key)+len(there.value)) {
		return false
	}
	l.add(Item{Key: []byte(key), Value: there.value, Version: there.version, Lease: there.lease})
	return true
}

// change takes the next change, likewise.
func (l *listing) change(i *Item) bool {
	if string(i.Key) < string(l.lo) || len(l.hi) > 0 && string(i.Key) >= string(l.hi) {
		return true
	}
	if !l.room(i.sizeBytes()) {
		l.out.Version = l.out.Items[len(l.out.Items)-1].Version
		return false
	}
	l.add(*i)
	return true
}

func (l *listing) add(i Item) {
	if l.out.Items == nil {
		l.out.Items = make([]Item, 0, min(l.limit, 4))
	}
	l.out.Items = append(l.out.Items, i)
}

// room reports whether the result takes so many bytes more, and says so in it if it does not.
func (l *listing) room(size int) bool {
	if len(l.out.Items) >= l.limit || l.size > 0 && l.size+size > maxScanBytes {
		l.out.More = true
		return false
	}
	l.size += size
	return true
}

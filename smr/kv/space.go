package kv

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/foresay/foresay/keyspace"
)

// Service is a store whose records are in a key space, for groups whose replicas agree on a time: a
// bft.Service. It answers commands and queries as a Store does, but for the end of leases. It ends
// those that have run out by that time itself, before the command that comes next, and takes no
// [Expire] of one that is still there.
type Service struct{}

// Apply executes a command, or a query, at a time, which never goes back.
func (Service) Apply(space keyspace.Space, now time.Duration, command []byte) []byte {
	t := &spaced{Reader: space, to: space, now: now}
	m := t.open()
	before := m.head
	t.endLeases(m)
	result := m.run(command, true)
	if m.head != before {
		space.Put([]byte{recordHead}, headLayout.Encode(m.head))
	}
	return result
}

// Read answers a query. A lease that has run out since the last command is still there.
func (Service) Read(keys keyspace.Reader, query []byte) []byte {
	m := (&spaced{Reader: keys}).open()
	return m.run(query, false)
}

// endLeases ends the leases that have run out.
func (t *spaced) endLeases(m *machine) {
	for !m.loading && m.leased > 0 {
		id, ok := t.due()
		if !ok || m.revoke(request{lease: id}).Status != OK {
			return
		}
	}
}

// The records of a store in a key space have one of these, and then what is said there.
const (
	recordHead   = 'm'
	recordItem   = 'i' // the key
	recordLease  = 'l' // the lease
	recordDue    = 'd' // when the lease ends, and the lease
	recordTied   = 't' // the lease and the key
	recordChange = 'c' // the version
)

// spaced has the records of a store in a key space. It is an itemTable, leaseTable and changeTable.
type spaced struct {
	keyspace.Reader
	to  keyspace.Space // nil for a query, which writes nothing
	now time.Duration
}

// open returns the machine of the records that are there.
func (t *spaced) open() *machine {
	m := &machine{items: t, leases: t, newest: t, timed: true}
	if b, ok := t.Get([]byte{recordHead}); ok {
		m.head = mustDecode(headLayout.Decode(b))
	}
	return m
}

// mustDecode returns what a record says. Only this package writes any, and what is on a disk is
// checked by who gives the key space.
func mustDecode[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// record returns the key of a record.
func record(kind byte, numbers ...uint64) []byte {
	b := append(make([]byte, 0, 1+8*len(numbers)), kind)
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func itemRecord[K string | []byte](key K) []byte {
	return append(append(make([]byte, 0, 1+len(key)), recordItem), key...)
}

func tiedRecord(key string, id LeaseID) []byte { return append(record(recordTied, uint64(id)), key...) }

// dueRecord is in the order of the times, of which some may be negative.
func dueRecord(l *spacedLease) []byte {
	return record(recordDue, uint64(l.due)^1<<63, uint64(l.ID))
}

func (t *spaced) item(key []byte) (item, bool) {
	b, ok := t.Get(itemRecord(key))
	if !ok {
		return item{}, false
	}
	return mustDecode(itemLayout.DecodeShared(b)), true
}

func (t *spaced) setItem(key string, i item) { t.to.Put(itemRecord(key), itemLayout.Encode(i)) }

func (t *spaced) removeItem(key string) (item, bool) {
	at := itemRecord(key)
	b, ok := t.Get(at)
	if !ok {
		return item{}, false
	}
	before := mustDecode(itemLayout.DecodeShared(b))
	t.to.Delete(at)
	return before, true
}

func (t *spaced) scanItems(from []byte, to *listing) {
	for k, b := range t.Scan(itemRecord(from), []byte{recordItem + 1}) {
		i := mustDecode(itemLayout.Decode(b))
		if !to.item(string(k[1:]), i) {
			return
		}
	}
}

// spacedLease is a lease as it is in a key space.
type spacedLease struct {
	Lease
	due time.Duration // when it ends by the agreed time, if it is not renewed
}

func (t *spaced) load(id LeaseID) (spacedLease, bool) {
	b, ok := t.Get(record(recordLease, uint64(id)))
	if !ok {
		return spacedLease{}, false
	}
	return mustDecode(spacedLeaseLayout.Decode(b)), true
}

func (t *spaced) store(l *spacedLease) {
	t.to.Put(record(recordLease, uint64(l.ID)), spacedLeaseLayout.Encode(*l))
}

func (t *spaced) lease(id LeaseID) (Lease, bool) {
	l, ok := t.load(id)
	return l.Lease, ok
}

func (t *spaced) setLease(l Lease) {
	there, ok := t.load(l.ID)
	if ok {
		t.to.Delete(dueRecord(&there))
	}
	l.Keys = there.Keys
	now := spacedLease{l, t.now + l.TTL}
	t.store(&now)
	t.to.Put(dueRecord(&now), []byte{})
}

func (t *spaced) removeLease(id LeaseID) {
	l, _ := t.load(id)
	t.to.Delete(record(recordLease, uint64(id)))
	t.to.Delete(dueRecord(&l))
}

func (t *spaced) tie(key string, id LeaseID, tied bool) {
	l, _ := t.load(id)
	if tied {
		l.Keys++
		t.to.Put(tiedRecord(key, id), []byte{})
	} else {
		l.Keys--
		t.to.Delete(tiedRecord(key, id))
	}
	t.store(&l)
}

func (t *spaced) listLeases() (out []Lease) {
	for _, b := range t.Scan([]byte{recordLease}, []byte{recordLease + 1}) {
		out = append(out, mustDecode(spacedLeaseLayout.Decode(b)).Lease)
	}
	return out
}

func (t *spaced) keysOf(id LeaseID) (out []string) {
	first := record(recordTied, uint64(id))
	for k := range t.Scan(first, []byte{recordTied + 1}) {
		key, ok := bytes.CutPrefix(k, first)
		if !ok {
			break
		}
		out = append(out, string(key))
	}
	return out
}

// due returns the lease that ends first, if its time has come.
func (t *spaced) due() (LeaseID, bool) {
	for k := range t.Scan([]byte{recordDue}, record(recordDue, uint64(t.now+1)^1<<63)) {
		return LeaseID(binary.BigEndian.Uint64(k[9:])), true
	}
	return 0, false
}

func (t *spaced) addChange(i Item) {
	t.to.Put(record(recordChange, i.Version), changeLayout.Encode(i))
}

func (t *spaced) removeOldest(after uint64) (oldest Item) {
	for _, b := range t.Scan(record(recordChange, after+1), []byte{recordChange + 1}) {
		oldest = mustDecode(changeLayout.Decode(b))
		break
	}
	t.to.Delete(record(recordChange, oldest.Version))
	return oldest
}

func (t *spaced) changesAfter(version uint64, to *listing) {
	if version+1 == 0 {
		return
	}
	for _, b := range t.Scan(record(recordChange, version+1), []byte{recordChange + 1}) {
		i := mustDecode(changeLayout.Decode(b))
		if !to.change(&i) {
			return
		}
	}
}

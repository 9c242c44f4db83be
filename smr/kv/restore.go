package kv

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
)

// maxUnitBytes bounds what one key, lease or change takes in a snapshot: a command has made it.
const maxUnitBytes = 4 << 20

// Restore replaces the store's contents by what Snapshot wrote. After an error the store is as it
// was.
func (s *Store) Restore(from io.Reader) error { return s.restoreFrom(from, s.restoring()) }

// Patch makes the changes that another store, or this one, has told. After an error the store is as
// it was.
func (s *Store) Patch(from io.Reader) error {
	p := s.restoring()
	p.to = &Store{items: *s.items.Copy(), bytes: s.bytes, changes: s.changes.clone()}
	for _, id := range slices.Sorted(maps.Keys(s.leases)) {
		for key := range s.leases[id].keys { //pure:ok into a map
			p.ends[key] = id
		}
	}
	p.next = p.patchHead
	return s.restoreFrom(from, p)
}

func (s *Store) restoreFrom(from io.Reader, p *restoration) error {
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		if _, werr := p.Write(piece[:n]); werr != nil {
			return werr
		}
		switch {
		case err == io.EOF:
			if err := p.End(); err != nil {
				return err
			}
			return p.Become()
		case err != nil:
			return fmt.Errorf("kv: snapshot: %w", err)
		}
	}
}

// Restoring begins to restore a snapshot beside the store's contents. It makes the store an
// smr.Restorer.
func (s *Store) Restoring() interface {
	io.Writer
	End() error
	Become() error
} {
	return s.restoring()
}

func (s *Store) restoring() *restoration {
	p := &restoration{of: s, to: New(), ends: map[string]LeaseID{}}
	p.next = p.head
	return p
}

// A restoration reads a snapshot, and patches behind it, a piece at a time: a unit, such as a key
// with its value, when all of its bytes are there.
type restoration struct {
	of *Store
	to *Store // as far as it was read
	// ends has the keys that end with a lease. Those of a snapshot come before its leases.
	ends map[string]LeaseID
	said map[LeaseID]int // how many keys the leases that were read should have
	plan uint64          // the newest change that is forgotten, by the snapshot

	unread bytes.Buffer // less than a unit
	next   func(r *wirefmt.Reader)
	each   func(r *wirefmt.Reader) // reads an element of a list
	left   uint64                  // of them
	done   bool                    // all was read
	quota  bool                    // the snapshot has one
	err    error
}

// Write takes the next bytes. After an error it takes none.
func (p *restoration) Write(b []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	p.unread.Write(b)
	for !p.done {
		rest, err := p.unit()
		if err != nil {
			if p.unread.Len() > maxUnitBytes {
				p.err = fmt.Errorf("kv: snapshot: %w", err)
				return 0, p.err
			}
			break // the rest of it may come
		}
		p.unread.Next(p.unread.Len() - rest)
	}
	return len(b), nil
}

// unit reads the next unit, and tells how many bytes are behind it. After an error nothing has
// changed.
func (p *restoration) unit() (rest int, err error) {
	r := wirefmt.NewReader(p.unread.Bytes())
	if p.left == 0 {
		p.next(r)
	} else if p.each(r); r.Err() == nil {
		p.left--
	}
	err = r.Err()
	return len(r.Rest()), err
}

// End says that all of the snapshot was written, or all of a patch. What is written then is a
// patch.
func (p *restoration) End() error {
	if p.err == nil && !p.done {
		_, err := p.unit()
		p.err = fmt.Errorf("kv: snapshot: %w", err)
	}
	if n := p.unread.Len(); p.err == nil && n > 0 {
		p.err = fmt.Errorf("kv: snapshot: %d bytes too many", n)
	}
	p.next, p.done = p.patchHead, false
	return p.err
}

// Become replaces the store's contents.
func (p *restoration) Become() error {
	if p.err == nil {
		p.of.become(p.to)
	}
	return p.err
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

// list has elements of a list read, then what comes next.
func (p *restoration) list(n uint64, each, next func(r *wirefmt.Reader)) {
	p.left, p.each, p.next = n, each, next
}

func (p *restoration) head(r *wirefmt.Reader) {
	version, last, n := r.Byte(), r.Uint(), r.Uint()
	if version != snapshotVersion && version != snapshotWithoutQuota {
		p.refuse(r, "snapshot", version, snapshotVersion)
	}
	if r.Err() == nil {
		p.quota, p.to.last = version == snapshotVersion, last
		p.list(n, p.key, p.leases)
	}
}

func (p *restoration) patchHead(r *wirefmt.Reader) {
	version, last, n := r.Byte(), r.Uint(), r.Uint()
	if version != patchVersion {
		p.refuse(r, "patch", version, patchVersion)
	}
	if r.Err() == nil {
		p.quota, p.to.last = true, last
		p.list(n, p.changedKey, p.leases)
	}
}

func (p *restoration) refuse(r *wirefmt.Reader, what string, version, known byte) {
	r.Failf("%s of version %d, this program knows version %d", what, version, known)
}

// readItem reads what a key has.
func (p *restoration) readItem(r *wirefmt.Reader, key string) item {
	i := item{r.View(), r.Uint(), LeaseID(r.Uint())}
	if i.version == 0 || i.version > p.to.last {
		r.Failf("the version %d of the key %q is out of range", i.version, key)
	}
	if r.Err() == nil {
		i.value = slices.Clone(i.value)
	}
	return i
}

func (p *restoration) key(r *wirefmt.Reader) {
	key := r.String()
	i := p.readItem(r, key)
	if last, _, ok := p.to.items.Max(); ok && last >= key {
		r.Failf("the key %q is out of order", key)
	}
	if r.Err() != nil {
		return
	}
	p.to.items.Load(key, i)
	p.to.bytes += len(key) + len(i.value)
	if i.lease != 0 {
		p.ends[key] = i.lease
	}
}

func (p *restoration) changedKey(r *wirefmt.Reader) {
	key := r.String()
	there := r.Bool()
	var i item
	if there {
		i = p.readItem(r, key)
	}
	if r.Err() != nil {
		return
	}
	if before, ok := p.to.items.Delete(key); ok {
		p.to.bytes -= len(key) + len(before.value)
	}
	delete(p.ends, key)
	if !there {
		return
	}
	p.to.items.Set(key, i)
	p.to.bytes += len(key) + len(i.value)
	if i.lease != 0 {
		p.ends[key] = i.lease
	}
}

// leases begins the list of leases.
func (p *restoration) leases(r *wirefmt.Reader) {
	if n := r.Uint(); r.Err() == nil {
		p.to.leases, p.said = map[LeaseID]*tied{}, map[LeaseID]int{}
		p.list(n, p.lease, p.changes)
	}
}

func (p *restoration) lease(r *wirefmt.Reader) {
	l := readLease(r)
	if _, ok := p.to.leases[l.ID]; ok || l.ID == 0 || uint64(l.ID) > p.to.last || l.TTL < MinTTL || l.TTL > MaxTTL {
		r.Failf("the lease %d is there twice, or out of range", l.ID)
	}
	if r.Err() == nil {
		p.to.leases[l.ID] = &tied{ttl: l.TTL, renewals: l.Renewals, keys: map[string]bool{}}
		p.said[l.ID] = l.Keys
	}
}

// tie gives the leases their keys.
func (p *restoration) tie(r *wirefmt.Reader) {
	for _, l := range p.to.leases { //pure:ok each on its own
		clear(l.keys)
	}
	for _, key := range slices.Sorted(maps.Keys(p.ends)) {
		l := p.to.leases[p.ends[key]]
		if l == nil {
			r.Failf("the key %q ends with lease %d, which is not there", key, p.ends[key])
			return
		}
		l.keys[key] = true
	}
	for _, l := range p.to.listLeases().Leases {
		if l.Keys != p.said[l.ID] {
			r.Failf("lease %d has %d keys, not %d", l.ID, l.Keys, p.said[l.ID])
		}
	}
}

// changes begins the list of changes: they come behind those that are there, some of which may be
// forgotten by now.
func (p *restoration) changes(r *wirefmt.Reader) {
	loading, forgotten, n := r.Bool(), r.Uint(), r.Uint()
	if r.Err() != nil {
		return
	}
	if p.tie(r); r.Err() != nil {
		return
	}
	p.to.loading, p.plan = loading, forgotten
	for len(p.to.changes.items) > 0 && p.to.changes.items[0].Version <= forgotten {
		p.to.changes.forgetFirst()
	}
	p.list(n, p.change, p.end)
}

func (p *restoration) change(r *wirefmt.Reader) {
	i := readItem(r)
	before := p.plan
	if n := len(p.to.changes.items); n > 0 {
		before = p.to.changes.items[n-1].Version
	}
	if i.Version <= before || i.Version > p.to.last {
		r.Failf("the change of version %d is out of order", i.Version)
	}
	if r.Err() == nil {
		p.to.changes.add(i)
	}
}

func (p *restoration) end(r *wirefmt.Reader) {
	var quota Quota
	if p.quota {
		quota = readQuota(r)
	}
	if r.Err() == nil {
		p.to.changes.forgotten = max(p.to.changes.forgotten, p.plan)
		p.to.quota, p.done = quota, true
	}
}

func readQuota(r *wirefmt.Reader) Quota { return Quota{Bytes: r.Uint(), Keys: r.Uint()} }

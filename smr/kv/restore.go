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
	p.to.head = s.head
	p.to.memory.items, p.to.memory.changes = *s.memory.items.Copy(), s.memory.changes.clone()
	for _, l := range s.memory.listLeases() {
		for _, key := range s.memory.keysOf(l.ID) {
			p.ends[key] = l.ID
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
	next   func(c *wirefmt.Coder)
	each   func(c *wirefmt.Coder) // reads an element of a list
	left   uint64                 // of them
	done   bool                   // all was read
	quota  bool                   // the snapshot has one
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
	r := wirefmt.NewReader(p.unread.Bytes()) //tidy:ok a snapshot is written and read a part at a time
	if p.left == 0 {
		p.next(r.Coder())
	} else if p.each(r.Coder()); r.Err() == nil {
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
	restored.observe, restored.notice = s.observe, s.notice
	for _, l := range s.memory.listLeases() {
		if _, ok := restored.memory.leases[l.ID]; !ok {
			s.tell(Lease{ID: l.ID}, true)
		}
	}
	*s = *restored
	s.tellAll()
	s.replaced()
}

// list has elements of a list read, then what comes next.
func (p *restoration) list(n uint64, each, next func(c *wirefmt.Coder)) {
	p.left, p.each, p.next = n, each, next
}

func (p *restoration) head(c *wirefmt.Coder) {
	var h snapshotHead
	if snapshotHeadFields(c, &h); h.version != snapshotVersion && h.version != snapshotWithoutQuota {
		p.refuse(c, "snapshot", h.version, snapshotVersion)
	}
	if c.Err() == nil {
		p.quota, p.to.last = h.version == snapshotVersion, h.last
		p.list(h.keys, p.key, p.leases)
	}
}

func (p *restoration) patchHead(c *wirefmt.Coder) {
	var h snapshotHead
	if snapshotHeadFields(c, &h); h.version != patchVersion {
		p.refuse(c, "patch", h.version, patchVersion)
	}
	if c.Err() == nil {
		p.quota, p.to.last = true, h.last
		p.list(h.keys, p.changedKey, p.leases)
	}
}

func (p *restoration) refuse(c *wirefmt.Coder, what string, version, known byte) {
	c.Failf("%s of version %d, this program knows version %d", what, version, known)
}

// check looks at what a key has.
func (p *restoration) check(c *wirefmt.Coder, s *stored) {
	if s.item.version == 0 || s.item.version > p.to.last {
		c.Failf("the version %d of the key %q is out of range", s.item.version, s.key)
	}
}

func (p *restoration) key(c *wirefmt.Coder) {
	var s stored
	storedFields(c, &s)
	p.check(c, &s)
	if last, _, ok := p.to.memory.items.Max(); ok && last >= s.key {
		c.Failf("the key %q is out of order", s.key)
	}
	if c.Err() == nil {
		s.item.value = slices.Clone(s.item.value)
		p.to.memory.items.Load(s.key, s.item)
		p.count(&s)
	}
}

func (p *restoration) changedKey(c *wirefmt.Coder) {
	var s changed
	if changedFields(c, &s); s.there {
		p.check(c, &s.stored)
	}
	if c.Err() != nil {
		return
	}
	if before, ok := p.to.memory.items.Delete(s.key); ok {
		p.to.bytes -= int64(len(s.key) + len(before.value))
	}
	delete(p.ends, s.key)
	if s.there {
		s.item.value = slices.Clone(s.item.value)
		p.to.memory.items.Set(s.key, s.item)
		p.count(&s.stored)
	}
}

// count notes what a key takes, and with which lease it ends.
func (p *restoration) count(s *stored) {
	p.to.bytes += int64(len(s.key) + len(s.item.value))
	if s.item.lease != 0 {
		p.ends[s.key] = s.item.lease
	}
}

// leases begins the list of leases.
func (p *restoration) leases(c *wirefmt.Coder) {
	var n uint64
	if wirefmt.Uint(c, &n); c.Err() == nil {
		p.to.memory.leases, p.said = map[LeaseID]*tied{}, map[LeaseID]int{}
		p.list(n, p.lease, p.changes)
	}
}

func (p *restoration) lease(c *wirefmt.Coder) {
	var l Lease
	leaseFields(c, &l)
	if _, ok := p.to.memory.leases[l.ID]; ok || l.ID == 0 || uint64(l.ID) > p.to.last || l.TTL < MinTTL || l.TTL > MaxTTL {
		c.Failf("the lease %d is there twice, or out of range", l.ID)
	}
	if c.Err() == nil {
		p.to.memory.leases[l.ID] = newTied(l)
		p.said[l.ID] = l.Keys
	}
}

// tie gives the leases their keys.
func (p *restoration) tie(c *wirefmt.Coder) {
	for _, l := range p.to.memory.leases { //pure:ok each on its own
		clear(l.keys)
	}
	for _, key := range slices.Sorted(maps.Keys(p.ends)) {
		l := p.to.memory.leases[p.ends[key]]
		if l == nil {
			c.Failf("the key %q ends with lease %d, which is not there", key, p.ends[key])
			return
		}
		l.keys[key] = true
	}
	for _, l := range p.to.memory.listLeases() {
		if l.Keys != p.said[l.ID] {
			c.Failf("lease %d has %d keys, not %d", l.ID, l.Keys, p.said[l.ID])
		}
	}
}

// changes begins the list of changes: they come behind those that are there, some of which may be
// forgotten by now.
func (p *restoration) changes(c *wirefmt.Coder) {
	var h changesHead
	if changesHeadFields(c, &h); c.Err() != nil {
		return
	}
	if p.tie(c); c.Err() != nil {
		return
	}
	p.to.loading, p.plan = h.loading, h.forgotten
	for p.to.changed > 0 && p.to.memory.changes.items[0].Version <= h.forgotten {
		p.to.forgetOldest()
	}
	p.list(h.changes, p.change, p.end)
}

func (p *restoration) change(c *wirefmt.Coder) {
	var i Item
	itemFields(c, &i)
	before := p.plan
	if n := len(p.to.memory.changes.items); n > 0 {
		before = p.to.memory.changes.items[n-1].Version
	}
	if i.Version <= before || i.Version > p.to.last {
		c.Failf("the change of version %d is out of order", i.Version)
	}
	if c.Err() == nil {
		p.to.remember(&i)
	}
}

func (p *restoration) end(c *wirefmt.Coder) {
	var quota Quota
	if p.quota {
		quotaFields(c, &quota)
	}
	if c.Err() == nil {
		p.to.forgotten = max(p.to.forgotten, p.plan)
		p.to.keys, p.to.leased = p.to.memory.items.Len(), len(p.to.memory.leases)
		p.to.quota, p.done = quota, true
	}
}

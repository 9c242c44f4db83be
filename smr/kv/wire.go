package kv

import (
	"github.com/foresay/foresay/internal/wirefmt"
)

// Commands, queries, results and usages as bytes.
var (
	requestLayout = wirefmt.NewLayout("kv: command", requestFields)
	keyLayout     = wirefmt.NewLayout("kv: command", keyFields)
	resultLayout  = wirefmt.NewLayout("kv: result", resultFields)
	usageLayout   = wirefmt.NewLayout("kv: usage", usageFields)
)

// formatVersion is the first byte of commands, queries and results.
const formatVersion = 2

// keyFields are what commands and queries begin with.
func keyFields(c *wirefmt.Coder, q *request) {
	wirefmt.Version(c, formatVersion)
	wirefmt.Enum(c, &q.op, opPut, opUsage, "operation")
	wirefmt.Bytes(c, &q.key)
}

func requestFields(c *wirefmt.Coder, q *request) {
	keyFields(c, q)
	switch q.op {
	case opPut:
		wirefmt.Bytes(c, &q.value)
		wirefmt.Uint(c, &q.lease)
	case opCompareAndSet:
		wirefmt.Uint(c, &q.version)
		wirefmt.Bytes(c, &q.value)
		wirefmt.Uint(c, &q.lease)
	case opGrant:
		wirefmt.Int(c, &q.ttl)
	case opKeepAlive, opRevoke:
		wirefmt.Uint(c, &q.lease)
	case opExpire:
		wirefmt.Uint(c, &q.lease)
		wirefmt.Uint(c, &q.version)
	case opLoad:
		if c.Reading() {
			q.load = &Load{}
		}
		loadFields(c, q.load)
	case opScan:
		wirefmt.Bytes(c, &q.end)
		wirefmt.Uint(c, &q.limit)
	case opChanges:
		wirefmt.Bytes(c, &q.end)
		wirefmt.Uint(c, &q.version)
		wirefmt.Uint(c, &q.limit)
	case opQuota:
		quotaFields(c, &q.quota)
	}
}

func loadFields(c *wirefmt.Coder, l *Load) {
	wirefmt.Uint(c, &l.After)
	wirefmt.Uint(c, &l.To)
	wirefmt.List(c, &l.Leases, leaseBytes, leaseFields)
	wirefmt.List(c, &l.Items, itemBytes, itemFields)
	wirefmt.Bool(c, &l.Last)
}

// itemBytes is how long an Item is at least, as bytes.
const itemBytes = 5

func itemFields(c *wirefmt.Coder, i *Item) {
	wirefmt.Bytes(c, &i.Key)
	wirefmt.Bytes(c, &i.Value)
	wirefmt.Uint(c, &i.Version)
	wirefmt.Uint(c, &i.Lease)
	wirefmt.Bool(c, &i.Deleted)
}

// leaseBytes is how long a Lease is at least, as bytes.
const leaseBytes = 4

func leaseFields(c *wirefmt.Coder, l *Lease) {
	wirefmt.Uint(c, &l.ID)
	wirefmt.Int(c, &l.TTL)
	wirefmt.Uint(c, &l.Renewals)
	wirefmt.Count(c, &l.Keys)
}

func quotaFields(c *wirefmt.Coder, q *Quota) {
	wirefmt.Uint(c, &q.Bytes)
	wirefmt.Uint(c, &q.Keys)
}

func usageFields(c *wirefmt.Coder, u *Usage) {
	wirefmt.Uint(c, &u.Bytes)
	wirefmt.Uint(c, &u.Keys)
	quotaFields(c, &u.Quota)
}

func resultFields(c *wirefmt.Coder, r *Result) {
	wirefmt.Version(c, formatVersion)
	wirefmt.Enum(c, &r.Status, OK, QuotaExceeded, "status")
	wirefmt.Uint(c, &r.Version)
	wirefmt.Bytes(c, &r.Value)
	wirefmt.Uint(c, &r.Lease)
	wirefmt.List(c, &r.Items, itemBytes, itemFields)
	wirefmt.List(c, &r.Leases, leaseBytes, leaseFields)
	wirefmt.Bool(c, &r.More)
	wirefmt.String(c, &r.Message)
}

// A snapshot is a snapshotHead and its keys, as storedFields has them; then how many leases there
// are, and these; then a changesHead and the changes; then the quota. A patch, which is what has
// changed since a snapshot, has changedFields in place of storedFields. Both are written and read a
// part at a time.

// snapshotHead is what a snapshot, and a patch, begins with.
type snapshotHead struct {
	version byte
	last    uint64 // the store's newest version
	keys    uint64 // how many follow
}

// The versions of snapshots.
const (
	snapshotWithoutQuota = 2
	snapshotVersion      = 3
	patchVersion         = 1
)

func snapshotHeadFields(c *wirefmt.Coder, h *snapshotHead) {
	wirefmt.Enum(c, &h.version, 0, 255, "version")
	wirefmt.Uint(c, &h.last)
	wirefmt.Uint(c, &h.keys)
}

// stored is a key with what it has.
type stored struct {
	key  string
	item item
}

// storedFields reads a value as a part of the bytes: what is read may turn out to be cut off.
func storedFields(c *wirefmt.Coder, s *stored) {
	wirefmt.String(c, &s.key)
	wirefmt.View(c, &s.item.value)
	wirefmt.Uint(c, &s.item.version)
	wirefmt.Uint(c, &s.item.lease)
}

// changed is a key that has changed.
type changed struct {
	stored
	there bool // it was not removed
}

func changedFields(c *wirefmt.Coder, s *changed) {
	wirefmt.String(c, &s.key)
	if wirefmt.Bool(c, &s.there); s.there {
		wirefmt.View(c, &s.item.value)
		wirefmt.Uint(c, &s.item.version)
		wirefmt.Uint(c, &s.item.lease)
	}
}

// changesHead is what comes before the newest changes.
type changesHead struct {
	loading   bool
	forgotten uint64 // the newest change that is forgotten
	changes   uint64 // how many follow
}

func changesHeadFields(c *wirefmt.Coder, h *changesHead) {
	wirefmt.Bool(c, &h.loading)
	wirefmt.Uint(c, &h.forgotten)
	wirefmt.Uint(c, &h.changes)
}

// The records of a store in a key space.
var (
	headLayout = wirefmt.NewLayout("kv: the record of a store", headFields)
	itemLayout = wirefmt.NewLayout("kv: the record of a key", func(c *wirefmt.Coder, i *item) {
		wirefmt.Version(c, recordVersion)
		wirefmt.Bytes(c, &i.value)
		wirefmt.Uint(c, &i.version)
		wirefmt.Uint(c, &i.lease)
	})
	spacedLeaseLayout = wirefmt.NewLayout("kv: the record of a lease", func(c *wirefmt.Coder, l *spacedLease) {
		wirefmt.Version(c, recordVersion)
		leaseFields(c, &l.Lease)
		wirefmt.Int(c, &l.due)
	})
	changeLayout = wirefmt.NewLayout("kv: the record of a change", func(c *wirefmt.Coder, i *Item) {
		wirefmt.Version(c, recordVersion)
		itemFields(c, i)
	})
)

const recordVersion = 1

func headFields(c *wirefmt.Coder, h *head) {
	wirefmt.Version(c, recordVersion)
	wirefmt.Uint(c, &h.last)
	wirefmt.Int(c, &h.bytes)
	wirefmt.Count(c, &h.keys)
	wirefmt.Count(c, &h.leased)
	quotaFields(c, &h.quota)
	wirefmt.Bool(c, &h.loading)
	wirefmt.Count(c, &h.changed)
	wirefmt.Count(c, &h.changedBytes)
	wirefmt.Uint(c, &h.forgotten)
}

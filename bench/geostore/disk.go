package geostore

import (
	"bytes"
	"iter"
	"sync"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/protocol"
)

// A device is what the disks of a machine are on. A sync of it takes a fixed time; what is
// committed meanwhile waits for the next sync, which is for all that waits (group commit). So a
// commit takes between one and two syncs.
type device struct {
	sync time.Duration

	mu      sync.Mutex
	syncing bool
	waiting []func(error)
}

// commit calls done when what was written before is synced.
func (d *device) commit(done func(error)) {
	if d.sync == 0 {
		done(nil)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = append(d.waiting, done)
	if !d.syncing {
		d.syncing = true
		d.begin()
	}
}

// begin syncs what waits. d.mu is held.
func (d *device) begin() {
	group := d.waiting
	d.waiting = nil
	time.AfterFunc(d.sync, func() {
		for _, done := range group {
			done(nil)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.syncing = len(d.waiting) > 0; d.syncing {
			d.begin()
		}
	})
}

// A disk is a host.Disk in memory, on a device, that had all keys of a keyspace from the start.
type disk struct {
	*host.Memory
	device *device
	base   keyspace

	mu      sync.RWMutex
	deleted map[string]bool // of the base
}

var _ host.Disk = (*disk)(nil)

func newDisk(d *device, base keyspace) *disk {
	return &disk{Memory: host.NewMemory(), device: d, base: base, deleted: map[string]bool{}}
}

// Commit implements host.Disk. It is visible at once.
func (d *disk) Commit(ops []host.Op, done func(error)) {
	d.Memory.Commit(ops, func(error) {}) // which has none
	d.mu.Lock()
	for _, op := range ops {
		switch {
		case op.Kind == protocol.KindPut:
			delete(d.deleted, string(op.Key))
		case op.Kind == protocol.KindDelete && d.base.has(op.Key):
			d.deleted[string(op.Key)] = true
		}
	}
	d.mu.Unlock()
	d.device.commit(done)
}

// Keys implements host.Disk.
func (d *disk) Keys() protocol.Keys { return diskKeys{d} }

type diskKeys struct{ *disk }

func (k diskKeys) Get(key []byte) ([]byte, bool) {
	if v, ok := k.Memory.Keys().Get(key); ok {
		return v, true
	}
	if !k.inBase(key) {
		return nil, false
	}
	return k.base.value, true
}

// inBase reports whether a key that was not written has a value.
func (k diskKeys) inBase(key []byte) bool {
	if !k.base.has(key) {
		return false
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return !k.deleted[string(key)]
}

// Scan puts what was written over the base.
func (k diskKeys) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		next, stop := iter.Pull(k.base.scan(lo, hi))
		defer stop()
		under, more := next()
		// pass yields the base's keys before a key, and leaves out that key; before nil it yields
		// all.
		pass := func(key []byte) bool {
			for ; more; under, more = next() {
				if key != nil && bytes.Compare(under, key) >= 0 {
					break
				}
				if k.inBase(under) && !yield(under, k.base.value) {
					return false
				}
			}
			if more && bytes.Equal(under, key) {
				under, more = next()
			}
			return true
		}
		for key, value := range k.Memory.Keys().Scan(lo, hi) {
			if !pass(key) || !yield(key, value) {
				return
			}
		}
		pass(nil)
	}
}

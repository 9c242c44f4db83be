package proof

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/protocol"
)

// A disk is a shard's, which takes its time. What a machine wrote before its power failed is there
// afterwards as far as it was durable, and perhaps a little more.
type disk struct {
	name    string
	took    func() time.Duration // for a write
	mu      sync.Mutex
	durable *host.Memory
	life    *diskLife // of the machine that has it
}

// A diskLife is what one life of a machine sees of a disk.
type diskLife struct {
	*host.Memory // with all that was written
	disk         *disk

	// The rest is guarded by the disk's lock.
	dead    bool
	pending [][]host.Op // what is not durable yet
	last    time.Time   // when the last write is durable
}

func newDisk(name string, took func() time.Duration) *disk {
	return &disk{name: name, took: took, durable: host.NewMemory()}
}

// open returns the disk for a life that begins.
func (d *disk) open() *diskLife {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := &diskLife{Memory: host.NewMemory(), disk: d}
	var all []host.Op
	for k, v := range d.durable.Keys().Scan(nil, nil) {
		all = append(all, host.Op{Kind: protocol.KindPut, Key: bytes.Clone(k), Value: bytes.Clone(v)})
	}
	// Those that were forgotten are written too, empty, so that the others have their indices.
	forgotten := d.durable.NextIndex() - 1
	var records []host.Op
	for r := range d.durable.Records() { // which has no errors
		forgotten = min(forgotten, r.Index-1)
		records = append(records, host.Op{Kind: protocol.KindAppend, Value: r.Bytes})
	}
	all = append(all, slices.Repeat([]host.Op{{Kind: protocol.KindAppend}}, int(forgotten))...)
	all = append(all, host.Op{Kind: protocol.KindTruncate, Index: forgotten + 1})
	l.Memory.Commit(append(all, records...), func(error) {})
	d.life = l
	return l
}

// crash ends the life. Of what was not durable so many writes survive.
func (d *disk) crash(survivors func(n int) int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.life
	if l == nil || l.dead {
		return
	}
	l.dead = true
	for _, ops := range l.pending[:survivors(len(l.pending))] {
		d.durable.Commit(ops, func(error) {})
	}
	l.pending = nil
}

// Identity implements host.Disk.
func (l *diskLife) Identity() string { return l.disk.name }

// Commit implements host.Disk.
func (l *diskLife) Commit(ops []host.Op, done func(error)) {
	l.Memory.Commit(ops, func(error) {})
	d := l.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	l.pending = append(l.pending, slices.Clone(ops))
	// One after the other: what is due at one moment has no order.
	at := time.Now().Add(d.took())
	if !at.After(l.last) {
		at = l.last.Add(time.Microsecond)
	}
	l.last = at
	time.AfterFunc(time.Until(at), func() {
		d.mu.Lock()
		if !l.dead {
			d.durable.Commit(l.pending[0], func(error) {})
			l.pending = l.pending[1:]
		}
		d.mu.Unlock()
		done(nil) // of a dead machine nobody hears
	})
}

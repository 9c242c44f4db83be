package client_test

import (
	"bytes"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/protocol"
)

// A proofDisk is a shard's disk, which takes its time. What a machine wrote before its power failed
// is there afterwards as far as it was durable, and perhaps a little more.
type proofDisk struct {
	name    string
	took    func() time.Duration // for a write
	durably func(op host.Op)     // is told what is durable, in order
	mu      sync.Mutex
	durable *host.Memory
	life    *diskLife // of the machine that has it
}

// A diskLife is what one life of a machine sees of a disk.
type diskLife struct {
	*host.Memory // with all that was written
	disk         *proofDisk

	// The rest is guarded by the disk's lock.
	dead    bool
	pending [][]host.Op // what is not durable yet
	last    time.Time   // when the last write is durable
}

// open returns the disk for a life that begins.
func (d *proofDisk) open() *diskLife {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := &diskLife{Memory: host.NewMemory(), disk: d}
	var all []host.Op
	for k, v := range d.durable.Keys().Scan(nil, nil) {
		all = append(all, host.Op{Kind: protocol.KindPut, Key: bytes.Clone(k), Value: bytes.Clone(v)})
	}
	l.Memory.Commit(all, func(error) {})
	d.life = l
	return l
}

// crash ends the life. Of what was not durable so many writes survive.
func (d *proofDisk) crash(survivors func(n int) int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.life
	if l == nil || l.dead {
		return
	}
	l.dead = true
	for _, ops := range l.pending[:survivors(len(l.pending))] {
		d.keep(ops)
	}
	l.pending = nil
}

// keep makes a write durable. The lock is held.
func (d *proofDisk) keep(ops []host.Op) {
	d.durable.Commit(ops, func(error) {})
	for _, op := range ops {
		d.durably(op)
	}
}

// scan goes through what is durable.
func (d *proofDisk) scan(prefix string) iter.Seq2[[]byte, []byte] {
	return d.durable.Keys().Scan([]byte(prefix), []byte(prefix+"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
}

// Identity implements host.Disk.
func (l *diskLife) Identity() string { return l.disk.name }

// Commit implements host.Disk. Servers write keys only.
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
			d.keep(l.pending[0])
			l.pending = l.pending[1:]
		}
		d.mu.Unlock()
		done(nil) // of a dead machine nobody hears
	})
}

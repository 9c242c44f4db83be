package waldisk

import (
	"fmt"
	"iter"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/wal"
)

// A Disk is a host.Disk on a wal.Store.
type Disk struct {
	*wal.Node
	identity string
	batch    wal.Batch
}

var _ host.PatientDisk = (*Disk)(nil)

// New returns the disk of the node with a name. The store is closed by who opened it, after the
// host has stopped.
func New(store *wal.Store, name string) (*Disk, error) {
	n, err := store.Node(name)
	if err != nil {
		return nil, fmt.Errorf("waldisk: %w", err)
	}
	return &Disk{Node: n, identity: store.Identity().String()}, nil
}

// Identity returns the identity of the store, in hexadecimal.
func (d *Disk) Identity() string { return d.identity }

// Records goes through the log.
func (d *Disk) Records() iter.Seq2[host.Record, error] {
	return func(yield func(host.Record, error) bool) {
		for r, err := range d.Node.Records() {
			if !yield(host.Record{Index: r.Index, Bytes: r.Data}, err) {
				return
			}
		}
	}
}

// Keys returns the key space.
func (d *Disk) Keys() protocol.Keys { return d.Node.Keys() }

// Commit hands the operations to the store.
func (d *Disk) Commit(ops []host.Op, done func(error)) {
	d.fill(ops)
	d.Node.Commit(&d.batch, done)
}

// CommitUnhurried is part of host.PatientDisk.
func (d *Disk) CommitUnhurried(ops []host.Op, done func(error)) {
	d.fill(ops)
	d.Node.CommitUnhurried(&d.batch, done)
}

func (d *Disk) fill(ops []host.Op) {
	for _, op := range ops {
		switch op.Kind {
		case protocol.KindAppend:
			d.batch.AppendJoined(op.Index, op.Value, op.Refs)
		case protocol.KindTruncate:
			d.batch.Truncate(op.Index)
		case protocol.KindPut:
			d.batch.Put(op.Key, op.Value)
		case protocol.KindDelete:
			d.batch.Delete(op.Key)
		}
	}
}

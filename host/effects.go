package host

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/protocol"
)

// commitEvery is after how many calls at the latest what they wrote goes to the disk, and what they
// sent leaves.
const commitEvery = 256

// diskState is what the disk tells the node.
type diskState struct {
	durable atomic.Uint64 // the number of the last commit that is durable
	failure atomic.Pointer[error]
}

// A writeBatch is what calls have written since the last commit.
type writeBatch struct {
	number uint64 // of the last commit
	ops    []Op
	arena  *arena
	ends   []recordEnd // for each record
	keys   bool        // some op is about a key: the next call shall read it

	unhurried bool // a message waits for it that nobody waits for
	hurried   bool // another one does
}

// An arena holds the records of a batch until they are on the disk.
type arena struct {
	bytes []byte
	refs  []protocol.Ref // what belongs into the records, at places in each
}

// recordEnd is where a record ends in an arena.
type recordEnd struct{ bytes, refs int }

// held is a message that waits for a commit.
type held[M any] struct {
	after uint64
	to    protocol.ID
	msg   M
}

// heldQueue holds messages in their order. Invariant: their commits are in order as well.
type heldQueue[M any] struct {
	items []held[M]
	head  int
}

func (q *heldQueue[M]) len() int { return len(q.items) - q.head }

func (q *heldQueue[M]) push(h held[M]) {
	if q.head > 0 && q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	q.items = append(q.items, h)
}

// pop takes the first message, if it waits for no later commit than durable.
func (q *heldQueue[M]) pop(durable uint64) (h held[M], ok bool) {
	if q.head == len(q.items) || q.items[q.head].after > durable {
		return h, false
	}
	h = q.items[q.head]
	q.items[q.head] = held[M]{}
	q.head++
	if q.head > 1024 && q.head > len(q.items)/2 {
		rest := copy(q.items, q.items[q.head:])
		clear(q.items[rest:])
		q.items, q.head = q.items[:rest], 0
	}
	return h, true
}

// carryOut does what the last call wants done.
func (n *Node[M]) carryOut() error {
	if n.checked != nil {
		if err := n.checked.Check(); err != nil {
			return fmt.Errorf("%w: %w", errBroken, err)
		}
	}
	out := n.env.Out
	for i := range out {
		if out[i].Kind.Durable() {
			if err := n.write(&out[i]); err != nil {
				return err
			}
		}
	}
	after := n.batch.number
	if len(n.batch.ops) > 0 {
		after++
	}
	for i := range out {
		e := &out[i]
		switch e.Kind {
		case protocol.KindSend:
			if n.held.len() == 0 && n.disk.durable.Load() >= after {
				if err := n.send(e.To, e.Msg); err != nil {
					return err
				}
			} else {
				n.hold(held[M]{after, e.To, e.Msg}, e.Unhurried)
			}
		case protocol.KindSendAhead:
			if err := n.send(e.To, e.Msg); err != nil {
				return err
			}
		case protocol.KindAfter:
			n.timers.set(e.Timer, n.began+e.Delay)
		case protocol.KindStop:
			n.timers.stop(e.Timer)
		}
	}
	if n.batch.keys {
		n.commit()
	}
	return nil
}

// hold keeps a message until what it waits for is durable. If somebody waits for the message, the
// disk is not to put that off.
func (n *Node[M]) hold(h held[M], unhurried bool) {
	n.held.push(h)
	switch inBatch := h.after > n.batch.number; {
	case inBatch && unhurried:
		n.batch.unhurried = true
	case inBatch:
		n.batch.hurried = true
	case !unhurried && n.putOff && n.disk.durable.Load() < h.after:
		n.putOff = false
		n.patient.Hurry()
	}
}

// write adds an effect to the batch.
func (n *Node[M]) write(e *protocol.Effect[M]) error {
	b := &n.batch
	op := Op{Kind: e.Kind, Index: e.Index, Key: e.Key, Value: e.Value}
	switch e.Kind {
	case protocol.KindAppend:
		if err := n.writeRecord(e.Msg); err != nil {
			return fmt.Errorf("record %d: %w", e.Index, err)
		}
	case protocol.KindPut, protocol.KindDelete:
		b.keys = true
	}
	b.ops = append(b.ops, op)
	return nil
}

// writeRecord adds a record to the arena, but for large byte strings, which the disk gets from
// where they are.
func (n *Node[M]) writeRecord(msg M) (err error) {
	b := &n.batch
	if b.arena == nil {
		b.arena, _ = n.arenas.Get().(*arena)
		if b.arena == nil {
			b.arena = new(arena)
		}
	}
	a := b.arena
	start, first := len(a.bytes), len(a.refs)
	if n.sharing != nil {
		a.bytes, a.refs, err = n.sharing.AppendShared(a.bytes, a.refs, msg)
	} else {
		a.bytes, err = n.spec.Codec.Append(a.bytes, msg)
	}
	for i := range a.refs[first:] {
		a.refs[first+i].At -= start
	}
	b.ends = append(b.ends, recordEnd{len(a.bytes), len(a.refs)}) // the arena may still move
	return err
}

// encode puts a message into scratch and refs, until encoded is called.
func (n *Node[M]) encode(msg M) (err error) {
	n.refs = n.refs[:0]
	if n.sharing != nil {
		n.scratch, n.refs, err = n.sharing.AppendShared(n.scratch[:0], n.refs, msg)
	} else {
		n.scratch, err = n.spec.Codec.Append(n.scratch[:0], msg)
	}
	return err
}

// encoded says that scratch and refs are not needed any more.
func (n *Node[M]) encoded() {
	if cap(n.scratch) > maxScratch {
		n.scratch = nil
	}
	clear(n.refs)
}

// commit hands the batch to the disk.
func (n *Node[M]) commit() {
	b := &n.batch
	if len(b.ops) == 0 {
		return
	}
	var start recordEnd
	record := 0
	for i := range b.ops {
		if op := &b.ops[i]; op.Kind == protocol.KindAppend {
			end := b.ends[record]
			op.Value, op.Refs = b.arena.bytes[start.bytes:end.bytes:end.bytes], b.arena.refs[start.refs:end.refs:end.refs]
			start = end
			record++
		}
	}
	b.number++
	number, since := b.number, time.Now()
	n.stats.commits.Add(1)
	n.stats.ops.Add(uint64(len(b.ops)))
	n.stats.records.Add(uint64(record))
	written := b.arena
	commit := n.spec.Disk.Commit
	if n.putOff = n.patient != nil && b.unhurried && !b.hurried; n.putOff {
		commit = n.patient.CommitUnhurried
	}
	commit(b.ops, func(err error) {
		if err != nil {
			n.disk.failure.CompareAndSwap(nil, &err) // and the disk may have the records still
		} else {
			if written != nil {
				clear(written.refs)
				written.bytes, written.refs = written.bytes[:0], written.refs[:0]
				n.arenas.Put(written)
			}
			took := time.Since(since)
			n.stats.latency.add(took)
			if n.spec.Committed != nil {
				n.spec.Committed(took)
			}
			n.disk.durable.Store(number)
		}
		n.inbox.signal()
	})
	clear(b.ops)
	b.ops, b.ends, b.keys, b.unhurried, b.hurried = b.ops[:0], b.ends[:0], false, false, false
	b.arena = nil // the disk may still have it
}

// release sends what waited for what is durable now.
func (n *Node[M]) release() (worked bool, err error) {
	if failure := n.disk.failure.Load(); failure != nil {
		return false, fmt.Errorf("disk: %w", *failure)
	}
	durable := n.disk.durable.Load()
	for {
		h, ok := n.held.pop(durable)
		if !ok {
			return worked, nil
		}
		worked = true
		if err := n.send(h.to, h.msg); err != nil {
			return true, err
		}
	}
}

// send hands a message to whom it is for.
func (n *Node[M]) send(to protocol.ID, msg M) error {
	switch to {
	case protocol.App:
		if n.spec.App != nil {
			n.spec.App(msg)
		}
	case n.addr.ID:
		n.self = append(n.self, msg)
	default:
		if n.spec.Carry != nil {
			n.spec.Carry(to, msg)
			return nil
		}
		if err := n.encode(msg); err != nil {
			return fmt.Errorf("message to %d: %w", to, err)
		}
		n.port.SendShared(to, n.scratch, n.refs)
		n.encoded()
	}
	return nil
}

// maxScratch is how much memory for encoding a node keeps.
const maxScratch = 1 << 20

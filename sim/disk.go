package sim

import (
	"fmt"
	"slices"

	"github.com/foresay/foresay/protocol"
)

// A log is a node's records, as they are in memory: those that are not durable as well.
type log[M any] struct {
	records []record[M] // Invariant: records[i] has the index next - len(records) + i.
	next    uint64      // the index of the next record
	kept    int         // of records, how many at the end are not truncated. Invariant: kept <= len(records).
}

// A record is the bytes of one, or its value if it did not go through a codec.
type record[M any] struct {
	bytes []byte
	msg   M
}

// first returns the index of the first record that is kept.
func (l *log[M]) first() uint64 { return l.next - uint64(l.kept) }

// A write is what one call wrote: how to undo it. There is none of calls whose writes were durable
// at once.
type write struct {
	undo    []undo
	records int // appended
	kept    int // of the log, before
}

type undo struct {
	key string
	old []byte // nil: there was none
}

// write puts what a call wrote into the node's log and keys, and reports whether it wrote anything.
func (s *Sim[M]) write(n *node[M], out []protocol.Effect[M]) bool {
	if !slices.ContainsFunc(out, func(e protocol.Effect[M]) bool { return e.Kind.Durable() }) {
		return false
	}
	n.writes++
	crashes := n.crashing.in == n.writes
	atOnce := n.disk == Disk{} && !n.syncing && !crashes // what was written before comes first
	w := write{kept: n.log.kept}
	for i := range out {
		e := &out[i]
		switch e.Kind {
		case protocol.KindAppend:
			s.append(n, e)
			w.records++
		case protocol.KindTruncate:
			s.hash.add(e.Index<<8 | uint64(e.Kind))
			if before := min(e.Index, n.log.next); before > n.log.first() {
				n.log.kept = int(n.log.next - before)
			}
		case protocol.KindPut, protocol.KindDelete:
			u := undo{key: string(e.Key)}
			u.old = s.put(n, e, u.key)
			if !atOnce {
				w.undo = append(w.undo, u)
			}
		}
		s.trace.effect(s, n, e)
	}
	n.written++
	if atOnce {
		n.durable = n.written
		n.log.trim()
		return true
	}
	n.pending = append(n.pending, w)
	if !n.syncing && !crashes {
		s.sync(n)
	}
	return true
}

func (s *Sim[M]) append(n *node[M], e *protocol.Effect[M]) {
	s.hash.add(e.Index<<8 | uint64(e.Kind))
	if e.Index != n.log.next {
		panic(fmt.Sprintf("sim: node %d got the index %d for its record %d", n.id, e.Index, n.log.next))
	}
	r := record[M]{msg: e.Msg}
	if s.throughCodec() {
		r = record[M]{bytes: slices.Clone(s.encode(n, e.Msg))}
	}
	n.log.records = append(n.log.records, r)
	n.log.next++
	n.log.kept++
}

func (s *Sim[M]) put(n *node[M], e *protocol.Effect[M], key string) (old []byte) {
	s.hash.add(uint64(e.Kind))
	s.hash.bytes(e.Key)
	if e.Kind == protocol.KindDelete {
		return n.keys.set(key, nil)
	}
	s.hash.bytes(e.Value)
	value := e.Value
	if value == nil {
		value = []byte{}
	}
	return n.keys.set(key, value)
}

// trim gives up the memory of truncated records, once that is half of the log.
func (l *log[M]) trim() {
	if len(l.records) > 2*l.kept+64 {
		l.records = slices.Clone(l.records[len(l.records)-l.kept:])
	}
}

// sync begins to make durable what was written.
func (s *Sim[M]) sync(n *node[M]) {
	n.syncing = true
	n.syncs++
	d := n.disk.Latency
	if n.disk.Jitter > 0 {
		d += s.random(n.disk.Jitter, uint64(n.id)<<32|uint64(n.incarnation), n.syncs)
	}
	s.add(d, event[M]{kind: evSync, node: n.index, incarnation: n.incarnation, n: n.written})
}

// synced makes durable what a sync was for, and sends what waited for it.
func (s *Sim[M]) synced(n *node[M], upTo uint64) {
	n.syncing = false
	n.pending = slices.Delete(n.pending, 0, int(upTo-n.durable))
	n.durable = upTo
	if len(n.pending) == 0 {
		n.log.trim()
	}
	for n.first < len(n.waiting) && n.waiting[n.first].needs <= n.durable {
		p := &n.waiting[n.first]
		s.chain = p.chain
		s.send(n, p.to, p.msg)
		*p = parcel[M]{}
		n.first++
		s.parcels--
	}
	if n.first == len(n.waiting) {
		n.waiting, n.first = n.waiting[:0], 0
	}
	if n.written > n.durable {
		s.sync(n)
	}
}

// lose undoes all pending writes but the first keep ones; what is left is durable.
func (n *node[M]) lose(keep int) {
	for _, w := range slices.Backward(n.pending[keep:]) {
		for _, u := range slices.Backward(w.undo) {
			n.keys.set(u.key, u.old)
		}
		l := &n.log
		clear(l.records[len(l.records)-w.records:])
		l.records = l.records[:len(l.records)-w.records]
		l.next -= uint64(w.records)
		l.kept = w.kept
	}
	n.pending = nil
	n.written, n.durable = 0, 0
	n.syncing = false
	n.log.trim()
}

// records returns a node's log as it is given to its next incarnation.
func (s *Sim[M]) records(n *node[M]) ([]protocol.Record[M], error) {
	first := n.log.first()
	var out []protocol.Record[M]
	for i, r := range n.log.records[len(n.log.records)-n.log.kept:] {
		msg := r.msg
		if r.bytes != nil {
			var err error
			if msg, err = s.config.Codec.Decode(r.bytes); err != nil {
				return nil, fmt.Errorf("decode its record %d: %w", first+uint64(i), err)
			}
		}
		out = append(out, protocol.Record[M]{Index: first + uint64(i), Msg: msg})
	}
	return out, nil
}

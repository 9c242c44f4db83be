package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/foresay/foresay/protocol"
)

// A Node is one node's namespace in a store: a log and a key space. Its methods may be called
// concurrently, but commits of one node have an order only if they are made one after the other.
type Node struct {
	store *Store
	name  string

	keyPrefix    []byte
	recordPrefix []byte
	lowKey       []byte

	mu      sync.Mutex // taken after the store's
	low     uint64     // the log's lowest index. Invariant: 1 <= swept <= low <= next.
	next    uint64
	swept   uint64   // records below this one are deleted in the database, those from it to low are not yet
	garbage int      // bytes of records that were appended since the last sweep, at most
	younger *pending // of commits that wait
	older   *pending // of the group that is being written; nil outside of one
	cache   readCache
	commits uint64 // how many were accepted
	broken  error  // a commit was refused: what follows it stands on nothing
}

// A Record is an entry of a node's log.
type Record struct {
	Index uint64
	Data  []byte
}

// Node returns the namespace of a node, which is empty at first. The same name gives the same Node.
// Names have 1 to 255 bytes.
func (s *Store) Node(name string) (*Node, error) {
	if err := checkName(name); err != nil {
		return nil, fmt.Errorf("wal: %w", err)
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	if err := s.usable(); err != nil {
		return nil, err
	}
	if n := s.nodes[name]; n != nil {
		return n, nil
	}
	n := &Node{
		store: s, name: name, younger: &pending{},
		keyPrefix: entryPrefix(name, kindKey), recordPrefix: entryPrefix(name, kindRecord),
		lowKey: entryPrefix(name, kindLow),
	}
	if err := n.load(); err != nil {
		return nil, fmt.Errorf("wal: %s: node %q: %w", s.dir, name, err)
	}
	s.nodes[name] = n
	s.nodeCount.Add(1)
	return n, nil
}

// load finds the ends of the log.
func (n *Node) load() error {
	n.low = 1
	value, closer, err := n.store.db.Get(n.lowKey)
	switch {
	case err == nil:
		low, err := decodeLow(value)
		if err := errors.Join(err, closer.Close()); err != nil {
			return err
		}
		n.low = low
	case !errors.Is(err, pebble.ErrNotFound):
		return err
	}
	n.swept, n.next = n.low, n.low
	it, err := n.store.db.NewIter(&pebble.IterOptions{LowerBound: n.recordPrefix, UpperBound: prefixEnd(n.recordPrefix)})
	if err != nil {
		return err
	}
	if it.First() {
		first, err := decodeIndex(it.Key()[len(n.recordPrefix):])
		if err != nil {
			return errors.Join(err, it.Close())
		}
		n.swept = min(n.swept, first)
	}
	if it.Last() {
		last, err := decodeIndex(it.Key()[len(n.recordPrefix):])
		if err != nil {
			return errors.Join(err, it.Close())
		}
		n.next = max(n.next, last+1)
	}
	return it.Close()
}

// Name returns the node's name.
func (n *Node) Name() string { return n.name }

// NextIndex returns the index that the next record must have, 1 in an empty log that was never
// truncated.
func (n *Node) NextIndex() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.next
}

// Records goes through the log from its lowest index on, as it is when the loop begins. It ends
// with an error if records cannot be read or are missing; the store stops then too. What it yields
// is the caller's.
func (n *Node) Records() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		n.mu.Lock()
		want, next := n.low, n.next
		var waiting []op
		if n.older != nil {
			waiting = append(waiting, n.older.appends...)
		}
		waiting = append(waiting, n.younger.appends...)
		n.mu.Unlock()
		want, more, err := n.stored(want, next, yield)
		if !more {
			return
		}
		for _, o := range waiting {
			if err == nil && o.index == want {
				want++
				if !yield(Record{Index: o.index, Data: protocol.AppendJoined(nil, o.value, o.refs)}, nil) {
					return
				}
			}
		}
		if err == nil && want != next {
			err = &DamageError{File: n.store.fs.PathJoin(n.store.dir, databaseName),
				Problem: fmt.Sprintf("the log has no record %d, though it goes up to %d", want, next-1)}
		}
		if err != nil {
			yield(Record{}, n.store.fail(fmt.Errorf("node %q: records: %w", n.name, err)))
		}
	}
}

// stored yields the database's records from one index up to, but not including, next. It returns
// the index after the last one, and whether the loop goes on.
func (n *Node) stored(from, next uint64, yield func(Record, error) bool) (uint64, bool, error) {
	it, err := n.store.newIter(appendIndex(n.recordPrefix[:len(n.recordPrefix):len(n.recordPrefix)], from),
		prefixEnd(n.recordPrefix))
	if err != nil {
		return from, true, err
	}
	want := from
	for it.First(); it.Valid() && want < next; it.Next() {
		index, err := decodeIndex(it.Key()[len(n.recordPrefix):])
		if err != nil {
			return want, true, errors.Join(err, it.Close())
		}
		if index != want {
			break // missing, or not in the database yet when a waiting one follows
		}
		data, err := it.ValueAndErr()
		if err != nil {
			return want, true, errors.Join(err, it.Close())
		}
		want++
		if !yield(Record{Index: index, Data: append([]byte(nil), data...)}, nil) {
			return want, false, it.Close()
		}
	}
	return want, true, it.Close()
}

const (
	sweepRecords = 1024
	sweepBytes   = 4 << 20
)

// check reports whether a batch's indexes fit the log, and where it would end.
func (n *Node) check(b *Batch) (low, next uint64, err error) {
	low, next = n.low, n.next
	for _, o := range b.ops {
		switch o.kind {
		case opAppend:
			if o.index != next {
				return 0, 0, fmt.Errorf("appends record %d, but %d is next", o.index, next)
			}
			next++
		case opTruncate:
			if o.index > next {
				return 0, 0, fmt.Errorf("truncates before %d, beyond the log's end at %d", o.index, next)
			}
			low = max(low, o.index)
		case opPut, opDelete:
		}
	}
	return low, next, nil
}

// write puts a checked batch's operations into the database's batch.
func (n *Node) write(to *pebble.Batch, c *commit) error {
	var err error
	for _, o := range c.ops {
		switch o.kind {
		case opAppend:
			d := to.SetDeferred(len(n.recordPrefix)+8, o.valueBytes())
			appendIndex(append(d.Key[:0], n.recordPrefix...), o.index)
			protocol.AppendJoined(d.Value[:0], o.value, o.refs)
			err = d.Finish()
		case opPut:
			d := to.SetDeferred(len(n.keyPrefix)+len(o.key), len(o.value))
			copy(d.Key[copy(d.Key, n.keyPrefix):], o.key)
			copy(d.Value, o.value)
			err = d.Finish()
		case opDelete:
			d := to.DeleteDeferred(len(n.keyPrefix) + len(o.key))
			copy(d.Key[copy(d.Key, n.keyPrefix):], o.key)
			err = d.Finish()
		case opTruncate: // below, once
		}
		if err != nil {
			return err
		}
	}
	if c.low != 0 {
		err = to.Set(n.lowKey, binary.AppendUvarint(nil, c.low), nil)
	}
	if err == nil && c.sweepTo > c.sweepFrom {
		err = to.DeleteRange(n.recordKey(c.sweepFrom), n.recordKey(c.sweepTo), nil)
	}
	return err
}

func (n *Node) recordKey(index uint64) []byte {
	return appendIndex(n.recordPrefix[:len(n.recordPrefix):len(n.recordPrefix)], index)
}

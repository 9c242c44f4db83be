package wal

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"github.com/foresay/foresay/protocol"
)

// Keys is a node's key space, with all that was committed, durable or not. It is a protocol.Keys.
// It may be read concurrently.
//
// It has no way to return an error: when the disk cannot be read, the store stops, and what Keys
// says is worth nothing. Who acts on an answer asks [Store.Err] before anything leaves; a Commit
// made after the answer fails anyway.
type Keys struct{ node *Node }

// Keys returns the node's key space.
func (n *Node) Keys() Keys { return Keys{n} }

// Get returns the value of a key. It must not be changed.
func (k Keys) Get(key []byte) ([]byte, bool) {
	n := k.node
	limit := n.store.readCacheLimit()
	n.mu.Lock()
	w, ok := n.younger.get(key)
	if !ok {
		w, ok = n.older.get(key)
	}
	if !ok {
		w, ok = n.cache.get(key, limit)
	}
	commits := n.commits
	n.mu.Unlock()
	if ok {
		return w.value, !w.deleted
	}
	value, err := n.store.read(append(n.keyPrefix[:len(n.keyPrefix):len(n.keyPrefix)], key...))
	absent := errors.Is(err, pebble.ErrNotFound)
	if err != nil && !absent {
		n.store.fail(fmt.Errorf("node %q: read key %x: %w", n.name, key, err))
		return nil, false
	}
	n.mu.Lock()
	if n.commits == commits { // it is not older than what is in the database
		n.cache.put(write{key: bytes.Clone(key), value: value, deleted: absent}, limit)
	}
	n.mu.Unlock()
	return value, !absent
}

// Scan goes through the keys from lo up to, but not including, hi, in their order, as they are when
// the loop begins; hi of nil is no end. What it yields stays as it is, and must not be changed.
func (k Keys) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		n := k.node
		// First what waits, then the database: a write is moved in this direction, so that none is
		// missed. One that is seen twice is the same.
		n.mu.Lock()
		waiting := mergeWrites(n.older.between(lo, hi), n.younger.between(lo, hi))
		n.mu.Unlock()
		if err := n.scan(lo, hi, waiting, yield); err != nil {
			n.store.fail(fmt.Errorf("node %q: read keys from %x: %w", n.name, lo, err))
		}
	}
}

func (n *Node) scan(lo, hi []byte, waiting []write, yield func(key, value []byte) bool) error {
	cut := len(n.keyPrefix)
	upper := prefixEnd(n.keyPrefix)
	if hi != nil {
		upper = append(n.keyPrefix[:cut:cut], hi...)
	}
	it, err := n.store.newIter(append(n.keyPrefix[:cut:cut], lo...), upper)
	if err != nil {
		return err
	}
	for it.First(); it.Valid(); it.Next() {
		key := it.Key()[cut:]
		for len(waiting) > 0 && bytes.Compare(waiting[0].key, key) < 0 {
			w := waiting[0]
			waiting = waiting[1:]
			if !w.deleted && !yield(w.key, w.value) {
				return it.Close()
			}
		}
		if len(waiting) > 0 && bytes.Equal(waiting[0].key, key) {
			continue // written anew: the next turn or the end yields it
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return errors.Join(err, it.Close())
		}
		pair := append(append(make([]byte, 0, len(key)+len(value)), key...), value...)
		if !yield(pair[:len(key):len(key)], pair[len(key):]) {
			return it.Close()
		}
	}
	if err := it.Close(); err != nil {
		return err
	}
	for _, w := range waiting {
		if !w.deleted && !yield(w.key, w.value) {
			return nil
		}
	}
	return nil
}

var _ protocol.Keys = Keys{}

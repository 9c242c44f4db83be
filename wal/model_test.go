package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/wal/faultfs"
)

// A history is what nodes committed, and what was acknowledged when. Of each batch the model knows
// what the node must look like after it, so that what is found after a crash can be compared with
// the state after some number of batches: atomic, in order, no gaps, no phantoms.
type history struct {
	mu    sync.Mutex
	nodes []*nodeHistory
}

type nodeHistory struct {
	name  string
	after []image // after so many batches
	acked []int   // batch i was acknowledged when the disk had done acked[i] operations; -1 if it was not
}

// image is a node as it is found.
type image struct {
	low, next uint64
	records   []Record
	keys      map[string]string
}

func (m image) String() string {
	return fmt.Sprintf("records %d to %d (%d of them), %d keys, batch %s", m.low, m.next-1, len(m.records), len(m.keys),
		m.keys[counterKey])
}

// counterKey is written by each batch, with the batch's number.
const counterKey = "batch"

func (m image) equal(other image) bool {
	return m.low == other.low && m.next == other.next &&
		slices.EqualFunc(m.records, other.records, func(a, b Record) bool {
			return a.Index == b.Index && bytes.Equal(a.Data, b.Data)
		}) && fmt.Sprint(m.keys) == fmt.Sprint(other.keys)
}

func newHistory(nodes int) *history {
	h := &history{}
	for i := range nodes {
		h.nodes = append(h.nodes, &nodeHistory{name: fmt.Sprintf("node-%d", i),
			after: []image{{low: 1, next: 1, keys: map[string]string{}}}})
	}
	return h
}

// next makes a node's next batch: of 0 to 4 records, a truncation sometimes, 1 to 4 keys.
func (n *nodeHistory) next(rnd *rand.Rand, maxBytes int) *Batch {
	last := n.after[len(n.after)-1]
	now := image{low: last.low, next: last.next, records: slices.Clone(last.records), keys: make(map[string]string)}
	for k, v := range last.keys {
		now.keys[k] = v
	}
	b := &Batch{}
	for range rnd.IntN(5) {
		data := randomBytes(rnd, maxBytes)
		b.AppendJoined(cut(rnd, now.next, data))
		now.records = append(now.records, Record{Index: now.next, Data: data})
		now.next++
	}
	if rnd.IntN(4) == 0 {
		now.low += uint64(rnd.IntN(int(now.next-now.low) + 1))
		b.Truncate(now.low)
		now.records = slices.DeleteFunc(now.records, func(r Record) bool { return r.Index < now.low })
	}
	for range rnd.IntN(4) {
		key := fmt.Sprintf("key-%d", rnd.IntN(20))
		if rnd.IntN(3) == 0 {
			b.Delete([]byte(key))
			delete(now.keys, key)
			continue
		}
		value := randomBytes(rnd, maxBytes)
		b.Put([]byte(key), value)
		now.keys[key] = string(value)
	}
	number := fmt.Sprint(len(n.after))
	b.Put([]byte(counterKey), []byte(number))
	now.keys[counterKey] = number
	n.after = append(n.after, now)
	n.acked = append(n.acked, -1)
	return b
}

// cut makes a record of bytes, some of which are at other places, or none.
func cut(rnd *rand.Rand, index uint64, data []byte) (_ uint64, record []byte, refs []protocol.Ref) {
	for range rnd.IntN(3) {
		n := rnd.IntN(len(data) + 1)
		m := n + rnd.IntN(len(data)-n+1)
		record = append(record, data[:n]...)
		refs = append(refs, protocol.Ref{At: len(record), Data: data[n:m]})
		data = data[m:]
	}
	return index, append(record, data...), refs
}

func randomBytes(rnd *rand.Rand, maxBytes int) []byte {
	data := make([]byte, rnd.IntN(maxBytes+1)+8)
	for i := 0; i+8 <= len(data); i += 8 {
		binary.LittleEndian.PutUint64(data[i:], rnd.Uint64())
	}
	return data
}

// run commits batches of all nodes to a store, a few at a time, and returns when the last is done.
// It notes the acknowledgements with the number of operations that the disk had done.
func (h *history) run(s *Store, disk *faultfs.Disk, rnd *rand.Rand, batches, maxBytes int) error {
	var failures []error
	var waiting sync.WaitGroup
	for i := range batches {
		n := h.nodes[rnd.IntN(len(h.nodes))]
		node, err := s.Node(n.name)
		if err != nil {
			return err
		}
		h.mu.Lock()
		batch := n.next(rnd, maxBytes)
		at := len(n.acked) - 1
		h.mu.Unlock()
		waiting.Add(1)
		node.Commit(batch, func(err error) {
			defer waiting.Done()
			h.mu.Lock()
			defer h.mu.Unlock()
			if err != nil {
				failures = append(failures, err)
				return
			}
			n.acked[at] = disk.Ops()
		})
		if i%5 == 4 || rnd.IntN(3) == 0 {
			waiting.Wait()
		}
	}
	waiting.Wait()
	if len(failures) > 0 {
		return failures[0]
	}
	return nil
}

// check compares what a store has with what was committed, when the disk had done so many
// operations.
func (h *history) check(s *Store, ops int) error {
	var errs []error
	for _, n := range h.nodes {
		found, err := look(s, n.name)
		if err == nil {
			err = n.check(found, ops)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", n.name, err))
		}
	}
	return errors.Join(errs...)
}

func (n *nodeHistory) check(found image, ops int) error {
	acked := 0
	for i, at := range n.acked {
		if at >= 0 && at <= ops {
			acked = i + 1
		}
	}
	batch := 0
	if number, ok := found.keys[counterKey]; ok {
		if _, err := fmt.Sscan(number, &batch); err != nil || batch >= len(n.after) {
			return fmt.Errorf("a phantom: %v", found)
		}
	}
	if want := n.after[batch]; !found.equal(want) {
		return fmt.Errorf("found %v, but after batch %d it was %v", found, batch, want)
	}
	if batch < acked {
		return fmt.Errorf("found %d batches, but %d were acknowledged", batch, acked)
	}
	return nil
}

// look reads all of a node.
func look(s *Store, name string) (image, error) {
	node, err := s.Node(name)
	if err != nil {
		return image{}, err
	}
	node.mu.Lock()
	m := image{low: node.low, next: node.next, keys: make(map[string]string)}
	node.mu.Unlock()
	for r, err := range node.Records() {
		if err != nil {
			return m, err
		}
		m.records = append(m.records, r)
	}
	for key, value := range node.Keys().Scan(nil, nil) {
		m.keys[string(key)] = string(value)
		if again, ok := node.Keys().Get(key); !ok || !bytes.Equal(again, value) {
			return m, fmt.Errorf("key %s: scan and get differ", key)
		}
	}
	return m, s.Err()
}

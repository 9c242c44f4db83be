package wal

import (
	"bytes"
	"slices"
)

// pending is what commits of one node wrote that the database does not have yet.
type pending struct {
	newest  map[string]write
	sorted  []write // the same in the order of keys, nil when it has to be made
	appends []op    // of records
}

type write struct {
	key, value []byte
	deleted    bool
}

func (p *pending) add(o op) {
	switch o.kind {
	case opAppend:
		p.appends = append(p.appends, o)
	case opPut, opDelete:
		if p.newest == nil {
			p.newest = make(map[string]write)
		}
		p.newest[string(o.key)] = write{key: o.key, value: o.value, deleted: o.kind == opDelete}
		p.sorted = nil
	case opTruncate: // the node knows its lowest index
	}
}

func (p *pending) get(key []byte) (write, bool) {
	if p == nil {
		return write{}, false
	}
	w, ok := p.newest[string(key)]
	return w, ok
}

// between returns the writes in a range in the order of keys; hi of nil is no end. What it returns
// is not changed later.
func (p *pending) between(lo, hi []byte) []write {
	if p == nil || len(p.newest) == 0 {
		return nil
	}
	if p.sorted == nil {
		p.sorted = make([]write, 0, len(p.newest))
		for _, w := range p.newest {
			p.sorted = append(p.sorted, w)
		}
		slices.SortFunc(p.sorted, func(a, b write) int { return bytes.Compare(a.key, b.key) })
	}
	from, _ := slices.BinarySearchFunc(p.sorted, lo, compareKey)
	to := len(p.sorted)
	if hi != nil {
		to, _ = slices.BinarySearchFunc(p.sorted, hi, compareKey)
	}
	return p.sorted[from:max(from, to)]
}

func compareKey(w write, key []byte) int { return bytes.Compare(w.key, key) }

// mergeWrites puts the newer writes over the older ones, both in the order of keys.
func mergeWrites(older, newer []write) []write {
	if len(older) == 0 {
		return newer
	}
	if len(newer) == 0 {
		return older
	}
	merged := make([]write, 0, len(older)+len(newer))
	for len(older) > 0 && len(newer) > 0 {
		c := bytes.Compare(older[0].key, newer[0].key)
		if c < 0 {
			merged, older = append(merged, older[0]), older[1:]
			continue
		}
		if c == 0 {
			older = older[1:]
		}
		merged, newer = append(merged, newer[0]), newer[1:]
	}
	return append(append(merged, older...), newer...)
}

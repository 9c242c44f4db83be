package history

import (
	"fmt"
	"maps"
	"slices"
)

// Writes are known by their number. Two numbers stand for none.
const (
	writeInitial = -1 // the initial version
	writeGarbage = -2 // what nobody wrote
)

// write is one write of a version, or append of an element.
type write struct {
	txn   int32
	key   int32
	value string
	final bool  // its transaction wrote the key no more
	place int32 // in the key's order, or noPlace
}

const noPlace = -1

// keyVersions is what is known of one key.
type keyVersions struct {
	name     string
	list     bool
	recorded bool     // the order is the store's, and complete
	order    []string // the oldest first
	writes   []int32  // of each of order, or writeGarbage
	broken   bool     // two reads disagree on the order
	dirty    []int32  // the places of aborted writes
	all      []int32  // all writes of the key, in the order of the history
}

// txnIndex resolves the names of a history: keys, versions, who wrote them, in which order.
type txnIndex struct {
	h    Transactions
	keys []keyVersions
	// keyOf and accessKey number the keys: by name, and by transaction and access.
	keyOf     map[string]int32
	accessKey [][]int32
	writes    []write
	byValue   map[version]int32
	// seen tells of each transaction whether it committed: its client was told, or somebody saw its
	// writes.
	seen []bool
	// queue holds transactions that are newly known to have committed, whose reads show others.
	queue  []int32
	own    []ownAppends // by key
	report *Report
}

// ownAppends counts what a transaction appended to a key so far.
type ownAppends struct {
	txn   int32
	count int
}

type version struct {
	key   int32
	value string
}

// newTxnIndex resolves a history and reports what is wrong with its versions and their order.
func newTxnIndex(h Transactions, report *Report) (*txnIndex, error) {
	if err := h.validate(); err != nil {
		return nil, err
	}
	x := &txnIndex{
		h:         h,
		keyOf:     make(map[string]int32),
		accessKey: make([][]int32, len(h.Txns)),
		byValue:   make(map[version]int32),
		seen:      make([]bool, len(h.Txns)),
		report:    report,
	}
	if err := x.numberAccesses(); err != nil {
		return nil, err
	}
	for t := range h.Txns {
		if h.Txns[t].Outcome == Returned {
			x.commit(int32(t))
		}
	}
	x.readRecordedOrders()
	x.observe()
	if err := x.orderSingleWrites(); err != nil {
		return nil, err
	}
	for k := range x.keys {
		x.placeVersions(int32(k))
	}
	return x, nil
}

func (x *txnIndex) key(name string, list bool) (int32, error) {
	k, ok := x.keyOf[name]
	if !ok {
		k = int32(len(x.keys))
		x.keyOf[name] = k
		x.keys = append(x.keys, keyVersions{name: name, list: list})
	}
	if x.keys[k].list != list {
		return 0, fmt.Errorf("history: key %q is used as a register and as a list", name)
	}
	return k, nil
}

// numberAccesses gives numbers to keys and writes.
func (x *txnIndex) numberAccesses() error {
	total := 0
	for t := range x.h.Txns {
		total += len(x.h.Txns[t].Accesses)
	}
	numbers := make([]int32, total)
	for t := range x.h.Txns {
		txn := &x.h.Txns[t]
		x.accessKey[t], numbers = numbers[:len(txn.Accesses)], numbers[len(txn.Accesses):]
		for i := range txn.Accesses {
			a := &txn.Accesses[i]
			k, err := x.key(a.Key, a.Kind == ReadList || a.Kind == Append)
			if err != nil {
				return fmt.Errorf("%w, the latter by access %d of %v", err, i, txn.ID)
			}
			x.accessKey[t][i] = k
			if a.Kind != Write && a.Kind != Append {
				continue
			}
			w := int32(len(x.writes))
			if other, ok := x.byValue[version{k, a.Value}]; ok {
				return fmt.Errorf("history: %v and %v both write %q to %q: a key's values must be unique",
					x.id(x.writes[other].txn), txn.ID, a.Value, a.Key)
			}
			x.byValue[version{k, a.Value}] = w
			all := &x.keys[k].all
			if n := len(*all); n > 0 && x.writes[(*all)[n-1]].txn == int32(t) {
				x.writes[(*all)[n-1]].final = false
			}
			*all = append(*all, w)
			x.writes = append(x.writes, write{txn: int32(t), key: k, value: a.Value, final: true, place: noPlace})
		}
	}
	return nil
}

func (x *txnIndex) id(txn int32) TxnID {
	return x.h.Txns[txn].ID
}

// find returns the write of a value.
func (x *txnIndex) find(key int32, value string) int32 {
	if value == Initial {
		return writeInitial
	}
	if w, ok := x.byValue[version{key, value}]; ok {
		return w
	}
	return writeGarbage
}

func (x *txnIndex) outcome(w int32) Outcome {
	return x.h.Txns[x.writes[w].txn].Outcome
}

// commit notes that a transaction is known to have committed.
func (x *txnIndex) commit(txn int32) {
	if !x.seen[txn] && x.h.Txns[txn].Outcome != Failed {
		x.seen[txn] = true
		x.queue = append(x.queue, txn)
	}
}

func (x *txnIndex) sawWrite(w int32) {
	if w >= 0 {
		x.commit(x.writes[w].txn)
	}
}

// readRecordedOrders takes over the store's word; what is in it has committed.
func (x *txnIndex) readRecordedOrders() {
	for _, name := range slices.Sorted(maps.Keys(x.h.Versions)) {
		k, ok := x.keyOf[name]
		if !ok { // nobody accessed it: each version is garbage
			k = int32(len(x.keys))
			x.keyOf[name] = k
			x.keys = append(x.keys, keyVersions{name: name})
		}
		key := &x.keys[k]
		key.recorded, key.order = true, x.h.Versions[name]
		for _, value := range key.order {
			x.sawWrite(x.find(k, value))
		}
	}
}

// observe follows the reads of committed transactions to what they saw, and finds the longest read
// of each list. What a transaction appended itself before it read counts for nothing: others may
// come before.
func (x *txnIndex) observe() {
	x.own = make([]ownAppends, len(x.keys))
	for len(x.queue) > 0 {
		t := x.queue[0]
		x.queue = x.queue[1:]
		for i := range x.h.Txns[t].Accesses {
			x.observeAccess(t, x.accessKey[t][i], &x.h.Txns[t].Accesses[i])
		}
	}
}

func (x *txnIndex) observeAccess(t, k int32, a *Access) {
	own := &x.own[k]
	switch {
	case a.Kind == Read && a.Value != Initial:
		x.sawWrite(x.find(k, a.Value))
	case a.Kind == Append && own.count > 0 && own.txn == t:
		own.count++
	case a.Kind == Append:
		*own = ownAppends{txn: t, count: 1}
	case a.Kind == ReadList:
		others := len(a.List)
		if own.txn == t {
			others = max(0, others-own.count)
		}
		x.observeList(t, k, a.List[:others])
	}
}

// observeList compares a list with the longest one of its key, or with the recorded order.
func (x *txnIndex) observeList(reader, k int32, list []string) {
	key := &x.keys[k]
	short, long := key.order, list
	if len(short) > len(long) || key.recorded {
		short, long = long, short
	}
	if common := commonPrefix(short, long); common < len(short) {
		for _, value := range list {
			x.sawWrite(x.find(k, value))
		}
		key.broken = true
		x.report.add(Anomaly{Phenomenon: IncompatibleOrder, Txns: []TxnID{x.id(reader)}}, func() string {
			other := "another read"
			if key.recorded {
				other = "the store's record"
			}
			return fmt.Sprintf("%v read the list %q with %s at place %d, where %s has %s",
				x.id(reader), key.name, at(list, common), common, other, at(key.order, common))
		})
		return
	}
	if !key.recorded && len(list) > len(key.order) {
		for _, value := range list[len(key.order):] {
			x.sawWrite(x.find(k, value))
		}
		key.order = list
	}
}

func commonPrefix(a, b []string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func at(list []string, i int) string {
	if i < len(list) {
		return fmt.Sprintf("%q", list[i])
	}
	return "nothing"
}

// orderSingleWrites orders the registers without a record that one transaction wrote at most.
func (x *txnIndex) orderSingleWrites() error {
	for k := range x.keys {
		key := &x.keys[k]
		if key.recorded || key.list {
			continue
		}
		writer := int32(-1)
		for _, w := range key.all {
			t := x.writes[w].txn
			switch {
			case !x.seen[t]:
				continue
			case writer >= 0 && writer != t:
				return fmt.Errorf("history: several transactions, %v and %v among them, wrote %q: the order of its versions "+
					"must be recorded",
					x.id(writer), x.id(t), key.name)
			}
			writer = t
			key.order = append(key.order, x.writes[w].value)
		}
	}
	return nil
}

// placeVersions resolves a key's order and reports what should not be in it, or should.
func (x *txnIndex) placeVersions(k int32) {
	key := &x.keys[k]
	key.writes = make([]int32, len(key.order))
	for i, value := range key.order {
		w := x.find(k, value)
		if w == writeInitial {
			w = writeGarbage
		}
		key.writes[i] = w
		switch {
		case w == writeGarbage:
			x.report.add(Anomaly{Phenomenon: GarbageRead}, func() string {
				return fmt.Sprintf("version %q of %q is in the order, and nobody wrote it", value, key.name)
			})
			continue
		case x.writes[w].place != noPlace:
			x.report.add(Anomaly{Phenomenon: Duplicate, Txns: []TxnID{x.id(x.writes[w].txn)}}, func() string {
				return fmt.Sprintf("version %q of %q, by %v, is in the order twice", value, key.name, x.id(x.writes[w].txn))
			})
			key.writes[i] = writeGarbage
			continue
		case x.outcome(w) == Failed:
			key.dirty = append(key.dirty, int32(i))
		}
		x.writes[w].place = int32(i)
	}
	x.reportDirty(key)
	if !key.recorded {
		return
	}
	for _, w := range key.all {
		if x.writes[w].place != noPlace || !x.writes[w].final || !x.seen[x.writes[w].txn] {
			continue
		}
		x.report.add(Anomaly{Phenomenon: LostWrite, Txns: []TxnID{x.id(x.writes[w].txn)}}, func() string {
			return fmt.Sprintf("%v committed, and its version %q of %q is not among those that the store recorded",
				x.id(x.writes[w].txn), x.writes[w].value, key.name)
		})
	}
}

// reportDirty reports aborted writes that stayed: those that the store recorded, or that are
// followed by others.
func (x *txnIndex) reportDirty(key *keyVersions) {
	for _, place := range key.dirty {
		w := key.writes[place]
		if !key.recorded && int(place) == len(key.order)-1 {
			continue
		}
		x.report.add(Anomaly{Phenomenon: DirtyUpdate, Txns: []TxnID{x.id(x.writes[w].txn)}}, func() string {
			return fmt.Sprintf("%v aborted, and its version %q of %q stayed among the key's versions",
				x.id(x.writes[w].txn), x.writes[w].value, key.name)
		})
	}
}

package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Tx is what a transaction's program reads and writes by, wherever it runs: the client of a store
// has it, and so have transactions in the simulator. A program finds what it has read or written
// before.
type Tx interface {
	// Get returns a key's value, and whether there is one. An error ends the transaction: the program
	// is to return it.
	Get(ctx context.Context, key string) (value []byte, ok bool, err error)
	// Put has the transaction write a key when it commits.
	Put(key string, value []byte) error
}

// Op is one operation of a transaction. A transaction reads and writes each key in one Op.
type Op struct {
	Key   uint64
	Read  bool
	Write bool // after the read, if it is both
}

// Txn is a transaction: its operations are made one after the other, since what it does next may
// depend on what it read.
type Txn struct {
	Name string // of its kind
	Ops  []Op
}

// ReadOnly reports whether the transaction writes nothing.
func (t Txn) ReadOnly() bool { return !slices.ContainsFunc(t.Ops, func(o Op) bool { return o.Write }) }

// Keys returns what the transaction's program is going to read and to write, in the order of its
// operations, for stores that are told of keys in advance.
func (t Txn) Keys() (reads, writes []string) {
	for _, o := range t.Ops {
		if o.Read {
			reads = append(reads, Name(o.Key))
		}
		if o.Write {
			writes = append(writes, Name(o.Key))
		}
	}
	return reads, writes
}

// Run is the transaction's program: its operations, one after the other. It may run again if the
// transaction did not commit. What a key gets is made of what the transaction has read under it:
// nil if there was nothing, or if it does not read the key.
func (t Txn) Run(ctx context.Context, tx Tx, value func(was []byte) []byte) error {
	for _, o := range t.Ops {
		var was []byte
		if o.Read {
			var err error
			if was, _, err = tx.Get(ctx, Name(o.Key)); err != nil {
				return err
			}
		}
		if o.Write {
			if err := tx.Put(Name(o.Key), value(was)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Workload makes transactions.
type Workload interface {
	Next(r *rand.Rand) Txn
}

// YCSBT is YCSB+T as SpecRPC uses it: transactions of so many operations, each on a key of its own,
// each a read or a write [SpecRPC §5.2].
type YCSBT struct {
	Keys        Keys
	Ops         int
	ReadPercent int // how many operations of a hundred are reads
}

// NewYCSBT returns the workload, or an error that names the field.
func NewYCSBT(w YCSBT) (YCSBT, error) {
	switch {
	case w.Keys == nil:
		return w, fmt.Errorf("workload: YCSBT.Keys is missing")
	case w.Ops < 1 || uint64(w.Ops) > w.Keys.Len():
		return w, fmt.Errorf("workload: YCSBT.Ops is %d (want 1 to the number of keys, %d)", w.Ops, w.Keys.Len())
	case w.ReadPercent < 0 || w.ReadPercent > 100:
		return w, fmt.Errorf("workload: YCSBT.ReadPercent is %d (want 0 to 100)", w.ReadPercent)
	}
	return w, nil
}

// Next returns a transaction.
func (w YCSBT) Next(r *rand.Rand) Txn {
	t := Txn{Name: "ycsbt"}
	for _, k := range distinct(w.Keys, r, w.Ops) {
		read := r.IntN(100) < w.ReadPercent
		t.Ops = append(t.Ops, Op{Key: k, Read: read, Write: !read})
	}
	return t
}

// Retwis is the mix of a service like Twitter: AddUser 5 % (1 read, 3 writes), Follow 15 % (2, 2),
// PostTweet 30 % (3, 5), LoadTimeline 50 % (1 to 10 reads). The keys that are read are among those
// that are written, and no key comes twice in a transaction, which the original lets happen.
type Retwis struct{ Keys Keys }

// retwisKind is a kind of transaction, with its share in per cent.
type retwisKind struct {
	name          string
	share         int
	reads, writes int
}

func retwisKinds() [4]retwisKind {
	return [4]retwisKind{{"add-user", 5, 1, 3}, {"follow", 15, 2, 2}, {"post-tweet", 30, 3, 5},
		{"load-timeline", 50, 0, 0}}
}

// Next returns a transaction.
func (w Retwis) Next(r *rand.Rand) Txn {
	n := r.IntN(100)
	for _, k := range retwisKinds() {
		if n -= k.share; n >= 0 {
			continue
		}
		reads := k.reads
		if k.writes == 0 {
			reads = 1 + r.IntN(10)
		}
		t := Txn{Name: k.name}
		for i, key := range distinct(w.Keys, r, max(reads, k.writes)) {
			t.Ops = append(t.Ops, Op{Key: key, Read: i < reads, Write: i < k.writes})
		}
		return t
	}
	panic("workload: the shares of Retwis do not sum up to 100")
}

// Mix makes transactions of several workloads, each with a share.
type Mix []Part

// Part is a workload with its weight in a Mix.
type Part struct {
	Workload Workload
	Weight   int // not negative; not all are 0
}

// Next returns a transaction of one of the parts.
func (m Mix) Next(r *rand.Rand) Txn {
	sum := 0
	for _, p := range m {
		sum += p.Weight
	}
	n := r.IntN(max(sum, 1))
	for _, p := range m {
		if n -= p.Weight; n < 0 {
			return p.Workload.Next(r)
		}
	}
	panic("workload: a Mix without weights")
}

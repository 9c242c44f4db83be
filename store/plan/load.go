package plan

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/foresay/foresay/workload"
)

// A Load is what transactions are like.
type Load struct {
	// Workload makes them. Keys count by their numbers: partitions have them in turn.
	Workload workload.Workload
	// Declared says that a transaction's keys are known when it begins, so that reads need not be
	// made one after the other.
	Declared bool
	// Locality is how many transactions of a hundred have all of their keys in the partitions that
	// are led at their client's site, if there are any.
	Locality int
	// Txns is how many of each client are looked at; 0 is DefaultTxns.
	Txns int
	Seed uint64
}

// DefaultTxns is how many transactions of each client are looked at.
const DefaultTxns = 2000

func (l Load) validate() error {
	switch {
	case l.Workload == nil:
		return fmt.Errorf("plan: Load.Workload is missing")
	case l.Locality < 0 || l.Locality > 100:
		return fmt.Errorf("plan: Load.Locality is %d (want 0 to 100)", l.Locality)
	case l.Txns < 0:
		return fmt.Errorf("plan: Load.Txns is %d", l.Txns)
	}
	return nil
}

// A Class is a kind of transaction, by what it costs.
type Class string

// The classes [Carousel §3.2.4].
const (
	All             Class = "all"
	ReadOnly        Class = "ro"
	LocalReplica    Class = "lrt" // reads and writes, and each of its partitions has a copy at its client's site
	RemotePartition Class = "rpt" // reads and writes, and has a partition without one
)

// Classes returns all classes, All first.
func Classes() []Class { return []Class{All, ReadOnly, LocalReplica, RemotePartition} }

// A Txn is a transaction as the model sees it.
type Txn struct {
	Reads  []int // the partitions of what it reads, one after the other
	Writes []int // likewise of what it writes
}

// Partitions returns all of them, each once, in ascending order.
func (t Txn) Partitions() []int {
	all := slices.Concat(t.Reads, t.Writes)
	slices.Sort(all)
	return slices.Compact(all)
}

// Txns returns the transactions of one client, by its number. They do not depend on where
// partitions are but for their leaders, and that only if there is Locality.
func (s Setting) Txns(client int) []Txn {
	r := rand.New(rand.NewPCG(s.Load.Seed, uint64(client)))
	var own []int
	for k, copies := range s.Placement {
		if copies[0] == s.Clients[client].Site {
			own = append(own, k)
		}
	}
	txns := make([]Txn, cmp.Or(s.Load.Txns, DefaultTxns))
	for i := range txns {
		local := r.IntN(100) < s.Load.Locality && len(own) > 0
		for _, o := range s.Load.Workload.Next(r).Ops {
			k := int(o.Key % uint64(len(s.Placement)))
			if local {
				k = own[int(o.Key%uint64(len(own)))]
			}
			if o.Read {
				txns[i].Reads = append(txns[i].Reads, k)
			}
			if o.Write {
				txns[i].Writes = append(txns[i].Writes, k)
			}
		}
	}
	return txns
}

// ClassOf returns the class of a client's transaction, which is not All.
func (s Setting) ClassOf(client int, t Txn) Class {
	if len(t.Writes) == 0 {
		return ReadOnly
	}
	for _, k := range t.Partitions() {
		if !slices.Contains(s.Placement[k], s.Clients[client].Site) {
			return RemotePartition
		}
	}
	return LocalReplica
}

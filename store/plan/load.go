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
	// General says that clients take what the nearest copies hold of keys that are not declared, and
	// that the commit says whether that was right, where the system can: Carousel. Of Predicted reads
	// in a hundred they have a right guess at once.
	General   bool
	Predicted int
	// Stale says that transactions which only read may see what is a little old: those of systems that
	// can, Carousel, read the nearest copies, and not what somebody has only just written.
	Stale bool
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
	case l.Predicted < 0 || l.Predicted > 100:
		return fmt.Errorf("plan: Load.Predicted is %d (want 0 to 100)", l.Predicted)
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

// Txns returns the transactions of one client, by its number. Where partitions are matters to them
// only if there is Locality.
func (s Setting) Txns(client int) []Txn { return s.place(client, s.drawFor(client)) }

// A draw is a transaction whose keys have not been dealt to partitions yet.
type draw struct {
	ops   []workload.Op
	local bool
}

// draw draws the transactions of all clients, which takes longer than to compute with them.
func (s Setting) draw() (all [][]draw) {
	for i := range s.Clients {
		all = append(all, s.drawFor(i))
	}
	return all
}

func (s Setting) drawFor(client int) []draw {
	r := rand.New(rand.NewPCG(s.Load.Seed, uint64(client)))
	draws := make([]draw, cmp.Or(s.Load.Txns, DefaultTxns))
	for i := range draws {
		draws[i] = draw{local: r.IntN(100) < s.Load.Locality, ops: s.Load.Workload.Next(r).Ops}
	}
	return draws
}

// place deals the keys of a client's transactions to partitions.
func (s Setting) place(client int, draws []draw) []Txn {
	var own []int
	for k, copies := range s.Placement {
		if copies[0] == s.Clients[client].Site {
			own = append(own, k)
		}
	}
	txns := make([]Txn, len(draws))
	for i, d := range draws {
		for _, o := range d.ops {
			k := int(o.Key % uint64(len(s.Placement)))
			if d.local && len(own) > 0 {
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
	for _, ks := range [][]int{t.Reads, t.Writes} {
		for _, k := range ks {
			if !slices.Contains(s.Placement[k], s.Clients[client].Site) {
				return RemotePartition
			}
		}
	}
	return LocalReplica
}

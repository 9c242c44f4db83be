package plancmd

import (
	"math/rand/v2"

	"github.com/foresay/foresay/workload"
)

// maxOps is how many keys a transaction has at most.
const maxOps = 100

// counted makes transactions that read and write so many keys. What is written was read, as far as
// there are reads.
type counted struct {
	workload.Keys
	reads, writes int
}

// Next implements workload.Workload.
func (w counted) Next(r *rand.Rand) workload.Txn {
	t := workload.Txn{Name: "txn"}
	for i := range max(w.reads, w.writes) {
		t.Ops = append(t.Ops, workload.Op{Key: w.Draw(r), Read: i < w.reads, Write: i < w.writes})
	}
	return t
}

package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestRandomAgainstOracle compares verdicts on small random histories, most of them wrong, with an
// oracle that tries all ways to run the transactions.
func TestRandomAgainstOracle(t *testing.T) {
	verdicts := make(map[Level][3]int)
	for seed := range uint64(4000) {
		h := randomTransactions(rand.New(rand.NewPCG(seed, 0)))
		for level := SnapshotIsolation; level <= StrictSerializable; level++ {
			if level == SessionReadCommitted {
				continue
			}
			report, err := CheckTransactions(h, level)
			if err != nil {
				t.Fatal(err)
			}
			want := Violation
			if newOracle(h, level).possible() {
				want = OK
			}
			if got := report.Verdict(); got != want {
				t.Fatalf("seed %d, %v: the verdict is %v, want %v\n%v%+v", seed, level, got, want, report, h)
			}
			counts := verdicts[level]
			counts[want]++
			verdicts[level] = counts
		}
	}
	for level, counts := range verdicts {
		if counts[OK] < 200 || counts[Violation] < 200 {
			t.Errorf("%v: only %d histories were right and %d wrong", level, counts[OK], counts[Violation])
		}
	}
}

// randomTransactions makes a few transactions that read anything that another one wrote last, in
// any order of versions.
func randomTransactions(r *rand.Rand) Transactions {
	const keys = 3
	h := Transactions{Versions: make(map[string][]string)}
	n := 2 + r.IntN(3)
	clocks := make([]time.Duration, 3)
	for i := range n {
		client := r.IntN(len(clocks))
		begin := clocks[client] + time.Duration(r.IntN(3))
		clocks[client] = begin + time.Duration(1+r.IntN(4))
		h.Txns = append(h.Txns, Txn{ID: TxnID(i), Client: Client(client), Begin: begin, End: clocks[client],
			Outcome: Returned})
		for k := range keys {
			if key := fmt.Sprintf("k%d", k); r.IntN(3) == 0 {
				h.Versions[key] = append(h.Versions[key], fmt.Sprintf("%s by T%d", key, i))
			}
		}
	}
	for _, key := range []string{"k0", "k1", "k2"} {
		versions := h.Versions[key]
		r.Shuffle(len(versions), func(i, j int) { versions[i], versions[j] = versions[j], versions[i] })
		for i := range h.Txns {
			t := &h.Txns[i]
			own := fmt.Sprintf("%s by T%d", key, i)
			others := slices.DeleteFunc(append([]string{Initial}, versions...), func(v string) bool { return v == own })
			if r.IntN(2) == 0 {
				t.Accesses = append(t.Accesses, Access{Kind: Read, Key: key, Value: others[r.IntN(len(others))]})
			}
			if slices.Contains(versions, own) {
				t.Accesses = append(t.Accesses, Access{Kind: Write, Key: key, Value: own})
			}
		}
	}
	return h
}

// oracle runs transactions in all ways that a level allows until one gives the history. Under
// snapshot isolation a transaction has two events, its snapshot and its commit; else one.
type oracle struct {
	h         Transactions
	level     Level
	snapshot  bool
	started   []bool
	committed []bool
	installed map[string]int // by key, how many versions of the order
	seenAt    []map[string]int
}

func newOracle(h Transactions, level Level) *oracle {
	return &oracle{
		h: h, level: level, snapshot: level.cycles() == GNonadjacent,
		started: make([]bool, len(h.Txns)), committed: make([]bool, len(h.Txns)),
		installed: make(map[string]int), seenAt: make([]map[string]int, len(h.Txns)),
	}
}

// possible reports whether the events that are left can happen.
func (o *oracle) possible() bool {
	if !slices.Contains(o.committed, false) {
		return true
	}
	for t := range o.h.Txns {
		switch {
		case !o.started[t] && o.mayStart(t):
			o.started[t] = true
			o.seenAt[t] = make(map[string]int)
			for key, n := range o.installed {
				o.seenAt[t][key] = n
			}
			if o.snapshot && o.possible() || !o.snapshot && o.commit(t) {
				return true
			}
			o.started[t] = false
		case o.snapshot && o.started[t] && !o.committed[t] && o.commit(t):
			return true
		}
	}
	return false
}

// mayStart reports whether all that must come before has committed, and the reads are right.
func (o *oracle) mayStart(t int) bool {
	for s := range o.h.Txns {
		if s != t && !o.committed[s] && o.ordered(s, t) {
			return false
		}
	}
	for _, a := range o.h.Txns[t].Accesses {
		if a.Kind != Read {
			continue
		}
		last := Initial
		if n := o.installed[a.Key]; n > 0 {
			last = o.h.Versions[a.Key][n-1]
		}
		if a.Value != last {
			return false
		}
	}
	return true
}

func (o *oracle) ordered(s, t int) bool {
	a, b := o.h.Txns[s], o.h.Txns[t]
	switch o.level.order() {
	case Session:
		return a.Client == b.Client && s < t
	case RealTime:
		return a.End < b.Begin || a.Client == b.Client && s < t
	}
	return false
}

// commit installs what a transaction wrote, if that is next in the order of versions and nobody did
// since the transaction's snapshot, and goes on.
func (o *oracle) commit(t int) bool {
	var keys []string
	for _, a := range o.h.Txns[t].Accesses {
		if a.Kind != Write {
			continue
		}
		n := o.installed[a.Key]
		if o.h.Versions[a.Key][n] != a.Value || n != o.seenAt[t][a.Key] {
			return false
		}
		keys = append(keys, a.Key)
	}
	for _, key := range keys {
		o.installed[key]++
	}
	o.committed[t] = true
	if o.possible() {
		return true
	}
	o.committed[t] = false
	for _, key := range keys {
		o.installed[key]--
	}
	return false
}

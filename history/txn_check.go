package history

import (
	"fmt"
)

// CheckTransactions looks for what a level forbids, in the transactions that committed: those whose
// clients were told, and those with unknown outcome of which somebody saw a write, be it another
// transaction or the store's record.
//
// It builds the direct serialization graph [Adya 1999, §3.1.2]: who replaced whose versions, who
// read whose versions, who replaced what others read; and, for some levels, each client's order and
// real time. Then it names the cycles. It takes time and memory in proportion to the history,
// whatever the number of clients.
//
// Whether there is a violation is exact, for dependencies through single keys; which phenomena are
// named in a knot of many is not: a knot ties a cycle of each, and the gravest is found.
//
// The error tells of a history that makes no sense or whose version order is not known.
func CheckTransactions(h Transactions, level Level) (Report, error) {
	if level < ReadCommitted || level > StrictSerializable {
		return Report{}, fmt.Errorf("history: no such level: %d", level)
	}
	report := Report{Level: level}
	x, err := newTxnIndex(h, &report)
	if err != nil {
		return Report{}, err
	}
	b := &graphBuilder{
		x:     x,
		nodes: int32(len(h.Txns)),
		kinds: cycleKinds(level.cycles()) | orderKinds(level.order()),
	}
	chains := b.chains()
	b.addWrites(chains)
	b.addReads(chains)
	if level.order() >= Session {
		b.addSessions()
	}
	if level.order() == RealTime {
		b.addRealTime()
	}
	findCycles(b.pack(), x, &report)
	report.sort()
	return report, nil
}

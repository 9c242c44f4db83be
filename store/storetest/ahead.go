package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/store"
)

// maxAhead is how many transactions of an application may be committed locally, and not for good,
// while it makes others.
const maxAhead = 4

// ahead is a transaction that is submitted so that its application can go on with the next one when
// it is committed locally (Protocol.Speculates).
type ahead struct {
	Application // as it was when it submitted the transaction
	id          store.TxnID
	held        bool // it stands on a guess, which is not known to be right
	waits       bool // it stands on earlier ones only, and its application may give up
	refuted     bool // the guess was wrong, or its application has given up
	after       []history.TxnID
	txn         history.TxnID
}

// speculate has a submission ask for word of the local commit, now and then for a transaction that
// stands on a guess, or whose application may give up.
func (a *Application) speculate(m *store.Submit) {
	w := a.world
	if !w.Scenario.Ahead || a.number%5 == 0 {
		return
	}
	x := &ahead{Application: *a, held: w.Rand.IntN(3) == 0 && !w.Scenario.Certain, txn: history.TxnID(a.number)}
	for _, before := range a.ahead {
		m.After, x.after = append(m.After, before.id), append(x.after, before.txn)
	}
	x.waits = !x.held && len(m.After) > 0 && a.number%2 == 0 && !w.Scenario.Certain
	m.Speculate, m.Held, m.Waits, a.sent = true, x.held, x.waits, x
}

// onLocal goes on with the next transaction, if there may be another one.
func (a *Application) onLocal(m store.Speculates) {
	w := a.world
	x := a.sent
	if x == nil || x.Ref != m.Ref || !a.Busy || len(a.ahead) == maxAhead {
		return
	}
	x.id, a.sent = m.ID, nil
	a.ahead = append(a.ahead, x)
	w.ahead++
	if x.held || x.waits {
		w.Sim.After(time.Duration(w.Rand.IntN(600))*time.Millisecond, func() { a.settle(x) })
	} else if w.Rand.IntN(20) == 0 { // nobody wants it any more
		w.Sim.Deliver(a.ID, store.Settle{Ref: x.Ref, Refuted: true})
	}
	a.end()
}

// settle says what became of the guess that a transaction stands on, or whether its application
// goes on. One that waits may be committed all the same if its coordinator is lost.
func (a *Application) settle(x *ahead) {
	w := a.world
	x.refuted = w.Rand.IntN(4) == 0
	x.held = x.held && x.refuted
	w.Sim.Deliver(a.ID, store.Settle{Ref: x.Ref, Refuted: x.refuted})
}

// onAhead takes the outcome of a transaction after which the application went on; false: it is of
// none.
func (a *Application) onAhead(m store.Done) bool {
	i := slices.IndexFunc(a.ahead, func(x *ahead) bool { return x.Ref == m.Ref })
	if i < 0 {
		return false
	}
	w, x := a.world, a.ahead[i]
	a.ahead = slices.Delete(a.ahead, i, i+1)
	x.note(m.Txn)
	v := m.Outcome.Verdict
	if v == store.Committed && x.held && w.Err == nil {
		w.Err = fmt.Errorf("client %d: %v is committed, and the guess it stood on is not known to be right", a.ID, m.Txn)
	}
	x.concluded(m)
	if v == store.Aborted && m.Txn.ReadOnly() && m.Outcome.Reason == store.NoReason {
		v = store.Unknown // nobody has answered
	}
	w.verdict[x.txn] = v
	if v == store.Committed {
		w.follows = append(w.follows, followed{x.txn, x.after})
	}
	return true
}

// followed is a transaction that is committed, and those that its application took for committed
// when it submitted it.
type followed struct {
	txn   history.TxnID
	after []history.TxnID
}

// judgeAhead returns an error if a transaction is committed that followed one which was refused.
func (w *World) judgeAhead() error {
	for _, f := range w.follows {
		for _, before := range f.after {
			if v, known := w.verdict[before]; known && v == store.Aborted {
				return fmt.Errorf("transaction %d is committed, and follows %d, which was refused", f.txn, before)
			}
		}
	}
	return nil
}

package client_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// proofShown is a value as it is in histories.
func proofShown(v store.Version, present bool, bytes string) string {
	switch {
	case present:
		return bytes
	case v.IsZero():
		return history.Initial
	}
	return "deleted by " + v.String()
}

// judge finds out what became of all transactions, waits until nothing of them is left, and looks
// at the history and the disks. What is wrong is the world's failure.
func (w *proofWorld) judge(ctx context.Context, d *driver) {
	d.mode = client.GRPC
	w.sc.bug = noBug
	d.rand = rand.New(rand.NewPCG(w.sc.seed, 13))
	l := w.link(d)
	err := w.resolve(l)
	if err == nil {
		err = w.readAll(ctx, d, l)
	}
	l.close()
	if err == nil {
		err = w.quiet()
	}
	if err == nil {
		err = w.checkHistory()
	}
	if err == nil {
		err = w.checkDisks()
	}
	if err != nil {
		w.fail(err)
	}
}

// resolve asks for all outcomes that are not known, until they are.
func (w *proofWorld) resolve(l *proofLink) error {
	for _, t := range w.txns {
		calls := t.watch.attempts(t.n)
		if t.verdict != store.Unknown {
			continue
		}
		if len(calls) == 0 && t.nested {
			t.verdict = store.Aborted // the task ended while its commit waited
			continue
		}
		if len(calls) == 0 {
			return fmt.Errorf("the outcome of transaction %d is unknown, and nobody was asked to commit it", t.n)
		}
		last := calls[len(calls)-1]
		v := last.decision.Outcome.Verdict
		for tries := 0; v == store.Unknown || v == store.Blocked; tries++ {
			if !last.ended || last.decision.Txn.ID.IsZero() || tries == 10 {
				return fmt.Errorf("the outcome of transaction %d stays unknown: %+v", t.n, last.decision)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			v = l.conn.Resolve(ctx, last.decision.Txn).Outcome.Verdict
			cancel()
		}
		t.verdict, t.end = v, w.now()
	}
	return nil
}

// readAll reads all keys in a transaction that has to commit.
func (w *proofWorld) readAll(ctx context.Context, d *driver, l *proofLink) error {
	t := w.newTxn(d.n, l.watch)
	p := plot{n: t.n}
	for k := range proofKeys {
		p.steps = append(p.steps, step{kind: stepGet, key: k})
	}
	ctx, cancel := context.WithTimeout(forTxn(ctx, t.n, t.n), time.Minute)
	defer cancel()
	err := d.run(ctx, l, p, t)
	w.note(t, err)
	if err != nil {
		return fmt.Errorf("with everything in order, all keys cannot be read: %w", err)
	}
	return nil
}

// quiet waits until no disk has anything of a transaction: a vote, and so a lock, a decision.
func (w *proofWorld) quiet() error {
	for waited := time.Duration(0); ; waited += 5 * time.Second {
		left := ""
		for _, m := range w.machines {
			for _, d := range m.all() {
				for k := range d.scan("t") {
					left = fmt.Sprintf("%s has the transaction %x", d.name, k)
				}
			}
		}
		if left == "" {
			return nil
		}
		if waited > 4*proofRetain {
			return fmt.Errorf("after %v: %s", waited, left)
		}
		if err := w.failure(); err != nil {
			return err
		}
		time.Sleep(5 * time.Second)
	}
}

// checkHistory checks what clients saw against what sites had.
func (w *proofWorld) checkHistory() error {
	h := history.Transactions{Versions: map[string][]string{}}
	for key, all := range w.versions {
		seen := map[string]bool{}
		for _, v := range slices.SortedFunc(maps.Keys(all), store.Version.Compare) {
			if strings.HasSuffix(all[v], misled) {
				return fmt.Errorf("%q has been %q, by a run that stood on a wrong guess", key, all[v])
			}
			if seen[all[v]] {
				return fmt.Errorf("%q was %q in two versions", key, all[v])
			}
			seen[all[v]] = true
			h.Versions[key] = append(h.Versions[key], all[v])
		}
	}
	for _, t := range w.txns {
		calls := t.watch.attempts(t.n)
		for i, c := range calls {
			x := history.Txn{ID: history.TxnID(100*t.n + i), Client: history.Client(t.driver), Begin: t.begin, End: t.end,
				Outcome: history.Returned}
			switch v := c.decision.Outcome.Verdict; {
			case c.decision.Txn.ID.IsZero():
				continue // it was never sent
			case i < len(calls)-1 || t.verdict != store.Committed || t.run != nil && !t.run.counts() || v == store.Aborted &&
				!w.sc.blind:
				// What was aborted is nobody's to see; the order of attempts does not matter.
				x.Client, x.Begin, x.End, x.Outcome = history.Client(10000+t.n*10+i), c.begin, c.end, history.Failed
			default:
				x.Accesses = w.reads(t, c)
			}
			for _, a := range c.writes {
				x.Accesses = append(x.Accesses, history.Access{Kind: history.Write, Key: string(a.Key),
					Value: proofShown(c.decision.Txn.ID, !a.Delete, string(a.Bytes))})
				if _, ok := w.versions[string(a.Key)][c.decision.Txn.ID]; x.Outcome == history.Returned && !ok {
					return fmt.Errorf("transaction %d, %v, is committed, and no site has its version of %q", t.n, c.decision.Txn.ID,
						a.Key)
				}
			}
			h.Txns = append(h.Txns, x)
		}
	}
	report, err := history.CheckTransactions(h, history.StrictSerializable)
	if err == nil && report.Verdict() != history.OK {
		err = fmt.Errorf("not strictly serializable: %v", report)
	}
	return err
}

// reads returns what a transaction's function saw, or what it stood on if it gave no result.
func (w *proofWorld) reads(t *proofTxn, c commitCall) []history.Access {
	var all []history.Access
	for _, r := range c.reads {
		text := w.versions[string(r.Key)][r.Version]
		if t.run != nil {
			if saw, ok := t.run.reads[string(r.Key)]; ok {
				text = proofShown(r.Version, saw.ok, saw.value)
			}
		}
		all = append(all, history.Access{Kind: history.Read, Key: string(r.Key), Value: text})
	}
	return all
}

// checkDisks returns an error unless all sites hold the same: the last version of each key.
func (w *proofWorld) checkDisks() error {
	first := map[string]string{}
	for i := range proofSites {
		values := map[string]string{}
		for _, m := range w.machines {
			if m.site != i {
				continue
			}
			for _, d := range m.all() {
				for k, v := range d.scan("v") {
					values[string(k[1:])] = string(v)
				}
			}
		}
		if i > 0 && !maps.Equal(first, values) {
			return fmt.Errorf("site a holds %q, site %s %q", first, proofSites[i], values)
		}
		first = values
	}
	if len(first) != len(w.versions) {
		return fmt.Errorf("%d keys had versions, and sites hold %d", len(w.versions), len(first))
	}
	return nil
}

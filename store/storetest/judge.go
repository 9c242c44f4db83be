package storetest

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
)

// Judge looks at what clients saw and at what the sites hold.
func (w *World) Judge() error {
	if w.Err != nil {
		return w.Err
	}
	for key := range w.Versions {
		w.rec.Versions(string(key), w.Versions.Values(key))
	}
	h, err := w.rec.Transactions()
	if err != nil {
		return err
	}
	faults := w.Scenario.Faults
	if w.apart {
		faults |= sim.Jump
	}
	if err := CheckLevel(h, w.Subject.Protocol, faults, w.relaxed); err != nil {
		return err
	}
	if err := w.judgeStale(faults); err != nil {
		return err
	}
	if err := w.judgeAhead(); err != nil {
		return err
	}
	if w.watched != nil {
		if err := w.watched(); err != nil {
			return err
		}
	}
	if err := w.LostAppends(); err != nil {
		return err
	}
	if err := w.EqualSites(); err != nil || !w.Scenario.Bank {
		return err
	}
	return w.auditSites()
}

// judgeRefused returns an error if a server is refused: those whose disks were lost do not count.
func (w *World) judgeRefused() error {
	if len(w.Refused) == 0 {
		return nil
	}
	return fmt.Errorf("servers whose disks lost nothing are refused: %v", w.Refused)
}

// CheckLevel returns an error unless a history is of the level that a protocol promises. Of a
// Clocked one, transactions that only read are serializable and no more if they asked for that, as
// relaxed ones have, or if there are faults that have clocks further apart than they may be.
func CheckLevel(h history.Transactions, p store.Protocol, faults sim.Faults, relaxed map[history.TxnID]bool) error {
	if !p.Clocked {
		return judge(h, p.Promises())
	}
	off := faults&(sim.Skew|sim.Jump) != 0
	strict := h
	strict.Txns = slices.DeleteFunc(slices.Clone(h.Txns), func(t history.Txn) bool {
		return (off || relaxed[t.ID]) && !writes(t)
	})
	if err := judge(strict, p.Promises()); err != nil || len(strict.Txns) == len(h.Txns) {
		return err
	}
	return judge(h, history.Serializable)
}

func writes(t history.Txn) bool {
	return slices.ContainsFunc(t.Accesses, func(a history.Access) bool { return a.Kind == history.Write })
}

// judge returns an error unless a history is of a level.
func judge(h history.Transactions, level history.Level) error {
	report, err := history.CheckTransactions(h, level)
	if err == nil && report.Verdict() != history.OK {
		err = fmt.Errorf("not %v: %v", level, report)
	}
	return err
}

// LostAppends returns an error unless what committed transactions have added to keys is there,
// once.
func (w *World) LostAppends() error {
	for _, key := range slices.Sorted(maps.Keys(w.Appended)) {
		shard := w.Layout.ShardOf(key)
		l := w.holding()
		id := l.Sites[l.SitesOf(shard)[0]].Shards[shard]
		values, err := w.values(id)
		if err != nil {
			return err
		}
		there := map[string]int{}
		for k, v := range values {
			if k != key {
				continue
			}
			for _, word := range strings.Fields(string(v.Bytes)) {
				there[word]++
			}
		}
		for _, n := range w.Appended[key] {
			if there[strconv.Itoa(n)] != 1 {
				return fmt.Errorf("%q has what transaction %d added, whose client was told that it is committed, %d times", key, n,
					there[strconv.Itoa(n)])
			}
		}
	}
	return nil
}

// EqualSites returns an error unless all sites hold the same.
func (w *World) EqualSites() error { return EqualSites(w.holding(), w.values) }

// values returns what a server holds.
func (w *World) values(server protocol.ID) (iter.Seq2[store.Key, store.Value], error) {
	_, keys, err := w.Sim.Disk(server)
	if err != nil {
		return nil, err
	}
	return w.Subject.Values(w.Sim.Get(server), keys), nil
}

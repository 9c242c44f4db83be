package storetest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
)

// Transactions that only read and may see the store as it was (Protocol.Stale). They read their
// keys in one or two steps, as of one timestamp.

// ages are how old what they read may be: less than closing takes, and more.
func ages() []time.Duration {
	return []time.Duration{RoundTrip / 2, 4 * RoundTrip, 10 * RoundTrip, 40 * RoundTrip}
}

// staleRead is such a transaction: what it has read, and may have missed.
type staleRead struct {
	begun  time.Duration
	maxAge time.Duration
	took   time.Duration
	seen   map[store.Key]store.Version
}

// toldWrite is a write whose client was told that it is committed.
type toldWrite struct {
	by store.TxnID
	at time.Duration
}

// onlyReads tells whether the transaction writes nothing.
func (a *Application) onlyReads() bool {
	return !slices.ContainsFunc(a.ops, func(o op) bool { return o.write })
}

// beginStale begins an attempt that may see what is old.
func (a *Application) beginStale() {
	w := a.world
	all := ages()
	a.stale = &staleRead{begun: w.Sim.Now(), maxAge: all[w.Rand.IntN(len(all))], seen: map[store.Key]store.Version{}}
	w.relaxed[history.TxnID(a.number)] = true
	a.readStale(1+w.Rand.IntN(len(a.ops)), 0)
}

// readStale reads the next keys, as of a timestamp if it is not 0.
func (a *Application) readStale(n int, at uint64) {
	a.known = nil
	for _, o := range a.ops[a.at : a.at+n] {
		a.known = append(a.known, o.key)
	}
	a.at += n
	slices.Sort(a.known)
	a.Ref++
	a.world.Sim.Deliver(a.ID, store.Declare{Ref: a.Ref, Reads: a.known, MaxAge: a.stale.maxAge, At: at})
}

// StaleReads returns how long reads took that may have seen what is old.
func (w *World) StaleReads() (took []time.Duration) {
	for _, s := range w.stale {
		took = append(took, s.took)
	}
	return took
}

// onStale takes what the keys held.
func (a *Application) onStale(m store.Declared) {
	w := a.world
	left := len(a.ops) - a.at
	if !m.OK || left > 0 && m.At == 0 || slices.ContainsFunc(m.Values, func(h store.Held) bool { return h.Large }) {
		// What was read already goes together with nothing else.
		a.log.Abort(w.Sim.Now())
		a.end()
		return
	}
	for i, k := range a.known {
		a.seen[k], a.stale.seen[k] = m.Values[i].Value, m.Values[i].Value.Version
	}
	if left > 0 {
		a.readStale(left, m.At)
		return
	}
	w.stale[history.TxnID(a.number)], a.stale.took = a.stale, w.Sim.Now()-a.stale.begun
	a.done(store.Done{Ref: a.Ref, Outcome: store.Outcome{Verdict: store.Committed}})
}

// judgeStale returns an error unless transactions that may see what is old have seen what they
// must: as of one time, what their session had written before and, unless clocks were further apart
// than they may be, nothing that is too old.
func (w *World) judgeStale(h history.Transactions, faults sim.Faults) error {
	if len(w.stale) == 0 {
		return nil
	}
	off := faults&(sim.Skew|sim.Jump) != 0
	session := h
	session.Txns = slices.DeleteFunc(slices.Clone(h.Txns), func(t history.Txn) bool {
		return w.stale[t.ID] == nil && (off || w.relaxed[t.ID]) && !writes(t)
	})
	if err := judge(session, history.SessionSerializable); err != nil {
		return fmt.Errorf("what a session has seen: %w", err)
	}
	if off {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(w.stale)) {
		if err := w.tooOld(w.stale[id]); err != nil {
			return fmt.Errorf("transaction %d: %w", id, err)
		}
	}
	return nil
}

// tooOld returns an error if a transaction has missed a write that was told before it may have.
func (w *World) tooOld(s *staleRead) error {
	for _, key := range slices.Sorted(maps.Keys(s.seen)) {
		for _, t := range w.told[key] {
			if t.at > s.begun-s.maxAge-2*w.Scenario.Offset {
				continue
			}
			for _, v := range w.Versions.Order(key) {
				if w.Subject.Protocol.Writer(v) == w.Subject.Protocol.Writer(t.by) && v.After(s.seen[key]) {
					return fmt.Errorf("begun at %v, what it reads may be %v old: of %q it has seen %v, and %v was told at %v",
						s.begun, s.maxAge, key, s.seen[key], v, t.at)
				}
			}
		}
	}
	return nil
}

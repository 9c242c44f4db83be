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
	before map[store.Key]sessionSaw // what its client had seen when it began
}

// sessionSaw is what a client has seen of a key: who of its transactions has written it last, and
// the latest version that any has read.
type sessionSaw struct {
	wrote store.TxnID
	read  store.Version
}

// remember notes what a committed transaction has written and read.
func (a *Application) remember(t store.Txn) {
	for _, x := range t.Writes {
		s := a.session[x.Key]
		s.wrote = t.ID
		a.session[x.Key] = s
	}
	for key, v := range a.seen {
		if s := a.session[key]; v.Version.After(s.read) {
			s.read = v.Version
			a.session[key] = s
		}
	}
}

// toldWrite is a write whose client was told that it is committed.
type toldWrite struct {
	by store.TxnID
	at time.Duration
}

// onlyReads reports whether the transaction writes nothing.
func (a *Application) onlyReads() bool {
	return !slices.ContainsFunc(a.ops, func(o op) bool { return o.write })
}

// beginStale begins an attempt that may see what is old.
func (a *Application) beginStale() {
	w := a.world
	all := ages()
	a.stale = &staleRead{begun: w.Sim.Now(), maxAge: all[w.Rand.IntN(len(all))], seen: map[store.Key]store.Version{},
		before: maps.Clone(a.session)}
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
// must: what their client had written or read before and, unless clocks were further apart than
// they may be, nothing that is too old. That all of it is as of one time the history says.
func (w *World) judgeStale(faults sim.Faults) error {
	for _, id := range slices.Sorted(maps.Keys(w.stale)) {
		err := w.unseen(w.stale[id])
		if off := faults&(sim.Skew|sim.Jump) != 0; err == nil && !off {
			err = w.tooOld(w.stale[id])
		}
		if err != nil {
			return fmt.Errorf("transaction %d, which may see what is old: %w", id, err)
		}
	}
	return nil
}

// unseen returns an error if a transaction has not seen what its client had.
func (w *World) unseen(s *staleRead) error {
	for _, key := range slices.Sorted(maps.Keys(s.seen)) {
		before := s.before[key]
		if v, ok := w.versionOf(key, before.wrote); ok && v.After(s.seen[key]) {
			return fmt.Errorf("of %q it has seen %v, and its own client had written %v", key, s.seen[key], v)
		}
		if before.read.After(s.seen[key]) {
			return fmt.Errorf("of %q it has seen %v, and its own client had read %v", key, s.seen[key], before.read)
		}
	}
	return nil
}

// versionOf returns the version of a key that a transaction has written.
func (w *World) versionOf(key store.Key, by store.TxnID) (store.Version, bool) {
	for _, v := range w.Versions.Order(key) {
		if w.Subject.Protocol.Writer(v) == w.Subject.Protocol.Writer(by) {
			return v, true
		}
	}
	return store.Version{}, false
}

// tooOld returns an error if a transaction has missed a write that was told before it may have.
func (w *World) tooOld(s *staleRead) error {
	for _, key := range slices.Sorted(maps.Keys(s.seen)) {
		for _, t := range w.told[key] {
			if t.at > s.begun-s.maxAge-2*w.Scenario.Offset {
				continue
			}
			if v, ok := w.versionOf(key, t.by); ok && v.After(s.seen[key]) {
				return fmt.Errorf("begun at %v, what it reads may be %v old: of %q it has seen %v, and %v was told at %v",
					s.begun, s.maxAge, key, s.seen[key], v, t.at)
			}
		}
	}
	return nil
}

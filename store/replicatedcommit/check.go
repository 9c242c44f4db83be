package replicatedcommit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// Check implements protocol.Checked: locks are those of votes for transactions that are not
// decided, and no decision has contradicted another one.
func (s *server) Check() error {
	if s.contrary != nil {
		return s.contrary
	}
	if s.behind() && len(s.locks)+s.waiters > 0 {
		return fmt.Errorf("replicatedcommit: server %d: %d locks and %d waiting reads at a newcomer that still copies",
			s.cfg.ID, len(s.locks), s.waiters)
	}
	if n := len(s.newcomer.looks); n > 0 && !s.newcomer.syncing || n > s.cfg.MaxTxns {
		return fmt.Errorf("replicatedcommit: server %d: it looks for %d decisions, with a limit of %d, and copies: %v",
			s.cfg.ID, n, s.cfg.MaxTxns, s.newcomer.syncing)
	}
	checks := []func() error{s.checkLocks, s.checkWaiting, s.checkDone, s.checkDebts, s.checkCatchUp,
		s.checkReservations, s.checkQuestioned, s.checkHeld}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) checkLocks() error {
	for _, key := range slices.Sorted(maps.Keys(s.locks)) {
		l := s.locks[key]
		if l.writer.IsZero() && len(l.readers) == 0 {
			return fmt.Errorf("replicatedcommit: server %d: an empty lock on %q", s.cfg.ID, key)
		}
		if w := l.writer; !w.IsZero() {
			r := s.txns[w]
			if r == nil || r.state != yes || !slices.ContainsFunc(r.writes, func(a store.Write) bool { return a.Key == key }) {
				return fmt.Errorf("replicatedcommit: server %d: %v has a write lock on %q, but no undecided vote for it", s.cfg.ID,
					w, key)
			}
		}
		for _, id := range l.readers {
			r := s.txns[id]
			if r == nil || r.state != yes || !slices.ContainsFunc(r.reads, func(a store.Read) bool { return a.Key == key }) {
				return fmt.Errorf("replicatedcommit: server %d: %v has a read lock on %q, but no undecided vote for it", s.cfg.ID,
					id, key)
			}
			if !l.writer.IsZero() && l.writer != id {
				return fmt.Errorf("replicatedcommit: server %d: %q is locked by the writer %v and the reader %v", s.cfg.ID, key,
					l.writer, id)
			}
		}
	}
	return nil
}

func (s *server) checkWaiting() error {
	n := 0
	for _, key := range slices.Sorted(maps.Keys(s.waiting)) {
		n += len(s.waiting[key])
		if l := s.locks[key]; l != nil && !l.writer.IsZero() {
			continue
		}
		for _, w := range s.waiting[key] {
			if !slices.ContainsFunc(s.reservations.Queue(key), func(q kit.Reservation) bool {
				return q.Writes && q.Priority.Before(w.priority)
			}) {
				return fmt.Errorf("replicatedcommit: server %d: a read waits for %q, which nobody writes or goes before "+
					"it to write", s.cfg.ID, key)
			}
		}
	}
	if n != s.waiters || n > s.cfg.MaxWaiting {
		return fmt.Errorf("replicatedcommit: server %d: %d reads wait, counted as %d, with a limit of %d", s.cfg.ID, n,
			s.waiters, s.cfg.MaxWaiting)
	}
	return nil
}

func (s *server) checkReservations() error {
	if err := s.reservations.Check(); err != nil {
		return fmt.Errorf("replicatedcommit: server %d: %w", s.cfg.ID, err)
	}
	return nil
}

// Check implements protocol.Checked: an outcome is not the other one than what the votes add up to.
func (c *coordinator) Check() error {
	for _, id := range slices.SortedFunc(maps.Keys(c.entries), store.Version.Compare) {
		e := c.entries[id]
		ayes, nays := 0, 0
		for i := range e.rows {
			switch r := &e.rows[i]; {
			case r.vote() == yes:
				ayes++
			case r.whole == no || slices.Contains(r.cells, no): // what was forgotten may have been a yes, which came late
				nays++
			}
		}
		majority := c.cfg.Layout.Majority()
		if e.outcome == aborted && ayes >= majority || e.outcome == committed && len(e.rows)-nays < majority &&
			e.reason != store.Old && !c.recalled(e) {
			return fmt.Errorf("replicatedcommit: coordinator %d: %v is decided as %d with %d yes and %d no", c.cfg.ID, id,
				e.outcome, ayes, nays)
		}
		if e.outcome == undecided && ayes >= majority && !e.readOnly {
			return fmt.Errorf("replicatedcommit: coordinator %d: %v has %d yes and is not decided", c.cfg.ID, id, ayes)
		}
	}
	return nil
}

// recalled reports whether some shard remembers the decision, so that it does not rest on votes:
// those of sites that have forgotten theirs count as no.
func (c *coordinator) recalled(e *entry) bool {
	return slices.ContainsFunc(e.rows, func(r row) bool {
		return slices.ContainsFunc(r.cells, func(s txnState) bool { return s == wanting || s == committed })
	})
}

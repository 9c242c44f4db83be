package replicatedcommit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/foresay/foresay/store"
)

// A transaction that this server has refused and that has no decision for long may be blocked:
// another site has voted yes, holds its locks, and a third one is away. Who is voted for here and
// is refused there would block as well, with all its keys, so its keys are *in question* here:
// other transactions that need them are refused. A refusal here is the end of them, as this site is
// asked before the other. Nothing depends on it for safety: a server may refuse whatever it likes.

// question puts the keys of a transaction that is asked about in question, if this server has
// refused it.
func (s *server) question(r *record) {
	if r.state != no || !r.known || r.questioned {
		return
	}
	r.questioned = true
	for key := range keys(store.Txn{Reads: r.reads, Writes: r.writes}) {
		s.questioned[key]++
	}
}

// unquestion ends that, with the decision.
func (s *server) unquestion(r *record) {
	if !r.questioned {
		return
	}
	r.questioned = false
	for key := range keys(store.Txn{Reads: r.reads, Writes: r.writes}) {
		if s.questioned[key]--; s.questioned[key] == 0 {
			delete(s.questioned, key)
			s.changed(key)
		}
	}
}

// inQuestion reports whether a transaction needs a key that is.
func (s *server) inQuestion(t store.Txn) bool {
	if len(s.questioned) == 0 {
		return false
	}
	for key := range keys(t) {
		if s.questioned[key] > 0 {
			return true
		}
	}
	return false
}

func (s *server) checkQuestioned() error {
	want := map[store.Key]int{}
	if len(s.questioned) == 0 {
		return nil
	}
	for _, id := range slices.SortedFunc(maps.Keys(s.txns), store.Version.Compare) {
		r := s.txns[id]
		if r.questioned && r.state != no {
			return fmt.Errorf("replicatedcommit: server %d: the keys of %v are in question, whose state is %d", s.cfg.ID, r.id,
				r.state)
		}
		if r.questioned {
			for key := range keys(store.Txn{Reads: r.reads, Writes: r.writes}) {
				want[key]++
			}
		}
	}
	if !maps.Equal(want, s.questioned) {
		return fmt.Errorf("replicatedcommit: server %d: keys in question are %v, want %v", s.cfg.ID, s.questioned, want)
	}
	return nil
}

package replicatedcommit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// doneLag is how many round trips doneUpto stays behind the clock at least: a transaction that
// begins up to it is another write.
const doneLag = 2 * markEvery

// startDone takes the records on disk, in order, of which some are known to be done.
func (s *server) startDone(all []*record) {
	for _, r := range all {
		if r.done = r.settled() && r.id.Time <= s.doneUpto; r.done {
			s.done = append(s.done, r.id)
		} else {
			r.found = true
			s.open = append(s.open, r.id)
		}
	}
}

// opened notes a transaction that is new here, or was forgotten.
func (s *server) opened(env *protocol.Env[message], id store.TxnID) {
	i, _ := slices.BinarySearchFunc(s.open, id, store.Version.Compare)
	s.open = slices.Insert(s.open, i, id)
	if id.Time <= s.doneUpto {
		s.setDone(env, max(id.Time, 1)-1)
	}
}

func (s *server) isOpen(id store.TxnID) bool {
	r := s.txns[id]
	return r != nil && !r.done
}

// keepDone writes up to which time all transactions are done to the disk, and what others are owed
// of these.
func (s *server) keepDone(env *protocol.Env[message]) {
	for len(s.open) > 0 && !s.isOpen(s.open[0]) {
		s.open = s.open[1:]
	}
	if len(s.open) > 64+2*(len(s.txns)-len(s.done)) {
		s.open = slices.DeleteFunc(s.open, func(id store.TxnID) bool { return !s.isOpen(id) })
	}
	upto := uint64(max(env.Now-doneLag*s.cfg.RoundTrip, 0))
	if len(s.open) > 0 {
		upto = min(upto, max(s.open[0].Time, 1)-1)
	}
	if upto <= s.doneUpto {
		return
	}
	for _, peer := range slices.Sorted(maps.Keys(s.debts)) {
		s.keepDebt(env, peer, s.debts[peer])
	}
	s.setDone(env, upto)
}

func (s *server) setDone(env *protocol.Env[message], upto uint64) {
	s.doneUpto = upto
	env.Put([]byte(doneKey), numberLayout.Encode(upto))
}

func (s *server) checkDone() error {
	open := 0
	for i, id := range s.open {
		if !s.isOpen(id) || i > 0 && s.open[i-1] == id {
			continue
		}
		if open++; id.Time <= s.doneUpto {
			return fmt.Errorf("replicatedcommit: server %d: %v is not done, and all up to %d are",
				s.cfg.ID, id, s.doneUpto)
		}
	}
	for id := range s.inquiries { //pure:ok one or none is the same in any order
		if r := s.txns[id]; r == nil || r.done || !r.settled() {
			return fmt.Errorf("replicatedcommit: server %d: it inquires about %v, which is done or not carried out",
				s.cfg.ID, id)
		}
	}
	if want := len(s.txns) - len(s.done); open != want {
		return fmt.Errorf("replicatedcommit: server %d: %d transactions are not done, and %d are known as such",
			s.cfg.ID, want, open)
	}
	return nil
}

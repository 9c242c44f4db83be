package tapir

import (
	"fmt"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// find returns what is on record of a transaction, from now on if nothing is. It returns nil if
// there is no room: more than twice as many as may be voted for.
func (s *server) find(env *protocol.Env[store.Message], id store.TxnID, shards []uint32) *record {
	r := s.txns[id]
	if r == nil && len(s.txns) <= 2*s.cfg.MaxTxns {
		r = s.add(env, id, shards)
	}
	return r
}

func (s *server) add(env *protocol.Env[store.Message], id store.TxnID, shards []uint32) *record {
	r := &record{id: id, shards: shards, since: env.Now, lost: id.Time <= s.old}
	s.txns[id], s.open[id] = r, r
	if s.full() {
		env.Send(protocol.App, store.Full{Transactions: len(s.txns)})
	}
	return r
}

// onPropose executes a transaction's Prepare, an operation whose result the group agrees on. The
// server votes once, and not after it has accepted a result.
func (s *server) onPropose(env *protocol.Env[store.Message], from protocol.ID, m propose) {
	if !s.takesPart() || !s.fits(m.ID, m.Shards) || m.Ballot.By == 0 {
		return
	}
	r := s.find(env, m.ID, m.Shards)
	if r == nil {
		return
	}
	if r.end == undecided && m.Ballot.compare(r.promised) >= 0 {
		r.promised = m.Ballot
		s.take(env, r, m.Has, m.Part)
		if r.vote == unvoted && r.has && r.accepted == (ballot{}) {
			r.vote, r.reason, r.hint = s.check(env, r.part)
			if s.shadows.conflicting(r.part) == nil {
				r.votedAt = m.Ballot
			}
			if s.counts.Voted(r.reason); r.holds() {
				s.held.add(r)
			}
		}
		s.save(env, r)
	}
	env.Send(from, s.answer(r, m.Whole))
}

func (s *server) answer(r *record, whole bool) answer {
	a := answer{
		ID: r.id, View: s.view, Promised: r.promised, Vote: r.vote, Reason: r.reason, Hint: r.hint, VotedAt: r.votedAt,
		Accepted: r.accepted, Yes: r.yes, End: r.end, Forgot: r.forgot() || r.end == committed && !r.has,
	}
	if whole && r.has {
		a.Has, a.Part = true, r.part
	}
	return a
}

// onAccept accepts a result, unless a coordinator of a later ballot has asked, or another view has
// begun since the coordinator has heard the answers that it goes by.
func (s *server) onAccept(env *protocol.Env[store.Message], from protocol.ID, m accept) {
	if !s.takesPart() || !s.fits(m.ID, m.Shards) || m.Ballot.By == 0 {
		return
	}
	r := s.find(env, m.ID, m.Shards)
	switch {
	case r == nil:
	case r.end == undecided && m.View == s.view && m.Ballot.compare(r.promised) >= 0:
		r.promised, r.accepted, r.yes = m.Ballot, m.Ballot, m.Yes
		if r.vote == unvoted || m.Reason == store.Old {
			r.reason = m.Reason
		}
		s.save(env, r)
		env.Send(from, confirm{m.ID, m.View, m.Ballot})
	default:
		env.Send(from, s.answer(r, false))
	}
}

// onDecide carries out a Commit or an Abort, which are operations in any order.
func (s *server) onDecide(env *protocol.Env[store.Message], from protocol.ID, m decide) {
	if !s.fits(m.ID, m.Shards) {
		return
	}
	r := s.txns[m.ID]
	if r == nil && m.ID.Time <= s.old || r != nil && m.Commit && !m.Has && !r.has && (r.end == undecided || r.soft()) {
		// It was carried out and is forgotten, or this server is owed it; or it is aborted.
		if m.Commit && m.Has && s.fitsPart(m.Part) {
			s.apply(env, m.Part)
		}
		if r != nil && r.end == undecided {
			s.strike(env, r)
		}
		s.sendCarried(env, from, m.ID)
		return
	}
	if r = s.find(env, m.ID, m.Shards); r == nil {
		return
	}
	if s.take(env, r, m.Has, m.Part); m.Commit && !r.has && r.end != committed {
		return
	}
	s.end(env, r, m.Commit, m.Reason)
	s.sendCarried(env, from, m.ID)
}

// sendCarried says that a decision is carried out. While a view change is under way nobody is told:
// what the leader of the next view was given on record is of before.
func (s *server) sendCarried(env *protocol.Env[store.Message], to protocol.ID, id store.TxnID) {
	if s.takesPart() {
		env.Send(to, carried{id, s.view, s.members})
	}
}

// strike takes a transaction off the record that nothing rests on.
func (s *server) strike(env *protocol.Env[store.Message], r *record) {
	s.dropPart(env, r)
	delete(s.txns, r.id)
	delete(s.open, r.id)
	env.Delete(store.TxnKey(txnPrefix, r.id))
}

// end gives a transaction its end, unless it has one. An abort for being old is no more than that
// somebody has forgotten it: the transaction may have been carried out before.
func (s *server) end(env *protocol.Env[store.Message], r *record, commit bool, why store.Reason) {
	switch {
	case r.end == undecided, r.soft() && commit && r.has:
	case commit == (r.end == committed), r.soft(), !commit && why == store.Old:
		return
	default:
		if s.contrary == nil {
			s.contrary = fmt.Errorf("tapir: server %d: %v has ended as %d, and is committed: %v", s.cfg.ID, r.id, r.end, commit)
		}
		return
	}
	if s.release(r); r.shadows() {
		s.shadows.remove(r)
	}
	s.counts.Decided(commit, why)
	if r.reason = why; commit {
		r.end = committed
		s.apply(env, r.part)
	} else {
		r.end = aborted
		s.shadow(r)
		if why == store.Old {
			s.noteReads(env, r.part)
		}
	}
	s.save(env, r)
}

// apply writes what a committed transaction writes.
func (s *server) apply(env *protocol.Env[store.Message], t store.Txn) {
	for _, w := range t.Writes {
		s.putValue(env, w.Key, store.Value{Version: t.ID, Present: !w.Delete, Bytes: w.Bytes})
	}
	s.noteReads(env, t)
	s.doom(env, t)
}

// onDone lets a transaction be forgotten when it is old. Servers of the shard that were in no view
// with those that have carried it out are owed it: they copy the values of this one.
func (s *server) onDone(env *protocol.Env[store.Message], m done) {
	r := s.txns[m.ID]
	if r == nil || r.end == undecided || r.done {
		return
	}
	for _, id := range m.But {
		if s.isPeer(id) && r.end == committed {
			s.owe(env, id)
		}
	}
	if r.shadows() {
		s.shadows.remove(r)
	}
	r.done = true
	delete(s.open, r.id)
	s.dropPart(env, r)
	s.save(env, r)
	s.past = append(s.past, r.id)
}

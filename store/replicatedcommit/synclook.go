package replicatedcommit

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A newcomer has no memory of what the server whose place it takes has voted for. Its yes could be
// a second and other vote, so it says none while it copies; its no could contradict a decision that
// stands on the lost yes. Copies of its shard do not tell: they may not have heard of the decision
// yet. So it asks all shards that have a part of the transaction, at all other sites. If none of
// them knows a decision, none that needs the lost vote can come any more: it would have to come
// from one of them.

type (
	// look asks another shard's server what it knows of a transaction. Other than Ask it changes
	// nothing.
	look struct{ ID store.TxnID }

	// seen answers it: Undecided if the shard has not heard of the transaction.
	seen struct {
		ID    store.TxnID
		State txnState
		Old   bool // it is aborted there since it was forgotten elsewhere, which is no outcome
	}
)

// lookTimer has those asked again who have not answered.
type lookTimer struct{ id store.TxnID }

// lookTries is how often a newcomer looks for a decision before it waits until it is asked again.
const lookTries = 5

// A search is a newcomer's search for a decision that stood on the vote of the one whose place it
// takes. It refuses a transaction only when all other shards that have a part of it, at all sites,
// know of no decision. If one does, that stands, and whoever counted the refusal might decide
// otherwise.
type search struct {
	shards []uint32
	askers []protocol.ID // coordinators that want the vote, one of each site at most
	seen   map[protocol.ID]bool
	old    bool // somebody has forgotten, or never heard of it
	tries  int
}

// lookFor begins a search for a coordinator, or adds it to those who wait for one.
func (s *server) lookFor(env *protocol.Env[message], asker protocol.ID, id store.TxnID, shards []uint32) {
	n := &s.newcomer
	l := n.looks[id]
	if l == nil {
		if len(s.txns)+len(n.looks) >= s.cfg.MaxTxns {
			return
		}
		l = &search{shards: shards, seen: map[protocol.ID]bool{}}
		n.looks[id] = l
	}
	if !slices.Contains(l.askers, asker) && len(l.askers) < len(s.cfg.Layout.Sites) {
		l.askers = append(l.askers, asker)
	}
	if l.tries == 0 {
		s.look(env, id)
	}
}

// look asks those who have not answered.
func (s *server) look(env *protocol.Env[message], id store.TxnID) {
	l := s.newcomer.looks[id]
	if l == nil {
		return
	}
	if l.tries++; l.tries > lookTries {
		delete(s.newcomer.looks, id)
		return
	}
	for _, i := range s.cfg.Layout.Unfenced() {
		for _, shard := range l.shards {
			if to := s.cfg.Layout.Sites[i].Shards[shard]; i != s.place.Site && !l.seen[to] {
				env.Send(to, look{id})
			}
		}
	}
	env.After(2*s.cfg.RoundTrip, lookTimer{id})
	s.maybeSeen(env, id, l)
}

func (s *server) onLook(env *protocol.Env[message], from protocol.ID, m look) {
	if _, ok := s.shards[from]; !ok || from == s.cfg.ID {
		return
	}
	st, old := undecided, false
	if r := s.txns[m.ID]; r != nil {
		st, old = r.now(), r.tookForOld()
	} else if m.ID.Time <= s.old {
		st = s.forgotten(m.ID)
		if st == gone && s.newcomer.syncing {
			st = undecided // who told this one says so, too, and until when
		}
	}
	env.Send(from, seen{ID: m.ID, State: st, Old: old})
}

func (s *server) onSeen(env *protocol.Env[message], from protocol.ID, m seen) {
	if q := s.inquiries[m.ID]; q != nil {
		s.onInquired(env, q, from, m)
		return
	}
	l := s.newcomer.looks[m.ID]
	p, ok := s.shards[from]
	if l == nil || !ok || p.Site == s.place.Site || !slices.Contains(l.shards, uint32(p.Index)) {
		return
	}
	switch m.State {
	case committed, wanting:
		s.endLookWith(env, m.ID, l, committed)
	case aborted:
		l.old = m.Old // an abort for another reason is an outcome
		s.endLookWith(env, m.ID, l, aborted)
	case gone: // not known before the debt is paid
	default:
		l.seen[from] = true
		l.old = l.old || m.State == old
		s.maybeSeen(env, m.ID, l)
	}
}

// maybeSeen refuses a transaction once all others know of no decision.
func (s *server) maybeSeen(env *protocol.Env[message], id store.TxnID, l *search) {
	if len(l.seen) == len(l.shards)*(len(s.cfg.Layout.Unfenced())-1) {
		s.endLookWith(env, id, l, no)
	}
}

// endLookWith takes over a decision, or votes no, and tells those who asked.
func (s *server) endLookWith(env *protocol.Env[message], id store.TxnID, l *search, state txnState) {
	s.endLook(env, id)
	r := s.txns[id]
	if r == nil {
		r = &record{id: id, state: no, reason: store.Fenced, shards: l.shards}
		s.watch(env, r)
		if l.old {
			r.reason = store.Old
		}
		s.save(env, r)
	} else if l.old && state == aborted && r.state == no {
		r.reason = store.Old
	}
	if state != no && r.state == no {
		s.decide(env, r, state)
		if r.now() == wanting {
			s.fetch(env, r)
		}
	}
	for _, asker := range l.askers {
		s.tell(env, asker, r)
	}
}

func (s *server) endLook(env *protocol.Env[message], id store.TxnID) {
	delete(s.newcomer.looks, id)
	env.Stop(lookTimer{id})
}

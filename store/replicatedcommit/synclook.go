package replicatedcommit

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

type (
	// Look asks another shard's server what it knows of a transaction. Other than Ask it changes
	// nothing.
	Look struct{ ID store.TxnID }

	// Seen answers it: Undecided if the shard has not heard of the transaction.
	Seen struct {
		ID    store.TxnID
		State State
		Old   bool // it is aborted there since it was forgotten elsewhere, which is no outcome
	}
)

// lookTimer has those asked again who have not answered.
type lookTimer struct{ id store.TxnID }

// lookTries is how often a newcomer looks for a decision before it waits until it is asked again.
const lookTries = 5

// A look is a newcomer's search for a decision that stood on the vote of the one whose place it
// takes. It refuses a transaction only when all other shards that have a part of it, at all sites,
// know of no decision. If one does, that stands, and whoever counted the refusal might decide
// otherwise.
type look struct {
	shards []uint32
	askers []protocol.ID // coordinators that want the vote, one of each site at most
	seen   map[protocol.ID]bool
	old    bool // somebody has forgotten, or never heard of it
	tries  int
}

// lookFor begins a search for a coordinator, or adds it to those who wait for one.
func (s *Server) lookFor(env *protocol.Env[Message], asker protocol.ID, id store.TxnID, shards []uint32) {
	n := &s.newcomer
	l := n.looks[id]
	if l == nil {
		if len(s.txns)+len(n.looks) >= s.cfg.MaxTxns {
			return
		}
		l = &look{shards: shards, seen: map[protocol.ID]bool{}}
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
func (s *Server) look(env *protocol.Env[Message], id store.TxnID) {
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
				env.Send(to, Look{id})
			}
		}
	}
	env.After(2*s.cfg.RoundTrip, lookTimer{id})
	s.maybeSeen(env, id, l)
}

func (s *Server) onLook(env *protocol.Env[Message], from protocol.ID, m Look) {
	if _, ok := s.shards[from]; !ok || from == s.cfg.ID {
		return
	}
	st, old := Undecided, false
	if r := s.txns[m.ID]; r != nil {
		st, old = r.now(), r.tookForOld()
	} else if m.ID.Time <= s.old {
		st = s.forgotten(m.ID)
		if st == Gone && s.newcomer.syncing {
			st = Undecided // who told this one says so, too, and until when
		}
	}
	env.Send(from, Seen{ID: m.ID, State: st, Old: old})
}

func (s *Server) onSeen(env *protocol.Env[Message], from protocol.ID, m Seen) {
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
	case Committed, Wanting:
		s.endLookWith(env, m.ID, l, Committed)
	case Aborted:
		l.old = m.Old // an abort for another reason is an outcome
		s.endLookWith(env, m.ID, l, Aborted)
	case Gone: // not known before the debt is paid
	default:
		l.seen[from] = true
		l.old = l.old || m.State == Old
		s.maybeSeen(env, m.ID, l)
	}
}

// maybeSeen refuses a transaction once all others know of no decision.
func (s *Server) maybeSeen(env *protocol.Env[Message], id store.TxnID, l *look) {
	if len(l.seen) == len(l.shards)*(len(s.cfg.Layout.Unfenced())-1) {
		s.endLookWith(env, id, l, No)
	}
}

// endLookWith takes over a decision, or votes no, and tells those who asked.
func (s *Server) endLookWith(env *protocol.Env[Message], id store.TxnID, l *look, state State) {
	s.endLook(env, id)
	r := s.txns[id]
	if r == nil {
		r = &record{id: id, state: No, reason: store.Fenced, shards: l.shards}
		s.watch(env, r)
		if l.old {
			r.reason = store.Old
		}
		s.save(env, r)
	} else if l.old && state == Aborted && r.state == No {
		r.reason = store.Old
	}
	if state != No && r.state == No {
		s.decide(env, r, state)
		if r.now() == Wanting {
			s.fetch(env, r)
		}
	}
	for _, asker := range l.askers {
		s.tell(env, asker, r)
	}
}

func (s *Server) endLook(env *protocol.Env[Message], id store.TxnID) {
	delete(s.newcomer.looks, id)
	env.Stop(lookTimer{id})
}

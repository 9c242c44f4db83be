package replicatedcommit

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// onPrepare votes on the server's part of a transaction, at once or, if that is asked for, when
// other transactions have left its keys. A vote is one write, from which its locks follow, and is
// never changed: decisions are functions of votes, so each coordinator finds the same one. It is on
// disk before it is told.
//
// If a no could become a yes after it was told, one coordinator would count the no and abort, and
// another would count the yes and commit. A vote that a crash could undo is the same mistake.
func (s *server) onPrepare(env *protocol.Env[message], from protocol.ID, m prepare) {
	t := m.Txn
	if !s.fits(m.Shards) || t.ID.Time == 0 || t.Validate() != nil || !s.mine(t) || m.ReadOnly && !t.ReadOnly() {
		return
	}
	if p, ok := s.coordinators[from]; s.isPeer(from) {
		from = s.cfg.Layout.Coordinator(s.shards[from].Site, t.ID) // which wants the vote
	} else if !ok || p.Site != s.place.Site {
		return
	}
	if m.ReadOnly {
		s.validate(env, from, t)
		return
	}
	r := s.txns[t.ID]
	var current []store.Current
	switch {
	case r == nil && s.behind():
		// A newcomer's no is that of the site which it replaces, whose yes may have been part of a
		// decision: it looks for one first.
		s.lookFor(env, from, t.ID, m.Shards)
		return
	case r != nil && !r.known:
		// It had to vote no, or was told the decision, before the request came. The vote stays;
		// what the transaction writes is needed if it commits all the same.
		s.learn(env, r, t)
	case r != nil: // it has voted, and tells that vote again
	case s.holding.byTxn[t.ID] != nil:
		return // it was repeated
	case t.ID.Time <= s.old:
		// Votes up to here are forgotten, so there may have been one, and this would be a second.
		env.Send(from, vote{ID: t.ID, State: s.forgotten(t.ID), Reason: store.Old, Hint: s.old})
		return
	case !s.makeRoom(env):
		s.turnAway(env, from, t.ID)
		return
	default:
		why, hint := s.refused(env, t, m.Firm)
		if m.Hold && s.mayHold(env, m, why) && s.hasRoom(t) {
			s.hold(env, from, m)
			return
		}
		r = &record{id: t.ID, state: yes, reason: why, hint: hint, known: true, shards: m.Shards, priority: t.Priority,
			reads: t.Reads, writes: t.Writes}
		if why != store.NoReason {
			r.state = no
			current = s.current(env, t)
			s.reserveRefused(env, t)
		} else {
			s.lock(r)
			r.voted = max(env.Now, 1)
		}
		s.counts.Voted(why)
		s.save(env, r)
		s.watch(env, r)
	}
	v := r.vote()
	v.Current = current
	env.Send(from, v)
}

// maxCurrentBytes bounds the values that go with a refusal.
const maxCurrentBytes = 64 << 10

// current returns what a transaction that is refused should have read, so that its client need not
// ask again before its next attempt. It is a hint, which that attempt has validated like all reads.
func (s *server) current(env *protocol.Env[message], t store.Txn) []store.Current {
	var all []store.Current
	bytes := 0
	for _, a := range t.Reads {
		c := store.Current{Key: a.Key}
		if l := s.locks[a.Key]; l != nil && !l.writer.IsZero() || s.reservations.Before(env.Now, a.Key, false, t.Priority) {
			c.Locked = true
		} else if c.Value = values.At(env, a.Key); !c.Value.Version.After(a.Version) {
			continue
		}
		if bytes+len(c.Key)+len(c.Value.Bytes) > maxCurrentBytes {
			c = store.Current{Key: a.Key, Locked: true} // too much: the client has to read it
		}
		if bytes += len(c.Key) + len(c.Value.Bytes); bytes > maxCurrentBytes {
			break
		}
		all = append(all, c)
	}
	return all
}

// mine reports whether all keys are the server's.
func (s *server) mine(t store.Txn) bool {
	l := s.cfg.Layout
	return !slices.ContainsFunc(t.Reads, func(a store.Read) bool { return l.ShardOf(a.Key) != s.place.Index }) &&
		!slices.ContainsFunc(t.Writes, func(w store.Write) bool { return l.ShardOf(w.Key) != s.place.Index })
}

// validate votes on a transaction that only reads. It is serialized at this moment: it takes no
// locks, changes nothing that others have to know of, and may be validated again with another
// result, so nothing need be remembered of it (DESIGN.md, "Why it is strictly serializable", 5).
func (s *server) validate(env *protocol.Env[message], from protocol.ID, t store.Txn) {
	v := vote{ID: t.ID, State: yes}
	if s.behind() {
		v.Reason = store.Fenced
	} else {
		v.Reason, v.Hint = s.refused(env, t, false)
	}
	if v.Reason != store.NoReason {
		v.State = no
	}
	s.counts.Voted(v.Reason)
	switch {
	case v.State == yes:
		s.unreserveAll(env, t.Reads, nil, t.Priority)
	case !s.behind():
		v.Current = s.current(env, t)
		s.reserveRefused(env, t)
	}
	env.Send(from, v)
}

func (s *server) tell(env *protocol.Env[message], to protocol.ID, r *record) {
	env.Send(to, r.vote())
}

// onUrge hands the server's part of a transaction on to a site that has not voted, which then votes
// on its merits, as if the client's request had come by another way. To refuse in that site's name
// could block a transaction that nobody is against. Only a server that has voted yes does so: of a
// transaction that its first site has refused, the client was told that it is aborted, as no other
// site has heard of it, and none may (TestRefusedIsNotUrged).
func (s *server) onUrge(env *protocol.Env[message], from protocol.ID, m urge) {
	p, ok := s.coordinators[from]
	r := s.txns[m.ID]
	if !ok || p.Site != s.place.Site || r == nil || !r.known || r.state != yes {
		return
	}
	if int(m.Site) >= len(s.cfg.Layout.Sites) || int(m.Site) == s.place.Site || s.cfg.Layout.Sites[m.Site].Fenced {
		return
	}
	env.Send(s.cfg.Layout.Sites[m.Site].Shards[s.place.Index], prepare{
		Txn: store.Txn{ID: r.id, Priority: r.priority, Reads: r.reads, Writes: r.writes}, Shards: r.shards, Firm: true,
		Hold: true,
	})
}

// onAsk tells what is known. A server that has not voted yet votes no if the asker has to rely on
// the answer (Fence): "not yet" alone could become a yes after it was told.
func (s *server) onAsk(env *protocol.Env[message], from protocol.ID, m ask) {
	if _, ok := s.coordinators[from]; !ok || !s.fits(m.Shards) || m.ID.Time == 0 {
		return
	}
	r := s.txns[m.ID]
	switch {
	case r != nil:
	case s.behind():
		s.lookFor(env, from, m.ID, m.Shards)
		return
	case m.ID.Time <= s.old:
		env.Send(from, vote{ID: m.ID, State: s.forgotten(m.ID), Reason: store.Old, Hint: s.old})
		return
	case !m.Fence:
		env.Send(from, vote{ID: m.ID, State: undecided})
		return
	case len(s.txns) >= s.cfg.MaxTxns:
		return
	default:
		r = s.unprepared(env, m.ID, m.Shards)
		r.reason = store.Fenced
		s.counts.Voted(store.Fenced)
		s.save(env, r)
		s.watch(env, r)
	}
	s.tell(env, from, r)
}

// onDecide carries out a decision, whatever the server voted. One that rests on forgetting is the
// own coordinator's to make: others may have been told that there is nothing to copy any more, when
// this site has not copied it.
func (s *server) onDecide(env *protocol.Env[message], from protocol.ID, m decide) {
	p, ok := s.coordinators[from]
	if !ok || !s.fits(m.Shards) || m.ID.Time == 0 {
		return
	}
	s.decided++
	r := s.txns[m.ID]
	state := aborted
	if m.Commit {
		state = committed
	}
	switch {
	case r == nil && !m.Commit && m.ID.Time <= s.old:
		// Forgotten, so it has no locks here, and an abort has nothing to apply.
		env.Send(from, vote{ID: m.ID, State: aborted, Reason: store.Old})
		return
	case r == nil && m.ID.Time <= s.old && s.forgotten(m.ID) == gone:
		env.Send(from, vote{ID: m.ID, State: gone, Reason: store.Old, Hint: s.old})
		return
	case r == nil:
		if len(s.txns) >= s.cfg.MaxTxns {
			return
		}
		r = s.unprepared(env, m.ID, m.Shards)
		if m.Old {
			r.reason = store.Old
		}
		s.decide(env, r, state)
		s.watch(env, r)
	case (r.state == yes || r.state == no) && m.Old && p.Site != s.place.Site:
	case r.state == yes || r.state == no:
		if m.Old {
			r.reason = store.Old
		}
		s.decide(env, r, state)
	case r.tookForOld() && m.Commit:
		s.checkCopied(env, r)
	case r.state != state && !m.Old:
		s.contradict(r, state)
		return
	}
	if r.now() == wanting {
		s.fetch(env, r)
	}
	env.SendUnhurried(from, r.vote()) // its locks are free; what waits for the answer is what remembers the transaction
}

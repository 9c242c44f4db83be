package tapir

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A view change has a majority of the group put together what they have on record, give each
// transaction that is not decided a result, and go on from there [IR, §3.2.2]. A server that starts
// again begins one, as it may have missed what it was to hold; so does a coordinator that cannot
// tell from votes alone whether a result was reached (see part.choose).

// leader returns the server that leads a view.
func (s *server) leader(v viewNumber) protocol.ID { return s.group[uint64(v)%uint64(len(s.group))] }

// beginView has the server leave its view for a later one.
func (s *server) beginView(env *protocol.Env[store.Message], v viewNumber) {
	s.enter(env, v)
	for _, id := range s.group {
		if id != s.cfg.ID {
			env.Send(id, viewChange{v})
		}
	}
	s.sendView(env)
}

func (s *server) enter(env *protocol.Env[store.Message], v viewNumber) {
	env.Stop(viewTimer{s.view})
	s.view, s.viewTry, s.began = v, 0, nil
	clear(s.views)
	s.saveView(env)
	env.After(2*s.cfg.RoundTrip, viewTimer{v})
}

func (s *server) saveView(env *protocol.Env[store.Message]) {
	env.Put([]byte(viewKey), viewLayout.Encode(s.viewState))
}

// sendView gives the leader what is on record: all that is not known to be carried out everywhere.
func (s *server) sendView(env *protocol.Env[store.Message]) {
	m := doView{View: s.view, Normal: s.normal}
	for _, r := range s.openRecords() {
		m.Record = append(m.Record, entry{
			ID: r.id, Shards: r.shards, Has: r.has, Part: r.part, Promised: r.promised, Vote: r.vote, Accepted: r.accepted,
			Yes: r.yes, Reason: r.reason, End: r.end,
		})
	}
	if to := s.leader(s.view); to != s.cfg.ID {
		env.Send(to, m)
		return
	}
	s.onDoView(env, s.cfg.ID, m)
}

// viewLate says it again, and then has the next server lead.
func (s *server) viewLate(env *protocol.Env[store.Message], v viewNumber) {
	if v != s.view || s.takesPart() || !s.self.admitted {
		return
	}
	if s.viewTry++; s.viewTry > 1+env.Rand.IntN(2) {
		s.beginView(env, v+1)
		return
	}
	s.sendView(env)
	env.After(2*s.cfg.RoundTrip, viewTimer{v})
}

func (s *server) onViewChange(env *protocol.Env[store.Message], from protocol.ID, m viewChange) {
	_, coordinator := s.coordinators[from]
	switch {
	case !s.isPeer(from) && !coordinator:
	case m.View > s.view:
		s.enter(env, m.View)
		s.sendView(env)
		if coordinator {
			for _, id := range s.group {
				if id != s.cfg.ID {
					env.Send(id, m)
				}
			}
		}
	case m.View < s.view && !coordinator:
		env.Send(from, viewChange{s.view})
	}
}

func (s *server) onDoView(env *protocol.Env[store.Message], from protocol.ID, m doView) {
	if from != s.cfg.ID && !s.isPeer(from) || s.leader(m.View) != s.cfg.ID || m.View < s.view ||
		!slices.IsSortedFunc(m.Record, func(a, b entry) int { return a.ID.Compare(b.ID) }) || !s.fitsRecord(m.Record) {
		return
	}
	if m.View > s.view {
		s.enter(env, m.View)
		s.sendView(env)
	}
	if s.began != nil { // it comes late
		env.Send(from, *s.began)
		return
	}
	if s.takesPart() {
		return // and has been started since it began the view
	}
	s.views[from] = m
	if len(s.views) < s.slow {
		return
	}
	began := startView{View: s.view, Record: s.merge()}
	s.began = &began
	for _, id := range s.group {
		if id != s.cfg.ID {
			env.Send(id, began)
		}
	}
	s.adopt(env, began.Record)
}

func (s *server) fitsRecord(all []entry) bool {
	return !slices.ContainsFunc(all, func(e entry) bool { return !s.fits(e.ID, e.Shards) || e.Has && !s.fitsPart(e.Part) })
}

// merge is IR-MERGE-RECORDS and TAPIR-MERGE [Figures 6 and 12]: it returns a record in which each
// transaction has its end or a result.
//
// A result that a coordinator may go by is found here. If a majority has accepted it, one of the
// records has it, and none has one of a later ballot that differs. If it is a yes by a fast quorum,
// so many of the records have votes for it that no conflicting transaction can have as many; but
// one that does not hold by votes alone may have a result already, or be committed, and then this
// one has not. Nothing else can have been gone by: it is refused, as this server cannot check it for
// the others, which have forgotten some of what it would have to be checked against.
func (s *server) merge() []entry {
	normal := viewNumber(0)
	for _, m := range s.views { //pure:ok the latest is the same in any order
		normal = max(normal, m.Normal)
	}
	merged := map[store.TxnID]*entry{}
	votes := map[store.TxnID]int{}
	var order []store.TxnID
	for _, id := range s.group {
		m, ok := s.views[id]
		if !ok {
			continue
		}
		for _, e := range m.Record {
			if m.Normal != normal && e.End == undecided {
				continue // of a view whose results the later one has
			}
			if e.Vote == prepared && e.End == undecided {
				votes[e.ID]++
			}
			old := merged[e.ID]
			if old == nil {
				merged[e.ID] = &e
				order = append(order, e.ID)
				continue
			}
			old.join(e)
		}
	}
	slices.SortFunc(order, store.TxnID.Compare)
	var out []entry
	var yes []store.Txn // of those that are, or may be, committed
	for _, id := range order {
		if e := merged[id]; e.Has && (e.End == committed || e.End == undecided && e.Yes) {
			yes = append(yes, e.Part)
		}
	}
	for _, id := range order {
		e := merged[id]
		if e.End == undecided && e.Accepted == (ballot{}) {
			against := func(t store.Txn) bool { return t.ID != id && conflict(t, e.Part) }
			if votes[id] >= s.fast+s.slow-len(s.group) && e.Has && !slices.ContainsFunc(yes, against) {
				e.Yes = true
				yes = append(yes, e.Part)
			} else if e.Reason == store.NoReason {
				e.Reason = store.Fenced
			}
		}
		if e.End == undecided {
			if e.Accepted = e.Promised; e.Accepted == (ballot{}) {
				e.Accepted = ballot{By: 1}
			}
			e.Promised = e.Accepted
		}
		out = append(out, *e)
	}
	return out
}

// join takes over what another server has of the same transaction.
func (e *entry) join(o entry) {
	if o.Has && !e.Has {
		e.Has, e.Part = true, o.Part
	}
	if o.Promised.compare(e.Promised) > 0 {
		e.Promised = o.Promised
	}
	if o.Accepted.compare(e.Accepted) > 0 {
		e.Accepted, e.Yes, e.Reason = o.Accepted, o.Yes, o.Reason
	}
	if o.End == committed || e.End == undecided || e.End == aborted && e.Reason == store.Old && o.End == aborted {
		if o.End != undecided {
			e.End, e.Reason = o.End, o.Reason
		}
	}
}

func (s *server) onStartView(env *protocol.Env[store.Message], from protocol.ID, m startView) {
	if !s.isPeer(from) || s.leader(m.View) != from || m.View < s.view || m.View == s.normal || !s.fitsRecord(m.Record) {
		return
	}
	if m.View > s.view {
		s.enter(env, m.View)
	}
	s.adopt(env, m.Record)
}

// adopt is IR-SYNC and TAPIR-SYNC [Figure 13]: it makes the record this server's, and has it take
// part in the view. What is not in it, and not decided, no majority has, so that nobody has gone by
// it: it is forgotten. Those that are accepted hold, others do not.
func (s *server) adopt(env *protocol.Env[store.Message], all []entry) {
	env.Stop(viewTimer{s.view})
	s.normal = s.view
	s.saveView(env)
	there := map[store.TxnID]bool{}
	for _, e := range all {
		there[e.ID] = true
	}
	for _, r := range s.openRecords() {
		if r.end != undecided {
			continue
		}
		s.release(r)
		if !there[r.id] {
			s.strike(env, r)
			continue
		}
		r.vote = unvoted
	}
	for _, e := range all {
		if s.txns[e.ID] == nil && e.ID.Time <= s.old && e.End != undecided {
			continue // it is old, and what it wrote comes with the decision
		}
		r := s.find(env, e.ID, e.Shards)
		if r == nil || r.end != undecided && e.End == undecided {
			continue
		}
		s.take(env, r, e.Has, e.Part)
		if e.End != undecided {
			if e.End == aborted || r.has {
				s.end(env, r, e.End == committed, e.Reason)
			}
			continue
		}
		if e.Promised.compare(r.promised) > 0 {
			r.promised = e.Promised
		}
		r.accepted, r.yes, r.votedAt, r.reason = e.Accepted, e.Yes, ballot{}, e.Reason
		if r.vote = refused; e.Yes && r.has {
			r.vote, r.reason = prepared, store.NoReason
			s.hold(r)
		}
		s.save(env, r)
	}
}

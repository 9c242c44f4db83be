package str

import (
	"slices"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// wanted is a transaction that is to be certified.
type wanted struct {
	id   store.TxnID
	at   clock.Stamp
	keys []store.Key
	over []store.TxnID
	// log says that it is certified for an entry of the log: what became of others counts only if the
	// log has that before the entry.
	log bool
}

// judge returns why a transaction cannot be certified, or that it waits for others that may yet
// turn out to be in its snapshot. These have smaller snapshots than it has, so nobody waits in a
// circle (S7).
func (s *server) judge(env *protocol.Env[store.Message], t wanted) (why store.Reason, waits bool) {
	state := s.group.State(env)
	if t.at < s.state.values.Horizon(state) || t.log && t.at < s.horizon {
		return store.Old, false
	}
	for _, key := range t.keys {
		if clock.Stamp(s.state.values.Newest(state, key).Version.Time) > t.at {
			return store.StaleWrite, false
		}
		for _, h := range s.byKey[key] {
			if h.part.ID == t.id || t.log && h.gaveWay && h.stage == tentative {
				continue
			}
			why, wait := s.meets(t, h)
			if why != store.NoReason {
				return why, false
			}
			waits = waits || wait
		}
	}
	for _, id := range t.over {
		if s.held[id] != nil {
			continue
		}
		switch r := s.state.known(state, id); {
		case r.State == waiting: // it comes, by another way
			waits = true
		case r.State != committed || r.At > t.at:
			return store.StaleRead, false
		}
	}
	return store.NoReason, waits
}

// meets returns what another transaction that is to write the same key means for this one.
func (s *server) meets(t wanted, h *held) (why store.Reason, waits bool) {
	over := slices.Contains(t.over, h.part.ID)
	switch {
	case h.over != nil && h.over.Commit && h.over.At > t.at:
		return store.StaleWrite, false
	case h.over != nil && !h.over.Commit && over:
		return store.StaleRead, false
	case h.over != nil:
		return store.NoReason, t.log && !over && !s.proposed[h.part.ID]
	case over: // its entry has to be before this one's, and its end not between them
		return store.NoReason, t.log && (h.stage == tentative || s.proposed[h.part.ID] || s.doubted[h.part.ID])
	case h.shownFrom() > t.at:
		return store.Locked, false
	}
	return store.NoReason, true
}

// onCertify certifies a transaction for a coordinator of the site.
func (s *server) onCertify(env *protocol.Env[store.Message], from protocol.ID, m certify) {
	out := certified{Shard: s.self, ID: m.ID}
	if h := s.held[m.ID]; h != nil {
		h.heard = env.Now
		if out.Stamp = h.stamp; h.gaveWay {
			out.Stamp, out.Reason = 0, store.Locked
		}
		out.Until = s.vouchesUntil(env, h)
		env.Send(from, out)
		return
	}
	if !slices.Contains(s.cfg.Layout.Sites[s.place.Site].Coordinators, from) || !s.mine(m.Keys) || m.At < 0 {
		return
	}
	switch {
	case clock.Stamp(env.Now+s.cfg.MaxAhead) < m.At:
		out.Reason = store.Ahead
	case s.deaf():
		out.Reason = store.Fenced // nobody waits for its word
	}
	if out.Reason != store.NoReason {
		env.Send(from, out)
		return
	}
	why, waits := s.judge(env, wanted{id: m.ID, at: m.At, keys: m.Keys, over: m.Over})
	switch out.Reason = why; {
	case why != store.NoReason:
	case waits && !s.waits.add(s.cfg.MaxWaiting, &waiter{from: from, msg: m, keys: m.Keys}):
		out.Reason = store.Overloaded
	case waits:
	case len(s.held) >= s.cfg.MaxTxns:
		out.Reason = store.Overloaded
	default:
		p := part{ID: m.ID, At: m.At, Origin: from, Over: m.Over}
		for _, key := range m.Keys {
			p.Writes = append(p.Writes, store.Write{Key: key, Delete: true})
		}
		h := &held{part: p, stamp: s.stampOf(env, p)}
		s.add(env, h)
		s.putOwn(env, h) // whoever has this word takes it for one that does not change
		out.Stamp, out.Until = h.stamp, s.vouchesUntil(env, h)
	}
	env.Send(from, out)
}

// vouchesUntil returns up to which timestamp nothing that conflicts with a transaction commits
// before the transaction has given way here; 0: it may at any. That is this server's ceiling: a
// commit without the server's word is above the floor, and so above all ceilings that the server
// has heard of while it served reads.
func (s *server) vouchesUntil(env *protocol.Env[store.Message], h *held) clock.Stamp {
	if !s.mode.speculates || s.deaf() || h.gaveWay {
		return 0
	}
	for _, w := range h.part.Writes { // a copy of the state may have what was committed meanwhile
		if clock.Stamp(s.state.values.Newest(s.group.State(env), w.Key).Version.Time) > h.part.At {
			return 0
		}
	}
	if at := max(h.part.At, clock.Stamp(env.Now)); s.low(env, at) {
		s.wantCeiling(env, at)
	}
	return s.reads.Ceiling()
}

// low reports whether it is time to ask for a higher ceiling than a snapshot needs.
func (s *server) low(env *protocol.Env[store.Message], at clock.Stamp) bool {
	return s.reads.Ceiling()-at < clock.Stamp(leaseTrips*s.cfg.RoundTrip/2) || env.Now-s.raised > tellTrips*s.cfg.RoundTrip
}

// mine reports whether keys are the shard's, in ascending order.
func (s *server) mine(keys []store.Key) bool {
	for i, key := range keys {
		if s.cfg.Layout.ShardOf(key) != s.place.Index || i > 0 && key <= keys[i-1] {
			return false
		}
	}
	return len(keys) > 0
}

// tryPrepare has the group prepare a part, if it can be now.
func (s *server) tryPrepare(env *protocol.Env[store.Message], q kit.Question, p part) {
	if r := s.state.known(s.group.State(env), p.ID); r.State != waiting {
		env.Send(q.From, told{q.Ref, r})
		if h := s.held[p.ID]; h != nil {
			s.say(env, h)
		}
		return
	}
	if !s.validPart(env, p) {
		return
	}
	h := s.held[p.ID]
	if h != nil && h.stage == inLog && s.logHas(h) {
		s.asked[h.at] = q
		s.say(env, h)
		return
	}
	var keys []store.Key
	for _, w := range p.Writes {
		keys = append(keys, w.Key)
	}
	why, waits := s.judge(env, wanted{id: p.ID, at: p.At, keys: keys, over: p.Over, log: true})
	members, settled := s.group.Members()
	switch {
	case why != store.NoReason:
		s.askGroup(env, q, decide{ID: p.ID, Reason: why})
	case waits && s.waits.add(s.cfg.MaxWaiting, &waiter{from: q.From, ref: q.Ref, msg: p, keys: keys}):
		env.Send(q.From, told{q.Ref, result{State: waiting}})
	case waits || !settled || s.fenced[p.ID] || s.proposed[p.ID] || s.doubted[p.ID]:
		q.Elsewhere(env, 0)
	default:
		p.Readers, p.Past = s.readers(members), max(s.pastAtEnd(env), s.noted)
		for _, key := range keys {
			p.Past = max(p.Past, s.shown.Above(key))
		}
		s.askGroup(env, q, prepare{p})
	}
}

// pastAtEnd returns the floor at the end of this leader's log, or a later timestamp: what comes
// there needs no words of readers that the group is about to do without (S19).
func (s *server) pastAtEnd(env *protocol.Env[store.Message]) clock.Stamp {
	floor := s.state.books.floor
	if len(s.dropped) > 0 {
		floor = max(floor, s.ceiling, s.state.values.Ceiling(s.group.State(env)))
	}
	return floor
}

// logHas reports whether the entry of what is held is in the log still.
func (s *server) logHas(h *held) bool {
	term, ok := s.group.TermOf(h.at.Index)
	return ok && term == h.at.Term
}

// validPart reports whether a part makes sense, whoever has sent it.
func (s *server) validPart(env *protocol.Env[store.Message], p part) bool {
	l := s.cfg.Layout
	if p.ID.IsZero() || p.At < 0 || p.Local <= p.At || !l.ValidShards(p.Shards) || !slices.Contains(p.Shards, s.self) ||
		p.Local > clock.Stamp(env.Now+2*s.cfg.MaxAhead) || len(p.Writes) == 0 || store.ValidAccesses(nil, p.Writes) != nil {
		return false
	}
	for _, d := range p.On {
		if int(d.Shard) >= len(l.Sites[0].Shards) {
			return false
		}
	}
	return !slices.ContainsFunc(p.Writes, func(w store.Write) bool { return l.ShardOf(w.Key) != s.place.Index })
}

// onRead answers a read of a snapshot: at once, or when the outcomes are known of all transactions
// that it may have to show.
func (s *server) onRead(env *protocol.Env[store.Message], from protocol.ID, m readAt) {
	out := found{Ref: m.Ref}
	switch {
	case s.cfg.Layout.ShardOf(m.Key) != s.place.Index || m.At < 0:
		return
	case m.At > clock.Stamp(env.Now+s.cfg.MaxAhead):
		out.Reason = store.Ahead
	case s.deaf():
		out.Reason = store.Fenced
	case s.mode.physical && m.At > clock.Stamp(env.Now):
		out.Reason = s.waitHigh(env, from, m)
		env.After(time.Duration(m.At)-env.Now, lateTimer{})
	case !s.reads.Serve(m.Key, m.At):
		out.Reason = s.waitHigh(env, from, m)
		s.wantCeiling(env, m.At)
	default:
		if s.low(env, m.At) {
			s.wantCeiling(env, m.At)
		}
		s.answer(env, from, m)
		return
	}
	if out.Reason != store.NoReason {
		env.Send(from, out)
	}
}

// deaf reports whether the server serves no reads, as far as it knows.
func (s *server) deaf() bool {
	member, _ := s.group.Standing()
	return !member || slices.Contains(s.state.books.deaf, s.cfg.ID)
}

// waitHigh has a read wait for the ceiling, or the clock.
func (s *server) waitHigh(_ *protocol.Env[store.Message], from protocol.ID, m readAt) store.Reason {
	if !s.waits.addHigh(s.cfg.MaxWaiting, &waiter{from: from, ref: m.Ref, msg: m}) {
		return store.Overloaded
	}
	return store.NoReason
}

// answer answers a read that has been noted.
func (s *server) answer(env *protocol.Env[store.Message], from protocol.ID, m readAt) {
	out := found{Ref: m.Ref}
	v, err := s.state.values.Get(s.group.State(env), m.Key, m.At)
	if err != nil {
		out.Reason = store.Old
		env.Send(from, out)
		return
	}
	for _, h := range s.byKey[m.Key] {
		switch {
		case h.over != nil && (!h.over.Commit || h.over.At > m.At), slices.Contains(m.Skip, h.part.ID):
		case h.over != nil:
			version := store.Version{Time: uint64(h.over.At), Client: h.part.ID.Client}
			if version.After(v.Version) {
				i := slices.IndexFunc(h.part.Writes, func(w store.Write) bool { return w.Key == m.Key })
				w := h.part.Writes[i]
				v = store.Value{Version: version, Present: !w.Delete, Bytes: w.Bytes}
			}
		case h.shownFrom() <= m.At:
			if !s.waits.add(s.cfg.MaxWaiting, &waiter{from: from, ref: m.Ref, msg: m, keys: []store.Key{m.Key}}) {
				out.Reason = store.Overloaded
				env.Send(from, out)
			}
			return
		}
	}
	out.Value = v
	env.Send(from, out)
}

// onProbe answers who looks for a site near, with what was agreed on last.
func (s *server) onProbe(env *protocol.Env[store.Message], from protocol.ID, m store.ReadRequest) {
	if s.cfg.Layout.ShardOf(m.Key) != s.place.Index {
		return
	}
	_, leads := s.group.Leads()
	v := s.state.values.Newest(s.group.State(env), m.Key)
	env.Send(from, store.ReadReply{Ref: m.Ref, Value: v, Pending: len(s.byKey[m.Key]) > 0, Hint: v.Version.Time,
		Led: leads})
}

// wantCeiling has the group put a ceiling above a snapshot on record.
func (s *server) wantCeiling(env *protocol.Env[store.Message], at clock.Stamp) {
	if s.group.Current() {
		s.raised = env.Now
		s.raise(env, at)
		return
	}
	if leader := s.group.Leader().ID; leader != 0 && leader != s.cfg.ID && env.Now-s.raised >= s.cfg.RoundTrip/4 {
		s.raised = env.Now
		env.Send(leader, raise{Shard: s.self, At: at})
	}
}

// raise proposes a ceiling, unless one that is high enough is on record, or on its way.
func (s *server) raise(env *protocol.Env[store.Message], at clock.Stamp) {
	c, due := s.reads.Raise(at + clock.Stamp(leaseTrips*s.cfg.RoundTrip/2)) // which is as much again below c
	if !due {
		return
	}
	if _, ok := s.propose(env, ceil{Ceiling: c, Horizon: s.copies.horizon(env.Now, s.cfg.Retain)}); !ok {
		s.reads.Failed()
	}
}

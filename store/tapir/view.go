package tapir

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A view change has a majority of the group put together what they have on record, give each
// transaction that is not decided a result, and go on from there. A server that starts
// again begins one, as it may have missed what it was to hold; so does a coordinator that cannot
// tell from votes alone whether a result was reached (see part.choose).

// change is what a server knows of the change to its view.
type change struct {
	tries int                      // how often it has given the leader its record
	mine  doView                   // Piece is empty
	sent  []piece                  // of mine
	got   map[protocol.ID]*gathers // by the leader of the view: all records, its own too
	ripe  bool                     // the leader has waited for all of them
	start gathers                  // by those who do not lead it: the record that the view begins with
	began []piece                  // that record, by the leader; nil: the view has not begun
}

// gathers are the pieces of a record that have come.
type gathers struct {
	normal viewNumber
	pieces map[uint32][]entry
	of     uint32
}

// Limits of a record's pieces.
const (
	pieceBytes = 1 << 20
	maxPieces  = 1 << 16
	entryBytes = 100 // about what an entry takes beside its keys and values
)

// cut returns the pieces of a record, one at least.
func cut(all []entry) []piece {
	out := []piece{{}}
	size := 0
	for _, e := range all {
		last := &out[len(out)-1]
		n := entryBytes + store.ContentBytes(e.Part.Reads, e.Part.Writes)
		if size += n; size > pieceBytes && len(last.Entries) > 0 {
			out, size = append(out, piece{}), n
			last = &out[len(out)-1]
		}
		last.Entries = append(last.Entries, e)
	}
	for i := range out {
		out[i].N, out[i].Of = uint32(i), uint32(len(out))
	}
	return out
}

// add takes a piece, and reports whether the record is whole.
func (g *gathers) add(p piece) bool {
	if p.N >= p.Of || p.Of > maxPieces || g.pieces != nil && p.Of != g.of {
		return false
	}
	if g.pieces == nil {
		g.pieces, g.of = map[uint32][]entry{}, p.Of
	}
	g.pieces[p.N] = p.Entries
	return g.whole()
}

func (g *gathers) whole() bool { return g.pieces != nil && len(g.pieces) == int(g.of) }

// record returns all entries.
func (g *gathers) record() []entry {
	var all []entry
	for n := range g.of {
		all = append(all, g.pieces[n]...)
	}
	return all
}

// leader returns the server that leads a view.
func (s *server) leader(v viewNumber) protocol.ID { return s.group[uint64(v)%uint64(len(s.group))] }

// beginView has the server leave its view for a later one.
func (s *server) beginView(env *protocol.Env[store.Message], v viewNumber) {
	s.tellPeers(env, viewChange{v})
	s.enter(env, v)
}

func (s *server) tellPeers(env *protocol.Env[store.Message], m store.Message) {
	for _, id := range s.group {
		if id != s.cfg.ID {
			env.Send(id, m)
		}
	}
}

// enter has the server take part in no view until the given one has begun, and gives its leader
// what is on record: all that is not known to be carried out everywhere. That is said once: what is
// said again is the same.
func (s *server) enter(env *protocol.Env[store.Message], v viewNumber) {
	env.Stop(viewTimer{s.view})
	s.view = v
	s.saveView(env)
	s.change = change{mine: doView{View: v, Normal: s.normal}, got: map[protocol.ID]*gathers{}}
	var all []entry
	for _, r := range s.openRecords() {
		all = append(all, entry{
			ID: r.id, Shards: r.shards, Has: r.has, Part: r.part, Promised: r.promised, Vote: r.vote, Accepted: r.accepted,
			Yes: r.yes, Reason: r.reason, End: r.end, Lost: r.lost,
		})
	}
	s.change.sent = cut(all)
	env.After(2*s.cfg.RoundTrip, viewTimer{v})
	if s.leader(v) == s.cfg.ID {
		env.After(s.cfg.RoundTrip+s.cfg.RoundTrip/2, ripeTimer{v})
	}
	s.sendView(env)
}

func (s *server) saveView(env *protocol.Env[store.Message]) {
	env.Put([]byte(viewKey), viewLayout.Encode(s.viewState))
}

// sendView gives the leader the server's record.
func (s *server) sendView(env *protocol.Env[store.Message]) {
	to := s.leader(s.view)
	for _, p := range s.change.sent {
		m := s.change.mine
		if m.Piece = p; to == s.cfg.ID {
			s.onDoView(env, to, m)
		} else {
			env.Send(to, m)
		}
	}
}

// viewLate says it again, and then has the next server lead.
func (s *server) viewLate(env *protocol.Env[store.Message], v viewNumber) {
	if v != s.view || s.takesPart() || !s.admitted() {
		return
	}
	if s.change.tries++; s.change.tries > 1+env.Rand.IntN(2) {
		s.beginView(env, v+1)
		return
	}
	env.After(2*s.cfg.RoundTrip, viewTimer{v})
	s.sendView(env)
}

func (s *server) onViewChange(env *protocol.Env[store.Message], from protocol.ID, m viewChange) {
	switch {
	case m.View > maxView:
	case m.View > s.view:
		s.enter(env, m.View)
	case m.View < s.view:
		env.Send(from, viewChange{s.view})
	}
}

// onWantView has the group change its view for a coordinator.
func (s *server) onWantView(env *protocol.Env[store.Message], m viewChange) {
	if m.View > s.view && m.View <= maxView {
		s.beginView(env, m.View)
	}
}

func (s *server) onDoView(env *protocol.Env[store.Message], from protocol.ID, m doView) {
	if s.leader(m.View) != s.cfg.ID || m.View < s.view || m.View > maxView || !s.fitsRecord(m.Piece.Entries) {
		return
	}
	if m.View > s.view {
		s.enter(env, m.View)
	}
	if s.change.began != nil { // it comes late
		switch {
		case m.Piece.N != 0:
		case slices.Contains(s.members, from):
			s.sendStart(env, from)
		default:
			s.beginView(env, s.view+1)
		}
		return
	}
	if s.takesPart() {
		return // and has been started since it began the view
	}
	g := s.change.got[from]
	if g == nil {
		g = &gathers{normal: m.Normal}
		s.change.got[from] = g
	}
	if !g.add(m.Piece) {
		return
	}
	s.maybeStart(env)
}

// maybeStart begins the view that the server leads when it has the records of all servers or, when
// it has waited, of a majority. Those are the view's members: no other one takes part in it.
func (s *server) maybeStart(env *protocol.Env[store.Message]) {
	var members []protocol.ID
	for _, id := range s.group {
		if g := s.change.got[id]; g != nil && g.whole() {
			members = append(members, id)
		}
	}
	if len(members) < s.slow || len(members) < len(s.group) && !s.change.ripe {
		return
	}
	slices.Sort(members)
	merged := s.merge()
	s.change.began = cut(merged)
	s.sync(env, members, merged)
	for _, id := range members {
		if id != s.cfg.ID {
			s.sendStart(env, id)
		}
	}
}

// viewRipe has the leader wait no more for the records of all.
func (s *server) viewRipe(env *protocol.Env[store.Message], v viewNumber) {
	if v == s.view && s.leader(v) == s.cfg.ID && s.change.got != nil {
		s.change.ripe = true
		s.maybeStart(env)
	}
}

// sendStart gives a server the record that the view begins with.
func (s *server) sendStart(env *protocol.Env[store.Message], to protocol.ID) {
	for _, p := range s.change.began {
		env.Send(to, startView{s.view, s.members, p})
	}
}

// validMembers reports whether so many servers of the group may make a view.
func (s *server) validMembers(members []protocol.ID) bool {
	once := len(slices.Compact(slices.Clone(members))) == len(members)
	return len(members) >= s.slow && slices.IsSorted(members) && once &&
		!slices.ContainsFunc(members, func(id protocol.ID) bool { return !slices.Contains(s.group, id) })
}

func (s *server) fitsRecord(all []entry) bool {
	return !slices.ContainsFunc(all, func(e entry) bool { return !s.fits(e.ID, e.Shards) || e.Has && !s.fitsPart(e.Part) })
}

// merge is IR-MERGE-RECORDS and TAPIR-MERGE: it returns a record in which each
// transaction has its end or a result.
//
// A result that a coordinator may go by is found here. If a majority has accepted it, one of the
// records has it, and none has one of a later ballot that differs. If it is a yes by a fast quorum,
// so many of the records have votes for it that no conflicting transaction can have as many; but
// one that does not hold by votes alone may have a result already, or be committed, and then this
// one has not. Nothing else can have been gone by: it is refused, as this server cannot check it
// for the others, which have forgotten some of what it would have to be checked against.
func (s *server) merge() []entry {
	normal, silent := viewNumber(0), len(s.group)
	for _, g := range s.change.got { //pure:ok the latest and the number are the same in any order
		if g.whole() {
			normal = max(normal, g.normal)
			silent--
		}
	}
	merged, votes := s.joined(normal)
	var out []entry
	var yes []store.Txn // of those that are, or may be, committed
	for _, e := range merged {
		if e.Has && (e.End == committed || e.End == undecided && e.Yes) {
			yes = append(yes, e.Part)
		}
	}
	enough := min(s.slow, s.fast-silent) // votes for a yes that may have been gone by
	for _, e := range merged {
		if e.End == undecided && e.Accepted == (ballot{}) {
			against := func(t store.Txn) bool { return t.ID != e.ID && conflict(t, e.Part) }
			if votes[e.ID] >= enough && e.Has && !slices.ContainsFunc(yes, against) {
				e.Yes = true
				yes = append(yes, e.Part)
			} else if e.Reason == store.NoReason {
				e.Reason = store.Fenced
			}
		}
		if e.End == undecided {
			if e.Accepted = e.Promised; e.Accepted == (ballot{}) {
				e.Accepted = ballot{By: firstDrawn - 1}
			}
			e.Promised = e.Accepted
		}
		out = append(out, *e)
	}
	return out
}

// joined returns what the servers have on record together, in the order of the IDs, and how many of
// those that were in the latest view have voted for a yes. What others of them have that is not
// decided is of a view whose results the later one has.
func (s *server) joined(latest viewNumber) (all []*entry, votes map[store.TxnID]int) {
	merged := map[store.TxnID]*entry{}
	votes = map[store.TxnID]int{}
	for _, id := range s.group {
		g := s.change.got[id]
		if g == nil || !g.whole() {
			continue
		}
		last := store.TxnID{}
		for _, e := range g.record() {
			if !e.ID.After(last) || g.normal != latest && e.End == undecided {
				continue
			}
			last = e.ID // a server has each once
			if e.Vote == prepared && e.End == undecided {
				votes[e.ID]++
			}
			if old := merged[e.ID]; old != nil {
				old.join(e)
				continue
			}
			merged[e.ID] = &e
			all = append(all, &e)
		}
	}
	slices.SortFunc(all, func(a, b *entry) int { return a.ID.Compare(b.ID) })
	return all, votes
}

// join takes over what another server has of the same transaction.
func (e *entry) join(o entry) {
	if o.Has && !e.Has {
		e.Has, e.Part = true, o.Part
	}
	e.Lost = e.Lost || o.Lost
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
	if s.leader(m.View) != from || m.View < s.view || m.View > maxView || m.View == s.normal ||
		!s.fitsRecord(m.Piece.Entries) ||
		!slices.Contains(m.Members, s.cfg.ID) || !s.validMembers(m.Members) {
		return
	}
	if m.View > s.view {
		s.enter(env, m.View)
	}
	if s.change.start.add(m.Piece) {
		s.sync(env, m.Members, s.change.start.record())
	}
}

// sync is IR-SYNC and TAPIR-SYNC: it makes the record this server's, and has it take
// part in the view. What is not in it, and not decided, no majority has, so that nobody has gone by
// it: it is forgotten. Those that are accepted hold, others do not.
func (s *server) sync(env *protocol.Env[store.Message], members []protocol.ID, all []entry) {
	env.Stop(viewTimer{s.view})
	s.change = change{began: s.change.began}
	s.normal, s.members = s.view, members
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
		r := s.txns[e.ID]
		if r == nil {
			r = s.add(env, e.ID, e.Shards) // full or not: it has to hold
		}
		if r.end != undecided && e.End == undecided {
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
		r.lost = r.lost || e.Lost && !e.Yes
		if r.vote = refused; e.Yes && r.has {
			r.vote, r.reason = prepared, store.NoReason
			s.held.add(r)
		}
		s.save(env, r)
	}
}

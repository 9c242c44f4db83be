package carousel

import (
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
)

// Say T and U both write x. The leader prepares T: it checks for conflicts, proposes its yes to the
// group, and votes when the group has agreed. U arrives before that. It is refused, as what is
// proposed holds its keys already (plant "keys of what is proposed are free").
//
// The rule: the group's word on a part is the first one in its log, and it does not change until
// the transaction ends. So a vote is told only when the group has agreed on it: else the leader
// could tell T's yes and crash, and the next one would give x to U (plant "a vote is told before
// the group has agreed"). A no that a coordinator has asked for goes through the log too: else a
// delayed prepare could turn it into a yes, and the next coordinator would commit what this one has
// aborted (plant "a partition that was asked for its vote may say yes later"). On the fast path the
// leader speaks earlier, for itself only: see fast.go.

// participant is what the leader of a partition's group knows beside the state: what it is about to
// have the group agree on. A new leader begins with nothing.
type participant struct {
	// flying are parts that are proposed and not applied yet. Nobody can take their keys meanwhile.
	flying      map[partID]*prepared
	flyingLocks locks
	ending      map[store.TxnID][]protocol.ID // whose ends are proposed, and who waits for that
	checking    map[store.TxnID][]protocol.ID // whose checks are proposed, and who waits for that
	since       map[partID]time.Duration      // when a part was seen first that has not ended
}

func (p *participant) reset() {
	*p = participant{flying: map[partID]*prepared{}, flyingLocks: locks{}, ending: map[store.TxnID][]protocol.ID{},
		checking: map[store.TxnID][]protocol.ID{}, since: map[partID]time.Duration{}}
}

// handlePrepare prepares a part, early: the client is still reading, or has just begun to commit.
// The leader decides whether the part conflicts with what is prepared, and has the group agree on
// that.
func (s *server) handlePrepare(env *protocol.Env[store.Message], from protocol.ID, m prepareRequest) {
	s.claims(env, m)
	if m.Values {
		s.sendValues(env, from, m)
	}
	if s.term == 0 {
		if s.fast {
			s.prepareFast(env, m)
		}
		if m.Leader {
			s.elsewhere(env, from, m.Part.ID)
		}
		return
	}
	if !s.waitsForOwn(env, from, m) {
		s.answerPrepare(env, from, m)
	}
}

// answerPrepare is handlePrepare as the leader, of what has nothing to wait for.
func (s *server) answerPrepare(env *protocol.Env[store.Message], from protocol.ID, m prepareRequest) {
	s.sayStale(env, from, m)
	s.prepare(env, m, s.refuses(env, m))
}

// sayStale tells an agent what the leader holds in place of what a transaction has read.
func (s *server) sayStale(env *protocol.Env[store.Message], from protocol.ID, m prepareRequest) {
	if len(m.Stood) == 0 {
		return
	}
	state := s.group.State(env)
	out := staleReply{ID: m.Part.ID, Shard: s.self}
	for i, k := range m.Reads {
		if v := s.state.values.Newest(state, k); v.Version != m.Stood[i] {
			out.Current = append(out.Current, store.Current{Key: k, Value: v})
		}
	}
	if out.Current = store.FitCurrent(out.Current, maxValuesBytes); len(out.Current) > 0 {
		env.Send(from, out)
	}
}

// valid reports whether a request makes sense.
func (s *server) valid(m prepareRequest) bool {
	for _, keys := range [][]store.Key{m.Reads, m.Writes} {
		for i, k := range keys {
			if i > 0 && k <= keys[i-1] || len(k) > store.MaxKeyBytes || uint32(s.cfg.Layout.ShardOf(k)) != s.self {
				return false
			}
		}
	}
	if len(m.Stood) > 0 && len(m.Stood) != len(m.Reads) || m.Arrives < 0 {
		return false
	}
	return !m.Part.ID.IsZero() && m.Part.Step >= 1 && m.Part.Step <= maxSteps && s.where.has(m.Coord) &&
		len(m.Reads)+len(m.Writes) > 0 && len(m.Reads) <= store.MaxAccesses && len(m.Writes) <= store.MaxAccesses
}

// maxValuesBytes bounds the values that are sent along with a prepare, and those of a message to a
// client, of all partitions together: gRPC takes 4 MiB, and there may be 2 MiB of keys.
const maxValuesBytes = 1 << 20

// sendValues answers the read that comes with a prepare.
func (s *server) sendValues(env *protocol.Env[store.Message], from protocol.ID, m prepareRequest) {
	state := s.group.State(env)
	out := valuesReply{Part: m.Part, Shard: s.self, Leader: s.term > 0}
	for _, k := range m.Reads {
		out.Values = append(out.Values, store.Held{Value: s.state.values.Newest(state, k), Site: uint32(s.place.Site)})
	}
	out.Values = store.FitValues(out.Values, maxValuesBytes)
	env.Send(from, out)
}

// footprint returns the keys of a request with the versions that they have.
func (s *server) footprint(env *protocol.Env[store.Message], m prepareRequest) (f footprint) {
	state := s.group.State(env)
	at := func(keys []store.Key) (out []store.Read) {
		for _, k := range keys {
			out = append(out, store.Read{Key: k, Version: s.state.values.Newest(state, k).Version})
		}
		return out
	}
	return footprint{at(m.Reads), at(m.Writes)}
}

// keys returns those that a request is about.
func (m prepareRequest) keys() (f footprint) {
	for _, k := range m.Reads {
		f.Reads = append(f.Reads, store.Read{Key: k})
	}
	for _, k := range m.Writes {
		f.Writes = append(f.Writes, store.Read{Key: k})
	}
	return f
}

// refuses returns why a leader does not prepare a part.
func (s *server) refuses(env *protocol.Env[store.Message], m prepareRequest) store.Reason {
	f := m.keys()
	switch {
	case m.Part.ID.Time > uint64(max(env.Now+s.cfg.MaxAhead, 0)) && !s.hasPart(m.Part.ID):
		return store.Ahead
	case s.state.locks.conflict(m.Part.ID, f) || s.flyingLocks.conflict(m.Part.ID, f):
		return store.Locked
	case s.isReserved(env, m) && !s.hasPart(m.Part.ID):
		return store.Reserved
	}
	return s.refusing(m.Part.ID)
}

// hasPart reports whether a transaction has a part already, or is about to. The next one is refused
// because of its keys only.
func (s *server) hasPart(id store.TxnID) bool {
	for step := uint32(1); step <= maxSteps; step++ {
		if p := s.flying[partID{id, step}]; p != nil && p.Ballot.Yes {
			return true
		}
	}
	return len(s.state.partsOf(id)) > 0
}

// refusing returns why the leader is about to refuse a part of a transaction; NoReason: it is not.
// That may end the transaction here, so a yes to another part could be none when it is agreed on,
// and must not be told.
func (s *server) refusing(id store.TxnID) store.Reason {
	for step := uint32(1); step <= maxSteps; step++ {
		if p := s.flying[partID{id, step}]; p != nil && !p.Ballot.Yes {
			return p.Ballot.Reason
		}
	}
	return store.NoReason
}

// prepare has the group agree on the leader's word on a part, unless that has been said.
func (s *server) prepare(env *protocol.Env[store.Message], m prepareRequest, why store.Reason) {
	if _, ending := s.ending[m.Part.ID]; ending || s.flying[m.Part] != nil {
		return
	}
	if s.state.knows(m.Part) {
		s.vote(env, m.Part, m.Coord, false)
		return
	}
	p := &prepared{Part: m.Part, Coord: m.Coord, Ballot: ballot{Reason: why}}
	if why == store.NoReason {
		f := s.footprint(env, m)
		p.Ballot = ballot{Yes: true, Stamp: s.stamp(env, f), footprint: f}
	} else if why == store.Locked || why == store.Reserved {
		s.reserve(env, m)
	}
	s.fly(env, p)
}

// fly proposes a part. On the fast path the leader says at once what it has prepared, as followers
// do.
func (s *server) fly(env *protocol.Env[store.Message], p *prepared) (ok bool) {
	s.flying[p.Part] = p
	s.flyingLocks.add(p.Part.ID, p.Ballot.footprint)
	if _, ok := s.propose(env, *p); !ok {
		s.land(p.Part)
		return false
	}
	// What is behind a change of the members in the log may be recovered by others.
	_, settled := s.group.Members()
	if s.fast && settled && s.term > 0 && p.Ballot.Yes && s.flying[p.Part] == p {
		s.sayFast(env, pending{p.Part, s.term, p.Coord, p.Ballot.footprint}, p.Ballot.Stamp)
	}
	return true
}

// land takes a part that flies for applied, or lost.
func (s *server) land(id partID) {
	if p := s.flying[id]; p != nil {
		s.flyingLocks.remove(id.ID, p.Ballot.footprint)
		delete(s.flying, id)
	}
}

// stamp returns the least timestamp that a transaction can have that is prepared now: above all
// versions of its keys, what was carried out here before, who has read what it writes, and what is
// closed. A leader that does not serve yet does not know who has read, but that it was not above
// the ceiling.
func (s *server) stamp(env *protocol.Env[store.Message], f footprint) uint64 {
	stamp := max(uint64(max(env.Now, 1)), s.state.latest+1)
	for _, r := range slices.Concat(f.Reads, f.Writes) {
		stamp = max(stamp, r.Version.Time+1)
	}
	for _, w := range f.Writes {
		stamp = max(stamp, uint64(s.reads.Above(w.Key))+1)
	}
	if s.term == 0 {
		stamp = max(stamp, uint64(s.state.values.Ceiling(s.group.State(env)))+1, uint64(s.closedAt(env))+1)
	}
	return max(stamp, uint64(s.asked)+1)
}

// word returns what the group has said on a part; ok is false if it has said nothing, or has
// committed the transaction: then its coordinator's group has that on record.
func (s *state) word(id partID) (b ballot, ok bool) {
	if p := s.parts[id]; p != nil {
		return p.ballot, true
	}
	if o, over := s.ends.get(id.ID); over {
		return ballot{Reason: o.reason}, !o.commit
	}
	return ballot{Reason: store.Old}, s.isOver(id.ID)
}

// vote tells a coordinator what the group has agreed on.
func (s *server) vote(env *protocol.Env[store.Message], id partID, coord uint32, doubt bool) {
	s.voteTo(env, s.where.leader(coord), id, doubt)
}

// voteTo tells a member of a coordinating group.
func (s *server) voteTo(env *protocol.Env[store.Message], to protocol.ID, id partID, doubt bool) {
	if b, ok := s.state.word(id); ok {
		env.Send(to, voteMsg{Ref: partRef{s.self, id.Step}, ID: id.ID, Ballot: b, Doubt: doubt})
	}
}

// stored tells the coordinator of a word on a part that this member has on disk now, as the leader
// and all others do. So it hears from a majority of them what the group has agreed on, before the
// leader does.
func (s *server) stored(env *protocol.Env[store.Message], at raft.Position, entry []byte) {
	m, _ := s.state.format.Decode(entry)
	members, settled := s.group.Members()
	if p, ok := m.(prepared); ok && settled {
		env.Send(s.where.leader(p.Coord), storedVote{Ref: partRef{s.self, p.Part.Step}, ID: p.Part.ID, At: at,
			Ballot: p.Ballot, Members: members})
	}
}

// wasPrepared votes: the group has agreed.
func (s *server) wasPrepared(env *protocol.Env[store.Message], m prepared) {
	s.land(m.Part)
	if s.term > 0 {
		s.vote(env, m.Part, m.Coord, false)
	} else {
		s.wasRecovered(env, m.Part)
	}
}

// onVoteWanted says again what was said on a part. What the group does not know yet it refuses: the
// coordinator has waited for long, and must not wait for ever.
func (s *server) onVoteWanted(env *protocol.Env[store.Message], from protocol.ID, m voteWanted) {
	if !s.where.isMember(m.Coord, from) || m.Part.Step < 1 || m.Part.Step > maxSteps || s.elsewhere(env, from, m.Part.ID) {
		return
	}
	s.where.set(m.Coord, from)
	s.prepare(env, prepareRequest{Part: m.Part, Coord: m.Coord}, store.Fenced)
}

// onFinish has the group carry out a transaction's end.
func (s *server) onFinish(env *protocol.Env[store.Message], from protocol.ID, m finish) {
	if !s.where.isMember(m.Coord, from) || s.elsewhere(env, from, m.ID) {
		return
	}
	waiting, flies := s.ending[m.ID]
	switch {
	case s.state.isOver(m.ID):
		env.Send(from, finished{m.ID, s.self})
	case flies:
		if !slices.Contains(waiting, from) {
			s.ending[m.ID] = append(waiting, from)
		}
	default:
		s.ending[m.ID] = []protocol.ID{from}
		if _, ok := s.propose(env, ended{m}); !ok {
			delete(s.ending, m.ID)
		}
	}
}

func (s *server) wasEnded(env *protocol.Env[store.Message], m ended) {
	for _, to := range s.ending[m.ID] {
		env.Send(to, finished{m.ID, s.self})
	}
	delete(s.ending, m.ID)
	s.settled(env, m.ID, m.Commit)
}

// onCheck validates what a transaction has read that writes nothing, at a place in the group's log:
// no lock is needed, as all its reads came before all its checks. A no needs no log.
func (s *server) onCheck(env *protocol.Env[store.Message], from protocol.ID, m checkRequest) {
	if m.At > maxStamp || s.elsewhere(env, from, m.ID) {
		return
	}
	s.checkAt(env, waiting{from, m, env.Now})
}

// checkAt is onCheck, also of what has waited for a ceiling: the transaction is in the order of
// timestamps, too, where it has seen the latest that it has read.
func (s *server) checkAt(env *protocol.Env[store.Message], w waiting) {
	m, from := w.ask.(checkRequest), w.from
	if why := s.state.check(s.group.State(env), m.Reads); why != store.NoReason {
		env.Send(from, checkReply{m.ID, s.self, why})
		return
	}
	if m.At > s.reads.Ceiling() {
		s.wait(env, w, store.TxnID{}) // else it is asked again
		return
	}
	s.note(m.Reads, m.At)
	waiting, flies := s.checking[m.ID]
	if !slices.Contains(waiting, from) {
		s.checking[m.ID] = append(waiting, from)
	}
	if flies {
		return
	}
	if _, ok := s.propose(env, checked{m}); !ok {
		delete(s.checking, m.ID)
	}
}

func (s *server) wasChecked(env *protocol.Env[store.Message], at raft.Position, m checked) {
	for _, to := range s.checking[m.ID] {
		env.Send(to, checkReply{m.ID, s.self, s.state.checks[at.Index]})
	}
	delete(s.state.checks, at.Index)
	delete(s.checking, m.ID)
}

// voteAgain says all that the group has agreed on to another coordinator, or what is about one
// transaction.
func (s *server) voteAgain(env *protocol.Env[store.Message], coord uint32, of store.TxnID) {
	for _, id := range s.pendingParts() {
		if p := s.state.parts[id]; p.coord == coord && (of.IsZero() || id.ID == of) {
			s.vote(env, id, coord, false)
		}
	}
}

func (s *server) pendingParts() []partID {
	return slices.SortedFunc(maps.Keys(s.state.parts), comparePartIDs)
}

// A part waits so many round trips for its end before its partition asks for that.
const doubtAfter = 8

// askAll reports whether what waits for so long is asked of all members of a group: another one may
// lead it.
func (s *server) askAll(waits time.Duration) bool { return waits/s.cfg.RoundTrip%4 == 3 }

// sweepParts asks for the ends of what is prepared for long: its coordinator may never have heard
// of it.
func (s *server) sweepParts(env *protocol.Env[store.Message]) {
	seen := map[partID]time.Duration{}
	for _, id := range s.pendingParts() {
		at, ok := s.since[id]
		if !ok {
			at = env.Now
		}
		seen[id] = at
		if waits := env.Now - at; waits > s.trips(askAfter) {
			for _, to := range s.where.whom(s.state.parts[id].coord, s.askAll(waits)) {
				s.voteTo(env, to, id, waits > s.trips(doubtAfter))
			}
		}
	}
	s.since = seen
}

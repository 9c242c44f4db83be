package carousel

import (
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// Reservations by age: see DESIGN.md. A transaction that is tried again reserves what it needs when
// it is refused once more, so that younger ones leave it alone.

// reserving is what a server keeps for older transactions.
type reserving struct {
	kit.Reservations
	// asked are transactions that were tried again, and have asked to be prepared here.
	asked map[store.TxnID]*claim
	// turns are reads of such transactions that wait until the key is theirs to read.
	turns map[store.Key][]turn
	waits int // Invariant: the sum over turns, at most MaxWaiting
	// behind are prepares that earlier attempts of the same transactions are in the way of.
	behind []follower // Invariant: at most MaxWaiting
}

// A follower is a prepare that waits for the end of earlier attempts.
type follower struct {
	from  protocol.ID
	ask   prepareRequest
	since time.Duration
}

// A turn is a read that waits.
type turn struct {
	from  protocol.ID
	ask   store.ReadRequest
	since time.Duration
}

// A claim is what a transaction wants that is tried again.
type claim struct {
	age    store.Priority
	reads  []store.Key
	writes []store.Key
	since  time.Duration
}

// turnFor is how many round trips a read waits until its client is told to ask again: fewer than
// its reservation lasts, and than its client waits for an answer.
const turnFor = 1

// ownFor is how many round trips a prepare waits for the end of its transaction's earlier attempts:
// the coordinator's group records that, and then the partition's, and the client hears of it before
// either.
const ownFor = 3

// claimFor is how many round trips an end is waited for that says what becomes of a claim.
const claimFor = 8

func newReserving(cfg store.Config) reserving {
	return reserving{kit.NewReservations(cfg, nil), map[store.TxnID]*claim{}, map[store.Key][]turn{}, 0, nil}
}

// age returns that of the transaction's first attempt.
func (m prepareRequest) age() store.Priority {
	if m.Priority.IsZero() {
		return ageOf(m.Part.ID)
	}
	return m.Priority
}

// ageOf returns the age of a transaction that is tried for the first time.
func ageOf(id store.TxnID) store.Priority { return store.Priority{Began: id.Time, Client: id.Client} }

// claims notes what a transaction wants that is tried again.
func (s *server) claims(env *protocol.Env[store.Message], m prepareRequest) {
	if m.Priority.IsZero() {
		return
	}
	c := s.reserving.asked[m.Part.ID]
	if c == nil {
		if len(s.reserving.asked) >= s.cfg.MaxWaiting {
			return
		}
		c = &claim{age: m.Priority, since: env.Now}
		s.reserving.asked[m.Part.ID] = c
	}
	c.reads, c.writes = union(c.reads, m.Reads), union(c.writes, m.Writes)
}

// isReserved reports whether older transactions want what one needs.
func (s *server) isReserved(env *protocol.Env[store.Message], m prepareRequest) bool {
	age := m.age()
	return slices.ContainsFunc(m.Reads, func(k store.Key) bool { return s.reserving.Before(env.Now, k, false, age) }) ||
		slices.ContainsFunc(m.Writes, func(k store.Key) bool { return s.reserving.Before(env.Now, k, true, age) })
}

// reserve keeps what a transaction needs that is refused, if it has been tried again: who is
// refused for the first time may not come back. It does not if whoever is in the way has been there
// for long: others that need the rest of what it needs would wait with it, and others for these.
func (s *server) reserve(env *protocol.Env[store.Message], m prepareRequest) {
	if c := s.reserving.asked[m.Part.ID]; c != nil && !s.behindOld(env, m) {
		s.reserveAll(env, c)
	}
}

func (s *server) reserveAll(env *protocol.Env[store.Message], c *claim) {
	for _, k := range c.writes {
		s.reserving.Reserve(env, k, true, c.age)
	}
	for _, k := range c.reads {
		s.reserving.Reserve(env, k, false, c.age)
	}
}

// behindOld reports whether a transaction meets the lock of one whose end has not come for long.
func (s *server) behindOld(env *protocol.Env[store.Message], m prepareRequest) bool {
	old := func(id store.TxnID) bool {
		for _, p := range s.state.partsOf(id) {
			if at, ok := s.since[p.id]; ok && env.Now-at > s.trips(doubtAfter) {
				return true
			}
		}
		return false
	}
	for _, k := range m.Reads {
		if l := s.state.locks[k]; l != nil && old(l.writer) {
			return true
		}
	}
	for _, k := range m.Writes {
		if l := s.state.locks[k]; l != nil && (old(l.writer) || slices.ContainsFunc(l.readers, old)) {
			return true
		}
	}
	return false
}

// settled carries out what an end means for a transaction's reservations: one that is committed
// needs them no more, and one that is aborted is going to be tried again.
func (s *server) settled(env *protocol.Env[store.Message], id store.TxnID, commit bool) {
	if c := s.reserving.asked[id]; c != nil {
		delete(s.reserving.asked, id)
		if commit {
			for _, k := range slices.Concat(c.reads, c.writes) {
				s.reserving.Release(env, k, c.age)
			}
		} else {
			s.reserveAll(env, c)
		}
	}
	s.wakeTurns(env)
	s.wakeBehind(env)
}

// onRead answers what the replica holds, which may be old: the commit says so. The read of a
// transaction that is tried again keeps its place in the key's queue, if it has one. The leader has
// it wait while somebody is about to write the key, or older ones are that were refused, too: it
// would be refused again.
func (s *server) onRead(env *protocol.Env[store.Message], from protocol.ID, m store.ReadRequest) {
	if m.Priority.IsZero() || len(m.Key) > store.MaxKeyBytes || uint32(s.cfg.Layout.ShardOf(m.Key)) != s.self {
		s.answer(env, from, m, false)
		return
	}
	r := &s.reserving
	if slices.ContainsFunc(r.Queue(m.Key), func(q kit.Reservation) bool { return q.Priority == m.Priority }) {
		r.Reserve(env, m.Key, false, m.Priority)
	}
	if s.term == 0 || !s.mustWait(env, m) || r.waits >= s.cfg.MaxWaiting {
		s.answer(env, from, m, false)
		return
	}
	if !slices.ContainsFunc(r.turns[m.Key], func(t turn) bool { return t.from == from && t.ask == m }) {
		r.turns[m.Key] = append(r.turns[m.Key], turn{from, m, env.Now})
		r.waits++
	}
}

func (s *server) answer(env *protocol.Env[store.Message], to protocol.ID, m store.ReadRequest, queued bool) {
	v := s.state.values.Newest(s.group.State(env), m.Key)
	env.Send(to, store.ReadReply{Ref: m.Ref, Value: v, Pending: s.state.locks.writes(m.Key), Hint: v.Version.Time,
		Queued: queued})
}

// mustWait reports whether a read has to wait.
func (s *server) mustWait(env *protocol.Env[store.Message], m store.ReadRequest) bool {
	return s.state.locks.writes(m.Key) || s.flyingLocks.writes(m.Key) ||
		s.reserving.Behind(env.Now, m.Key, m.Priority)
}

// wakeTurns answers reads that need wait no longer, or have waited for long.
func (s *server) wakeTurns(env *protocol.Env[store.Message]) {
	r := &s.reserving
	for _, key := range slices.Sorted(maps.Keys(r.turns)) {
		left := slices.DeleteFunc(r.turns[key], func(t turn) bool {
			long := env.Now-t.since >= s.trips(turnFor) || env.Now < t.since
			if !long && s.term > 0 && s.mustWait(env, t.ask) {
				return false
			}
			s.answer(env, t.from, t.ask, s.term > 0 && s.reserving.Behind(env.Now, key, t.ask.Priority))
			r.waits--
			return true
		})
		if r.turns[key] = left; len(left) == 0 {
			delete(r.turns, key)
		}
	}
}

// sweepClaims forgets those of which no end has come.
func (s *server) sweepClaims(env *protocol.Env[store.Message]) {
	for id, c := range s.reserving.asked { //pure:ok each is looked at by itself
		if age := env.Now - c.since; age < 0 || age > s.trips(claimFor) {
			delete(s.reserving.asked, id)
		}
	}
	s.wakeTurns(env)
	s.wakeBehind(env)
}

// waitsForOwn has a prepare wait if nobody has its keys but earlier attempts of the same
// transaction. Those are aborted or given up, and their ends are on the way.
func (s *server) waitsForOwn(env *protocol.Env[store.Message], from protocol.ID, m prepareRequest) bool {
	r := &s.reserving
	if slices.ContainsFunc(r.behind, func(b follower) bool { return b.ask.Part == m.Part }) {
		return true
	}
	if !s.isBehindOwn(m) || len(r.behind) >= s.cfg.MaxWaiting {
		return false
	}
	r.behind = append(r.behind, follower{from, m, env.Now})
	return true
}

// isBehindOwn reports whether earlier attempts of the same transaction have keys of a prepare, and
// nobody else does.
func (s *server) isBehindOwn(m prepareRequest) bool {
	if m.Priority.IsZero() || s.state.knows(m.Part) {
		return false
	}
	f, meets := m.keys(), false
	foreign := func(id store.TxnID) bool {
		if id == m.Part.ID {
			return false
		}
		meets = true
		c := s.reserving.asked[id]
		return ageOf(id) != m.Priority && (c == nil || c.age != m.Priority)
	}
	return !s.state.locks.meets(f, foreign) && !s.flyingLocks.meets(f, foreign) && meets
}

// wakeBehind handles prepares that need wait no longer, or have waited for long.
func (s *server) wakeBehind(env *protocol.Env[store.Message]) {
	r := &s.reserving
	waits := func(b follower) bool {
		age := env.Now - b.since
		return age >= 0 && age < s.trips(ownFor) && s.isBehindOwn(b.ask)
	}
	var ready []follower
	r.behind = slices.DeleteFunc(r.behind, func(b follower) bool {
		if s.term > 0 && waits(b) {
			return false
		}
		ready = append(ready, b)
		return true
	})
	for _, b := range ready {
		switch {
		case s.term == 0:
			s.elsewhere(env, b.from, b.ask.Part.ID)
		case waits(b): // for one that has just been handled
			r.behind = append(r.behind, b)
		default:
			s.answerPrepare(env, b.from, b.ask)
		}
	}
}

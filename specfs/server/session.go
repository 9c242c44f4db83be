package server

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/specfs"
)

// A session is what the server knows of a client process.
type session struct {
	client protocol.ID
	who    Principal
	disk   sessionRecord
	// here says that the client has come since the server started.
	here bool
	era  specfs.Era
	next specfs.Number // the next epoch to be decided
	// held are the objects that the client may know something of.
	held map[specfs.ID]bool
	// changed are the parts of these that others have changed, of which the client was not told.
	// Without leases only. At most maxChanged of an object.
	changed []specfs.Part
	// news is what the client was told, as long as the message may have been lost.
	news []news
	told uint64 // the number of the last one
	// lapsed says that the lease is over: nobody has to wait for the client.
	lapsed bool
	lapses uint64 // how often it was
	// deaf says that the client has not heard a notice for so long that its lease does not go on.
	deaf bool
	// answers are those that the client may not have got, in the order of their epochs. Those of
	// epochs that changed something are on disk.
	answers []specfs.Answer
	waits   int // how many of its requests do
}

// news is what a client was told of changes in one message.
type news struct {
	number uint64
	parts  []specfs.Part
}

// sessionRecord is what is on disk of a session.
type sessionRecord struct {
	ID      specfs.SessionID
	Token   uint64
	Leases  bool
	Decided specfs.Number // the last epoch that changed something
}

var sessionLayout = wirefmt.NewLayout("specfs: session", func(c *wirefmt.Coder, m *sessionRecord) {
	wirefmt.Version(c, 1)
	wirefmt.Uint32(c, &m.ID)
	wirefmt.Uint(c, &m.Token)
	wirefmt.Bool(c, &m.Leases)
	wirefmt.Uint(c, &m.Decided)
})

var answerLayout = wirefmt.NewLayout("specfs: answer", func(c *wirefmt.Coder, m *specfs.Answer) {
	wirefmt.Version(c, 1)
	specfs.AnswerFields(c, m)
})

// maxChanged is how many changed parts the server remembers for a session; what is more becomes
// Everything of an object.
const maxChanged = 256

// session returns the session of a client, nil if it has none.
func (s *Server) session(client protocol.ID) *session {
	if i, ok := s.find(client); ok {
		return s.sessions[i]
	}
	return nil
}

func (s *Server) find(client protocol.ID) (int, bool) {
	return slices.BinarySearchFunc(s.sessions, client, func(x *session, c protocol.ID) int {
		return cmp.Compare(x.client, c)
	})
}

// loadSessions reads those that are on disk.
func (s *Server) loadSessions(env *Env) {
	for k, v := range env.Scan([]byte{keySession}, []byte{keySession + 1}) {
		x := &session{client: protocol.ID(binary.BigEndian.Uint32(k[1:])), disk: mustDecode(sessionLayout.Decode(v))}
		x.who, _ = s.config.Principal(x.client)
		x.held, x.next = map[specfs.ID]bool{}, x.disk.Decided+1
		for _, b := range env.Scan(answersKey(x.disk.ID), after(answersKey(x.disk.ID))) {
			x.answers = append(x.answers, mustDecode(answerLayout.Decode(b)))
		}
		s.sessions = append(s.sessions, x)
	}
}

func answersKey(id specfs.SessionID) []byte {
	return binary.BigEndian.AppendUint32([]byte{keyAnswer}, uint32(id))
}

func answerKey(id specfs.SessionID, n specfs.Number) []byte {
	return binary.BigEndian.AppendUint64(answersKey(id), uint64(n))
}

func (s *Server) putSession(env *Env, x *session) {
	env.Put(clientKey(x.client), sessionLayout.Encode(x.disk))
}

func (s *Server) onHello(env *Env, from protocol.ID, m specfs.Hello) {
	who, ok := s.config.Principal(from)
	if !ok { // it may have come in before a restart
		s.counts.Rejected++
		return
	}
	x := s.session(from)
	if x != nil && x.disk.Token != m.Token {
		s.end(env, x)
		x = nil
	}
	if x == nil {
		if len(s.sessions) >= s.config.MaxSessions || m.First == 0 {
			s.counts.Rejected++
			return
		}
		s.meta.Session++
		s.putMeta(env)
		x = &session{client: from, who: who, held: map[specfs.ID]bool{}}
		x.disk = sessionRecord{ID: s.meta.Session, Token: m.Token, Leases: m.Leases}
		i, _ := s.find(from)
		s.sessions = slices.Insert(s.sessions, i, x)
		s.putSession(env, x)
	}
	if !x.here {
		// It may not know of a refusal yet, if the server has not restarted.
		x.here, x.era = true, max(x.era, m.Era)
		for _, id := range m.Open {
			s.hold(x, id)
		}
		away := func(x *session) bool { return x.disk.Leases && !x.here }
		s.recovering = s.recovering && slices.ContainsFunc(s.sessions, away)
	}
	// Epochs below the first may be lost: they follow one that was refused.
	x.next = max(x.next, m.First)
	// What the client has no answer to it sends again, and what it was not told it is told again.
	s.forgetWaiting(x)
	x.got(m.News)
	for _, n := range x.news {
		x.note(n.parts)
	}
	x.news = nil
	if x.disk.Leases {
		if x.deaf {
			x.lapses++
			s.heardAll(env, x)
		}
		x.lapsed = false
		env.After(s.patience(), lapse{x.client})
	}
	env.Stop(gone{x.client})
	if !x.disk.Leases {
		env.After(s.config.Gone, gone{x.client})
	}
	env.Send(from, specfs.Welcome{
		Token: m.Token, At: m.At, Session: x.disk.ID, Lease: s.config.Lease, Now: now(env),
		Generation: s.generation(x), Cred: x.who.Cred, Trusted: x.who.Trusted, ReadOnly: x.who.ReadOnly,
	})
	for _, r := range s.waiting {
		if slices.Contains(r.told, x.client) {
			env.Send(from, specfs.Notice{Notice: r.notice, Parts: r.parts})
		}
	}
}

// generation counts how often the server has lost track of what a session holds.
func (s *Server) generation(x *session) uint64 { return s.meta.Starts<<32 + x.lapses }

// end ends a session.
func (s *Server) end(env *Env, x *session) {
	s.forgetWaiting(x)
	s.heardAll(env, x)
	for _, a := range x.answers {
		env.Delete(answerKey(x.disk.ID, a.Number))
	}
	env.Delete(clientKey(x.client))
	env.Stop(lapse{x.client})
	env.Stop(gone{x.client})
	i, _ := s.find(x.client)
	s.sessions = slices.Delete(s.sessions, i, i+1)
}

// answer returns what an epoch that is decided came to. If that is on record no more it was
// accepted: a client whose epoch is refused does not send others that are not, before it knows.
func (x *session) answer(n specfs.Number) specfs.Answer {
	for _, a := range x.answers {
		if a.Number == n {
			return a
		}
	}
	return specfs.Answer{Number: n}
}

// acked forgets answers that the client has got.
func (x *session) acked(env *Env, n specfs.Number) {
	for len(x.answers) > 0 && x.answers[0].Number <= n {
		env.Delete(answerKey(x.disk.ID, x.answers[0].Number))
		x.answers = x.answers[1:]
	}
}

// holds reports whether the client may know something of an object.
func (x *session) holds(id specfs.ID) bool { return x.held[id] }

// hold notes that the client may know something of an object, false if that is too much.
func (s *Server) hold(x *session, id specfs.ID) bool {
	if !x.held[id] && len(x.held) >= s.config.MaxHeld {
		return false
	}
	x.held[id] = true
	return true
}

// drop notes that the client knows nothing of some objects.
func (x *session) drop(ids []specfs.ID) {
	for _, id := range ids {
		delete(x.held, id)
	}
	x.changed = slices.DeleteFunc(x.changed, func(p specfs.Part) bool { return !x.held[p.ID] })
}

// note remembers what others have changed of what the client holds, for it to be told.
func (x *session) note(parts []specfs.Part) {
	for _, p := range parts {
		if !x.held[p.ID] || slices.Contains(x.changed, p) {
			continue
		}
		everything := specfs.Part{ID: p.ID}
		if slices.Contains(x.changed, everything) {
			continue
		}
		if len(x.changed) < maxChanged {
			x.changed = append(x.changed, p)
			continue
		}
		x.changed = slices.DeleteFunc(x.changed, func(q specfs.Part) bool { return q.ID == p.ID })
		x.changed = append(x.changed, everything)
	}
}

// tell returns what the client is to be told of some objects, or of all, with the number of the
// message, 0 if there is nothing.
func (x *session) tell(is func(specfs.ID) bool) (parts []specfs.Part, number uint64) {
	rest := x.changed[:0]
	for _, p := range x.changed {
		if is(p.ID) {
			parts = append(parts, p)
		} else {
			rest = append(rest, p)
		}
	}
	x.changed = rest
	if len(parts) == 0 {
		return nil, 0
	}
	x.told++
	x.news = append(x.news, news{x.told, parts})
	return parts, x.told
}

// got notes that the client has got the news up to a number.
func (x *session) got(number uint64) {
	for len(x.news) > 0 && x.news[0].number <= number {
		x.news = x.news[1:]
	}
}

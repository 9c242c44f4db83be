package layered

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// inquiries are what a leader answers when a majority has confirmed that it still leads.
type inquiries struct {
	of   map[uint64]inquiry
	last uint64
}

// inquiry is a check, or a ReadRequest of a transaction that is tried again.
type inquiry struct {
	from protocol.ID
	msg  store.Message
}

// onRead answers a read. What a follower has may be old, and so may what somebody has who takes
// itself for the leader: the commit says so. One that was refused for that is tried again, with a
// priority. Then the leader makes sure.
func (s *server) onRead(env *protocol.Env[store.Message], from protocol.ID, m store.ReadRequest) {
	switch {
	case !s.group.Current():
		s.answer(env, from, m, false)
	case m.Priority.IsZero():
		s.answer(env, from, m, true)
	case !s.inquire(env, inquiry{from, m}):
		s.answer(env, from, m, false)
	}
}

func (s *server) answer(env *protocol.Env[store.Message], from protocol.ID, m store.ReadRequest, leads bool) {
	v := values.At(s.group.State(env), m.Key)
	env.Send(from, store.ReadReply{Ref: m.Ref, Value: v, Pending: !s.shard.locks[m.Key].writer.IsZero(),
		Hint: v.Version.Time, Led: leads})
}

// onCheck has a majority confirm that the server leads before it answers: no lock and no version
// is missing then that there was when the check was sent.
func (s *server) onCheck(env *protocol.Env[store.Message], from protocol.ID, m check) {
	q := kit.Question{From: from, Ref: m.Ref}
	if int(m.Shard) != s.place.Index || s.leadsNot(env, q) {
		return
	}
	if !s.inquire(env, inquiry{from, m}) {
		q.Elsewhere(env, 0)
	}
}

// inquire reports whether an inquiry will be answered as long as the server leads.
func (s *server) inquire(env *protocol.Env[store.Message], q inquiry) bool {
	w := &s.waiting
	if len(w.of) >= s.cfg.MaxWaiting {
		return false
	}
	w.last++
	w.of[w.last] = q // the answer may be there before Confirm returns
	if s.group.Confirm(env, w.last) {
		return true
	}
	delete(w.of, w.last)
	return false
}

// confirmed answers an inquiry.
func (s *server) confirmed(env *protocol.Env[store.Message], question uint64) {
	q := s.waiting.of[question]
	delete(s.waiting.of, question)
	switch m := q.msg.(type) {
	case store.ReadRequest:
		s.answer(env, q.from, m, true)
	case check:
		env.Send(q.from, told{m.Ref, s.shard.check(s.group.State(env), m.Txn)})
	}
}

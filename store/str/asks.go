package str

import (
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// parked is a question for the group that came while nobody led it, as far as its server knew.
type parked struct {
	from  protocol.ID
	ask   kit.Ask
	since time.Duration
}

// parkTrips is for how many round trips a question waits for a leader. Then whoever has asked may
// find one elsewhere.
const parkTrips = 2

// onAsk has the group carry out a command.
func (s *server) onAsk(env *protocol.Env[store.Message], from protocol.ID, m kit.Ask) {
	q := kit.Question{From: from, Ref: m.Ref}
	if !s.group.Current() {
		if leader := s.leader(env); leader != 0 || len(s.parked) >= s.cfg.MaxWaiting {
			q.Elsewhere(env, leader)
			return
		}
		s.parked = slices.DeleteFunc(s.parked, func(p parked) bool { return p.from == from && p.ask.Ref == m.Ref })
		s.parked = append(s.parked, parked{from, m, env.Now})
		return
	}
	command, err := s.state.format.Decode(m.Command)
	if err != nil {
		return
	}
	if p, ok := command.(prepare); ok {
		s.tryPrepare(env, q, p.Part)
		return
	}
	s.askGroup(env, q, command)
}

// leader returns which other server leads, 0 if that is not known. Until followers elect another
// one they name one that is gone, so it has to have been heard lately.
func (s *server) leader(env *protocol.Env[store.Message]) protocol.ID {
	id := s.group.Leader().ID
	if was, at := s.group.LastLed(); id == s.cfg.ID || was == id && env.Now-at > s.cfg.RoundTrip {
		return 0
	}
	return id
}

// askAgain takes the questions that wait for a leader, once there is one. It comes after a call of
// the group's and not within it, so that each question finds what the one before has led to.
func (s *server) askAgain(env *protocol.Env[store.Message]) {
	if len(s.parked) == 0 {
		return
	}
	all, found := s.parked, s.group.Current() || s.leader(env) != 0
	s.parked = nil
	for _, p := range all {
		switch {
		case found:
			s.onAsk(env, p.from, p.ask)
		case env.Now-p.since > parkTrips*s.cfg.RoundTrip:
			kit.Question{From: p.from, Ref: p.ask.Ref}.Elsewhere(env, 0)
		default:
			s.parked = append(s.parked, p)
		}
	}
}

// askGroup proposes a command that somebody has asked for.
func (s *server) askGroup(env *protocol.Env[store.Message], q kit.Question, command store.Message) {
	at, ok := s.propose(env, command)
	if !ok {
		q.Elsewhere(env, 0)
		return
	}
	s.asked[at] = q
}

package transcript

import (
	"github.com/foresay/foresay/protocol"
)

// mail is a message that has come to a node.
type mail[M any] struct {
	from, to protocol.ID
	msg      M
}

// actor is a node whose mail goes through a script.
type actor[M any] struct {
	protocol.Node[M]
	id     protocol.ID
	script *Script[M]
}

// Wrap puts the script around a node: it is for deploy.Config.
func (s *Script[M]) Wrap(id protocol.ID, n protocol.Node[M]) protocol.Node[M] {
	return &actor[M]{n, id, s}
}

// Receive is part of protocol.Node.
func (a *actor[M]) Receive(env *protocol.Env[M], from protocol.ID, msg M) {
	s := a.script
	m := mail[M]{from, a.id, msg}
	switch from {
	case protocol.App:
		released, ok := s.hand[a.id]
		if !ok {
			break
		}
		delete(s.hand, a.id)
		s.say(released, "")
		m = released
	case a.id: // what it says to itself is no message
	default:
		if s.nodes == nil { // it begins
			break
		}
		r, ok := s.ruled(m)
		switch {
		case ok && r.lose:
			s.say(m, "lost")
			return
		case ok:
			s.say(m, "held")
			s.held = append(s.held, m)
			return
		}
		s.say(m, "")
	}
	a.Node.Receive(env, m.from, m.msg)
}

// ruled returns the last rule that a message falls under.
func (s *Script[M]) ruled(m mail[M]) (rule, bool) {
	for i := len(s.rules) - 1; i >= 0; i-- {
		if s.rules[i].fits(s.family.Name(m.from), s.family.Name(m.to), s.text(m.msg)) {
			return s.rules[i], true
		}
	}
	return rule{}, false
}

// Broken is part of protocol.Linked.
func (a *actor[M]) Broken(env *protocol.Env[M], from protocol.ID) {
	if l, ok := a.Node.(protocol.Linked[M]); ok {
		l.Broken(env, from)
	}
}

// Check is part of protocol.Checked.
func (a *actor[M]) Check() error {
	if c, ok := a.Node.(protocol.Checked); ok {
		return c.Check()
	}
	return nil
}

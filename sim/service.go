package sim

import (
	"time"

	"github.com/foresay/foresay/protocol"
)

// A Call is what a node is called with, for Config.Service.
type Call[M any] struct {
	Node  protocol.ID
	Kind  CallKind
	From  protocol.ID    // of CallReceive and CallBroken
	Msg   M              // of CallReceive
	Timer protocol.Timer // of CallExpire
}

// CallKind is which method of a node is called.
type CallKind uint8

// The methods of protocol.Node, and that of protocol.Linked.
const (
	CallStart CallKind = iota + 1
	CallReceive
	CallExpire
	CallBroken
)

// Busy returns for how long a node has been at work so far, in all its incarnations: see
// Config.Service.
func (s *Sim[M]) Busy(id protocol.ID) time.Duration {
	n := s.lookup(id)
	if n == nil {
		return 0
	}
	return n.busy - n.remains(s.now)
}

// Waiting returns how many calls wait for a node, the one that it is at among them.
func (s *Sim[M]) Waiting(id protocol.ID) int {
	if n := s.lookup(id); n != nil {
		return len(n.line)
	}
	return 0
}

// remains returns what is left of the call that the node is at.
func (n *node[M]) remains(now time.Duration) time.Duration {
	if !n.serving {
		return 0
	}
	return max(n.doneAt-now, 0)
}

// hand gives an event to its node, which may be nil, or has it wait in line if the node is at work.
func (s *Sim[M]) hand(n *node[M], i int32) {
	e := &s.queue.events[i]
	switch {
	case n == nil || s.config.Service == nil || !s.isCall(n, e) && e.kind != evServed:
		ev := *e
		s.queue.release(i)
		s.take(&ev)
	case e.kind == evServed:
		stale := e.incarnation != n.incarnation
		s.queue.release(i)
		if !stale {
			n.serving, n.begun = false, true
			s.takeNext(n)
			n.begun = false
			s.serve(n)
		}
	default:
		n.line = append(n.line, i)
		s.serve(n)
	}
}

// isCall reports whether an event is a call of its node, as far as can be told before it is the
// node's turn.
func (s *Sim[M]) isCall(n *node[M], e *event[M]) bool {
	switch e.kind {
	case evStart, evBroken:
		return e.incarnation == n.incarnation
	case evReceive:
		return n.node != nil && s.reaches(n, e)
	case evExpire:
		t, ok := n.timers[e.timer]
		return e.incarnation == n.incarnation && ok && t.serial == e.serial && t.set && t.due <= s.now
	}
	return false
}

// serve has a node begin with the call that is first in line, unless it is at work. The call is
// made when its time is over: what it reads and writes is then as if it had taken no time.
func (s *Sim[M]) serve(n *node[M]) {
	for !n.serving && len(n.line) > 0 && s.failure == nil {
		e := &s.queue.events[n.line[0]]
		var d time.Duration
		if s.isCall(n, e) {
			d = s.config.Service(callOf(n, e))
		}
		if d > 0 {
			n.serving, n.doneAt = true, s.in(d)
			n.busy += n.doneAt - s.now
			s.queue.add(n.doneAt, event[M]{kind: evServed, node: n.index, incarnation: n.incarnation})
			return
		}
		s.takeNext(n)
	}
}

// takeNext makes the call that is first in line.
func (s *Sim[M]) takeNext(n *node[M]) {
	i := n.line[0]
	n.line = n.line[1:]
	e := s.queue.events[i]
	s.queue.release(i)
	s.take(&e)
}

// dropLine forgets what waits for a node that crashes, and the rest of the call that it is at.
func (s *Sim[M]) dropLine(n *node[M]) {
	n.busy -= n.remains(s.now)
	n.serving = false
	for _, i := range n.line {
		s.queue.release(i)
	}
	n.line = nil
}

func callOf[M any](n *node[M], e *event[M]) Call[M] {
	c := Call[M]{Node: n.id, From: e.from, Msg: e.msg, Timer: e.timer}
	switch e.kind {
	case evStart:
		c.Kind = CallStart
	case evReceive:
		c.Kind = CallReceive
	case evExpire:
		c.Kind = CallExpire
	case evBroken:
		c.Kind = CallBroken
	}
	return c
}

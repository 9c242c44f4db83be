package sim

import (
	"slices"
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

// A processor makes the calls of one node, or of the nodes of one machine, one after the other.
type processor struct {
	line    []int32 // events that are calls, in their order: it is at the first one
	serving bool    // Invariant: there is one, and the event that it is over is to come
	at      int32   // while serving, the node whose call it is
	doneAt  time.Duration
}

// processorOf returns the processor of a node that is added.
func (s *Sim[M]) processorOf(id protocol.ID) *processor {
	if s.config.Machine == nil {
		return &processor{}
	}
	machine := s.config.Machine(id)
	if s.processors[machine] == nil {
		s.processors[machine] = &processor{}
	}
	return s.processors[machine]
}

// Busy returns for how long a node has been at work so far, in all its incarnations: see
// Config.Service.
func (s *Sim[M]) Busy(id protocol.ID) time.Duration {
	n := s.lookup(id)
	if n == nil {
		return 0
	}
	return n.busy - n.remains(s.now)
}

// Waiting returns how many calls wait for a node's processor, the one that it is at among them.
func (s *Sim[M]) Waiting(id protocol.ID) int {
	if n := s.lookup(id); n != nil {
		return len(n.processor.line)
	}
	return 0
}

// remains returns what is left of the call that the node is at.
func (n *node[M]) remains(now time.Duration) time.Duration {
	if p := n.processor; p.serving && p.at == n.index {
		return max(p.doneAt-now, 0)
	}
	return 0
}

// hand gives an event to its node, which may be nil, or has it wait in line if the node's processor
// is at work.
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
			n.processor.serving, n.begun = false, true
			s.takeNext(n.processor)
			n.begun = false
		}
		s.serve(n.processor)
	default:
		n.processor.line = append(n.processor.line, i)
		s.serve(n.processor)
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

// serve has a processor begin with the call that is first in line, unless it is at work. The call
// is made when its time is over: what it reads and writes is then as if it had taken no time.
func (s *Sim[M]) serve(p *processor) {
	for !p.serving && len(p.line) > 0 && s.failure == nil {
		e := &s.queue.events[p.line[0]]
		n := s.nodes[e.node]
		var d time.Duration
		if s.isCall(n, e) {
			d = s.config.Service(callOf(n, e))
		}
		if d > 0 {
			p.serving, p.at, p.doneAt = true, n.index, s.in(d)
			n.busy += p.doneAt - s.now
			s.queue.add(p.doneAt, event[M]{kind: evServed, node: n.index, incarnation: n.incarnation})
			return
		}
		s.takeNext(p)
	}
}

// takeNext makes the call that is first in line.
func (s *Sim[M]) takeNext(p *processor) {
	i := p.line[0]
	p.line = p.line[1:]
	e := s.queue.events[i]
	s.queue.release(i)
	s.take(&e)
}

// dropLine forgets what waits for a node that crashes, and the rest of the call that it is at. Its
// processor goes on with what waits for others.
func (s *Sim[M]) dropLine(n *node[M]) {
	p := n.processor
	n.busy -= n.remains(s.now)
	stops := p.serving && p.at == n.index
	p.serving = p.serving && !stops
	p.line = slices.DeleteFunc(p.line, func(i int32) bool {
		drop := s.queue.events[i].node == n.index
		if drop {
			s.queue.release(i)
		}
		return drop
	})
	if stops && len(p.line) > 0 { // not at once, as it may have crashed within a call
		s.add(0, event[M]{kind: evServed, node: n.index, incarnation: n.incarnation - 1})
	}
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

package sim

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/foresay/foresay/protocol"
)

// Step makes the next step, whenever it is due. It returns false if there is none, or the
// simulation has failed: see Err.
func (s *Sim[M]) Step() bool { return s.run(func() bool { return true }, -1) }

// Run lets time pass, a hundred years of it at most in all. It returns the simulation's failure, if
// it has one.
func (s *Sim[M]) Run(d time.Duration) error {
	until := s.in(d)
	s.run(nil, until)
	if s.failure == nil {
		s.now = until
	}
	return s.Err()
}

// RunUntil lets time pass until a condition holds after a step, for as long as limit at most. It
// returns the simulation's failure, or a *Failure of its own if the condition does not come to
// hold, which does not end the simulation.
func (s *Sim[M]) RunUntil(limit time.Duration, cond func() bool) error {
	if s.failure == nil && cond() {
		return nil
	}
	until := s.in(limit)
	if s.run(cond, until) {
		return s.Err()
	}
	if s.failure == nil {
		s.now = until
		f := s.newFailure(nil, "liveness", fmt.Errorf("what was waited for did not come about within %v", limit))
		return f
	}
	return s.Err()
}

// run makes steps until a condition holds, which it tells, or the next one is due after until (less
// than 0: never), or there is none, or the simulation has failed.
func (s *Sim[M]) run(cond func() bool, until time.Duration) (held bool) {
	if s.running {
		panic("sim: a step is asked for within a step")
	}
	s.running = true
	defer s.contain()
	for s.failure == nil && len(s.queue.heap) > 0 {
		if until >= 0 && s.queue.heap[0].at > until {
			return false
		}
		s.step()
		if cond != nil && s.failure == nil && cond() {
			return true
		}
	}
	return false
}

// contain makes a node's panic a failure. Panics of others pass.
func (s *Sim[M]) contain() {
	s.running = false
	n := s.calling
	if n == nil {
		return
	}
	r := recover()
	if r == nil {
		return // the goroutine ends: a test's FailNow
	}
	s.calling = nil
	s.fail(n, "panic", fmt.Errorf("%v\n%s", r, debug.Stack()))
}

// step takes the next event.
func (s *Sim[M]) step() {
	if n := s.queue.held + s.parcels; n > s.config.MaxEvents {
		s.fail(nil, "bound", fmt.Errorf("%d events and messages wait, more than MaxEvents", n))
		return
	}
	d := s.queue.pop()
	s.now = d.at
	var n *node[M]
	if e := &s.queue.events[d.event]; e.node >= 0 {
		if n = s.nodes[e.node]; n.paused && e.kind.waits() {
			n.backlog = append(n.backlog, d.event)
			return
		}
	}
	s.hand(n, d.event)
	s.chain = Chain{}
}

// take carries out an event.
func (s *Sim[M]) take(e *event[M]) {
	if s.chain = e.chain; e.kind == evCall {
		s.chain = Chain{}
	}
	var n *node[M]
	if e.node >= 0 {
		if n = s.nodes[e.node]; !s.concerns(n, e) {
			return
		}
	}
	s.steps++
	s.hash.add(uint64(s.now))
	s.hash.add(uint64(e.kind)<<56 ^ uint64(uint32(e.node))<<32 ^ uint64(e.from))
	if e.kind != evFault { // its consequences have lines of their own
		s.trace.event(s, n, e)
	}
	switch e.kind {
	case evStart:
		s.start(n)
	case evReceive:
		n.node.Receive(s.begin(n), e.from, e.msg)
		s.end(n)
	case evExpire:
		n.node.Expire(s.begin(n), e.timer)
		s.end(n)
	case evBroken:
		n.linked.Broken(s.begin(n), e.from)
		s.end(n)
	case evSync:
		s.synced(n, e.n)
	case evApp:
		if s.config.App != nil {
			s.config.App(n.id, e.msg)
		}
	case evResume:
		s.resume(n)
	case evCall:
		f := s.calls[e.n]
		s.calls[e.n] = nil
		s.freeCalls = append(s.freeCalls, e.n)
		f()
	case evFault:
		s.injectors[e.n].next()
	}
	if s.steps%uint64(s.config.CheckEvery) == 0 {
		s.check(n)
	}
}

// concerns reports whether an event still means something to its node.
func (s *Sim[M]) concerns(n *node[M], e *event[M]) bool {
	switch e.kind {
	case evReceive:
		switch {
		case n.node == nil:
		case !n.started: // a datagram may come at the moment at which it is restarted
		case s.reaches(n, e):
			return true
		}
		s.stats.Lost++
		s.trace.event(s, n, e)
		s.trace.note(s, n, "it was lost: the node is down, or the connection it came by is gone")
		return false
	case evExpire:
		return e.incarnation == n.incarnation && n.node != nil && s.expired(n, e)
	case evStart, evBroken, evSync:
		return e.incarnation == n.incarnation && n.node != nil
	case evResume:
		return n.paused && e.n == n.pauses
	}
	return true
}

// reaches reports whether a message has come by a connection, or to an incarnation, that is still
// there; or was, when the node began with it.
func (s *Sim[M]) reaches(n *node[M], e *event[M]) bool {
	if n.begun {
		return true
	}
	if e.from == protocol.App || e.from == n.id {
		return e.incarnation == n.incarnation
	}
	return e.serial == s.net.links[s.byID[e.from]][n.index].serial
}

func (s *Sim[M]) start(n *node[M]) {
	s.calling = n
	log, err := s.records(n)
	s.calling = nil
	if err != nil {
		s.fail(n, "codec", err)
		return
	}
	n.started = true
	n.node.Start(s.begin(n), log)
	s.end(n)
}

// check looks for broken invariants after a step of a node, which may be nil.
func (s *Sim[M]) check(n *node[M]) {
	if s.failure != nil {
		return
	}
	if n != nil && n.checked != nil && n.node != nil {
		s.calling = n
		err := n.checked.Check()
		s.calling = nil
		if err != nil {
			s.fail(n, "invariant", err)
			return
		}
	}
	if s.config.Check != nil {
		if err := s.config.Check(); err != nil {
			s.fail(nil, "invariant", err)
		}
	}
}

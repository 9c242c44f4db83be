package sim

import (
	"math/rand/v2"
	"time"

	"github.com/foresay/foresay/protocol"
)

// A node is a participant: its disk, its clock, and its present incarnation if it is up.
type node[M any] struct {
	id    protocol.ID
	index int32
	site  int
	make  func() protocol.Node[M]
	clock localClock
	// As the node was added.
	ownDisk  Disk
	ownClock Clock

	// Of the disk, which outlives a crash as far as it is durable.
	disk     Disk
	keys     store
	log      log[M]
	pending  []write // the calls that are not durable, in their order
	written  uint64  // calls that wrote, of this incarnation
	durable  uint64  // Invariant: durable <= written, and pending are those between
	syncing  bool
	syncs    uint64
	diskLost bool
	writes   uint64    // calls that wrote, of all incarnations
	crashing crashPlan // what is to happen in a write to come

	// Of the incarnation.
	incarnation uint32
	node        protocol.Node[M] // nil: down
	started     bool             // its Start was called
	env         *protocol.Env[M]
	checked     protocol.Checked
	linked      protocol.Linked[M]
	timers      map[protocol.Timer]timer
	timerSerial uint32
	waiting     []parcel[M] // sends that wait for the disk
	first       int         // of waiting, the first that has not left

	processor *processor
	begun     bool          // the call that is made was begun some time ago
	busy      time.Duration // of all incarnations, with the whole of the present call

	paused  bool
	pauses  uint64 // counts, so that the end of an old one does not end a new one
	until   time.Duration
	backlog []int32 // events that wait for the end of the pause
}

// A timer is when a timer of a node is to run out. Setting it to a later time leaves the event that
// it has where it is: that comes, finds that it is early, and goes back into the queue.
type timer struct {
	due, event time.Duration
	serial     uint32 // of the event that counts
	set        bool
	chain      Chain // by which it was set last
}

// A parcel is a message that leaves when a number of its sender's writes are durable.
type parcel[M any] struct {
	needs uint64
	to    protocol.ID
	msg   M
	chain Chain
}

// boot makes a new incarnation of a node that is down.
func (s *Sim[M]) boot(n *node[M]) {
	n.incarnation++
	n.node, n.started = n.make(), false
	n.checked, _ = n.node.(protocol.Checked)
	n.linked, _ = n.node.(protocol.Linked[M])
	seed := mix(s.config.Seed ^ mix(uint64(n.id)<<32|uint64(n.incarnation)))
	n.env = protocol.NewEnv[M](&n.keys, n.log.next, rand.New(rand.NewPCG(seed, mix(seed))))
	n.timers = map[protocol.Timer]timer{}
	for _, peer := range s.nodes {
		s.link(peer, n).renew(s.datagrams == nil) // what was sent while it was down does not reach it
	}
	s.add(0, event[M]{kind: evStart, node: n.index, incarnation: n.incarnation})
}

// begin prepares a call.
func (s *Sim[M]) begin(n *node[M]) *protocol.Env[M] {
	s.calling = n
	n.env.Begin(n.clock.at(s.now))
	return n.env
}

// end carries out what a call asked for.
func (s *Sim[M]) end(n *node[M]) {
	s.calling = nil
	out := n.env.Out
	wrote := s.write(n, out)
	if wrote && n.crashing.in == n.writes {
		s.crashWithin(n, out)
		return
	}
	for i := range out {
		e := &out[i]
		switch e.Kind {
		case protocol.KindSend:
			if n.durable == n.written {
				s.send(n, e.To, e.Msg)
			} else {
				n.waiting = append(n.waiting, parcel[M]{n.written, e.To, e.Msg, s.chain})
				s.parcels++
			}
		case protocol.KindSendAhead:
			s.send(n, e.To, e.Msg)
		case protocol.KindAfter:
			s.setTimer(n, e.Timer, e.Delay)
		case protocol.KindStop:
			s.stopTimer(n, e.Timer)
		}
	}
}

func (s *Sim[M]) setTimer(n *node[M], name protocol.Timer, d time.Duration) {
	s.hash.add(uint64(d)<<8 | uint64(protocol.KindAfter))
	due := s.in(n.clock.lasts(min(d, farOff)))
	s.calling = n // which panics if the timer is not comparable
	t, ok := n.timers[name]
	s.calling = nil
	t.due, t.set, t.chain = due, true, s.chain
	if !ok || t.event > due {
		n.timerSerial++
		t.event, t.serial = due, n.timerSerial
		s.queue.add(due, event[M]{kind: evExpire, node: n.index, incarnation: n.incarnation, serial: t.serial, timer: name})
	}
	n.timers[name] = t
}

func (s *Sim[M]) stopTimer(n *node[M], name protocol.Timer) {
	s.hash.add(uint64(protocol.KindStop))
	s.calling = n
	t, ok := n.timers[name]
	s.calling = nil
	if ok && t.set {
		t.set = false
		n.timers[name] = t
	}
}

// expired reports whether a timer has run out with this event.
func (s *Sim[M]) expired(n *node[M], e *event[M]) bool {
	t, ok := n.timers[e.timer]
	switch {
	case !ok || t.serial != e.serial:
		return false
	case !t.set:
		delete(n.timers, e.timer)
		return false
	case t.due > s.now:
		t.event = t.due
		n.timers[e.timer] = t
		s.queue.add(t.due, event[M]{kind: evExpire, node: n.index, incarnation: n.incarnation, serial: t.serial,
			timer: e.timer})
		return false
	}
	delete(n.timers, e.timer)
	s.chain = t.chain
	return true
}

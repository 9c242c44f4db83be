package sim

import (
	"time"

	"github.com/foresay/foresay/protocol"
)

type eventKind uint8

const (
	evStart   eventKind = iota + 1
	evReceive           // from, msg
	evExpire            // timer
	evBroken            // from
	evSync              // n: how many writes are durable
	evApp               // msg
	evResume
	evCall // n: the function
	evFault
	evServed // the call is over that the node is at
)

// waits reports whether events of the kind wait for the end of their node's pause.
func (k eventKind) waits() bool { return k < evResume && k != evApp || k == evServed }

// An event is something that happens at a time. Which fields count depends on its kind.
type event[M any] struct {
	kind        eventKind
	node        int32  // index in Sim.nodes, or -1
	incarnation uint32 // of the node, for what ends with a crash
	serial      uint32 // of the link, or of the timer
	from        protocol.ID
	n           uint64
	timer       protocol.Timer
	msg         M
	chain       Chain
	next        int32 // in the list of free events
}

// A queue holds the events to come. Those of one instant come in the order in which they were put
// in, unless it shuffles them; those of one instant and one node do then too.
//
// It is a heap of small keys over a slab of events, so that a sift moves 24 bytes and nothing is
// allocated once the slab is large enough.
type queue[M any] struct {
	heap   []due
	events []event[M]
	free   int32 // first of the list, or -1
	held   int   // events that are not free: in the heap, or waiting elsewhere for their node
	seq    uint64

	shuffle bool
	seed    uint64
}

type due struct {
	at    time.Duration
	seq   uint64 // the number of the event; above seqBits the rank of its node at this instant, if the queue shuffles
	event int32
}

// seqBits is enough for years of steps.
const seqBits = 48

func (d due) before(e due) bool { return d.at < e.at || d.at == e.at && d.seq < e.seq }

func newQueue[M any]() queue[M] { return queue[M]{free: -1} }

// alloc returns a place for an event, whose old content is to be overwritten.
func (q *queue[M]) alloc() int32 {
	q.held++
	if i := q.free; i >= 0 {
		q.free = q.events[i].next
		return i
	}
	q.events = append(q.events, event[M]{})
	return int32(len(q.events) - 1)
}

// release gives a place back.
func (q *queue[M]) release(i int32) {
	q.held--
	q.events[i] = event[M]{next: q.free} // what it held may be large
	q.free = i
}

func (q *queue[M]) add(at time.Duration, e event[M]) {
	i := q.alloc()
	q.events[i] = e
	q.push(at, i)
}

// push puts an event in.
func (q *queue[M]) push(at time.Duration, i int32) {
	d := due{at, q.seq, i}
	if q.shuffle {
		d.seq |= mix(q.seed^mix(uint64(at))+uint64(q.events[i].node)) << seqBits
	}
	q.seq++
	q.heap = append(q.heap, d)
	h, child := q.heap, len(q.heap)-1
	for child > 0 {
		parent := (child - 1) / 4
		if !d.before(h[parent]) {
			break
		}
		h[child] = h[parent]
		child = parent
	}
	h[child] = d
}

// pop takes the first event out. The queue must not be empty.
func (q *queue[M]) pop() due {
	h := q.heap
	first, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	q.heap = h
	if len(h) == 0 {
		return first
	}
	parent := 0
	for {
		child := parent*4 + 1
		if child >= len(h) {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, len(h)); c++ {
			if h[c].before(h[least]) {
				least = c
			}
		}
		if !h[least].before(last) {
			break
		}
		h[parent] = h[least]
		parent = least
	}
	h[parent] = last
	return first
}

// A Chain is the causal path that led to an event: the messages and timers of which each was sent,
// or set, in the course of the one before, from a message of an application on. What waits for
// several things goes on in the course of the last of them, so the chain that ends with an answer
// to a call is what that answer has waited for.
type Chain struct {
	// Call is with which call of Deliver it began, counted from 1; 0: with none, as with the start of
	// a node.
	Call uint64
	// Hops is how many of its messages went from one site to another.
	Hops int
}

// Chain returns that of the event that is carried out, for Config.App. Outside of events it is the
// zero one.
func (s *Sim[M]) Chain() Chain { return s.chain }

// Delivered returns how often Deliver was called.
func (s *Sim[M]) Delivered() uint64 { return s.delivered }

// sent returns the chain of a message that is sent to another site, or not.
func (c Chain) sent(elsewhere bool) Chain {
	if elsewhere {
		c.Hops++
	}
	return c
}

package sim

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/wan"
)

// A Sim is a simulation of nodes whose messages are of type M.
type Sim[M any] struct {
	config     Config[M]
	now        time.Duration
	steps      uint64
	queue      queue[M]
	calls      []func() // what evCall events call; those that were are nil
	freeCalls  []uint64
	nodes      []*node[M]
	processors map[protocol.ID]*processor // by machine, if there are machines
	byID       map[protocol.ID]int32
	net        network
	hash       hash
	trace      trace[M]
	stats      Stats
	failure    *Failure
	calling    *node[M] // whose method runs, or the codec for it
	running    bool
	parcels    int // messages that wait for disks
	injectors  []*injector[M]
	schedules  []*wan.Schedule
	datagrams  *Datagrams // nil: streams
	buf        []byte     // for encoding
	codecDraws uint64
	chain      Chain // of the event that is carried out
	delivered  uint64
}

// Stats counts what happened to messages and nodes.
type Stats struct {
	Sent, Lost, Duplicated uint64 // messages from node to node
	Crashes, Restarts      int
	LostWrites             int // by crashes, as they were not durable
}

// Node is what a node of a simulation is made from.
type Node[M any] struct {
	ID   protocol.ID
	Site wan.Site // of Config.WAN
	// New makes the node, and makes it anew for each restart: nothing but the disk may be common to
	// two of its results.
	New   func() protocol.Node[M]
	Disk  *Disk // nil: Config.Disk
	Clock Clock
}

// New returns a simulation without nodes at time 0.
func New[M any](c Config[M]) (*Sim[M], error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	c.setDefaults()
	s := &Sim[M]{config: c, queue: newQueue[M](), byID: map[protocol.ID]int32{}, hash: newHash(c.Seed),
		datagrams: c.Datagrams, processors: map[protocol.ID]*processor{}}
	s.queue.shuffle, s.queue.seed = c.Shuffle, mix(c.Seed^0x73687566)
	s.net = newNetwork(c.Seed, c.WAN)
	s.trace = newTrace[M](c.Trace, c.TraceKeep)
	return s, nil
}

// Add puts a node in, which starts at once, before time passes.
func (s *Sim[M]) Add(spec Node[M]) error {
	if _, ok := s.byID[spec.ID]; ok || spec.ID == protocol.App {
		return fmt.Errorf("sim: node %d: the ID is 0 or used already", spec.ID)
	}
	if spec.New == nil {
		return fmt.Errorf("sim: node %d: New is missing", spec.ID)
	}
	site, ok := s.net.site(spec.Site)
	if !ok {
		return fmt.Errorf("sim: node %d: unknown site %q (the sites are %q)", spec.ID, spec.Site, s.net.names)
	}
	if err := spec.Clock.validate(); err != nil {
		return fmt.Errorf("sim: node %d: %w", spec.ID, err)
	}
	if d := spec.Disk; d != nil && (d.Latency < 0 || d.Jitter < 0) {
		return fmt.Errorf("sim: node %d: Disk of %+v has a negative time", spec.ID, *d)
	}
	n := &node[M]{log: log[M]{next: 1}, id: spec.ID, index: int32(len(s.nodes)), site: site, make: spec.New,
		processor: s.processorOf(spec.ID),
		ownDisk:   s.config.Disk, ownClock: spec.Clock}
	if spec.Disk != nil {
		n.ownDisk = *spec.Disk
	}
	n.disk = n.ownDisk
	n.clock.set(s.now, s.config.ClockStart+s.now+spec.Clock.Offset, spec.Clock.DriftPPM)
	s.byID[n.id] = n.index
	s.nodes = append(s.nodes, n)
	s.net.grow(len(s.nodes))
	s.boot(n)
	return nil
}

// Now returns the simulation's time, which is what a right clock shows less Config.ClockStart.
func (s *Sim[M]) Now() time.Duration { return s.now }

// Steps returns how many steps were made.
func (s *Sim[M]) Steps() uint64 { return s.steps }

// Hash returns a hash over all steps so far and their effects. Runs of the same program with the
// same seed have the same; those that differ in what is sent, written or called when do not, but by
// a rare chance. What is in messages counts only as far as they went through the codec.
func (s *Sim[M]) Hash() uint64 { return s.hash.sum() }

// Err returns the failure that ended the simulation, a *Failure, or nil.
func (s *Sim[M]) Err() error {
	if s.failure == nil {
		return nil
	}
	return s.failure
}

// Stats returns what was counted so far.
func (s *Sim[M]) Stats() Stats { return s.stats }

// Get returns the present incarnation of a node, or nil if it is down or there is none of the ID.
// It is there to be looked at: calls of its methods belong to the Sim.
func (s *Sim[M]) Get(id protocol.ID) protocol.Node[M] {
	if n := s.lookup(id); n != nil {
		return n.node
	}
	return nil
}

// IDs returns the nodes in the order in which they were added.
func (s *Sim[M]) IDs() []protocol.ID {
	ids := make([]protocol.ID, len(s.nodes))
	for i, n := range s.nodes {
		ids[i] = n.id
	}
	return ids
}

// Clock returns what a node's clock shows, 0 if there is none of the ID.
func (s *Sim[M]) Clock(id protocol.ID) time.Duration {
	if n := s.lookup(id); n != nil {
		return n.clock.at(s.now)
	}
	return 0
}

// Deliver hands a message to a node from its application, as its next input. It is lost if the node
// is down by then.
func (s *Sim[M]) Deliver(id protocol.ID, msg M) {
	n := s.lookup(id)
	if n == nil {
		s.stats.Lost++
		return
	}
	s.delivered++
	s.queue.add(s.now, event[M]{kind: evReceive, node: n.index, from: protocol.App, incarnation: n.incarnation, msg: msg,
		chain: Chain{Call: s.delivered}})
}

// At calls f at a time, or next if that has passed. It is how tests do something in the middle of a
// run.
func (s *Sim[M]) At(t time.Duration, f func()) { s.After(t-s.now, f) }

// After calls f in d.
func (s *Sim[M]) After(d time.Duration, f func()) {
	i := uint64(len(s.calls))
	if free := len(s.freeCalls); free > 0 {
		i, s.freeCalls = s.freeCalls[free-1], s.freeCalls[:free-1]
		s.calls[i] = f
	} else {
		s.calls = append(s.calls, f)
	}
	s.add(d, event[M]{kind: evCall, node: -1, n: i})
}

func (s *Sim[M]) lookup(id protocol.ID) *node[M] {
	i, ok := s.byID[id]
	if !ok {
		return nil
	}
	return s.nodes[i]
}

// farOff bounds how far ahead events can be, so that sums of times do not overflow: about a hundred
// years.
const farOff = 1 << 61

// add puts an event in that is due in d.
func (s *Sim[M]) add(d time.Duration, e event[M]) {
	e.chain = s.chain
	s.queue.add(s.in(d), e)
}

// in returns the time in d: not before now, and not so late that times overflow.
func (s *Sim[M]) in(d time.Duration) time.Duration { return s.now + min(max(d, 0), farOff-s.now) }

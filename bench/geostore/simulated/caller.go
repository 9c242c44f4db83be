package simulated

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/foresay/foresay/internal/storesim"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// A population is a store's nodes and the applications of its clients.
type population struct {
	*storesim.Nodes
	clients []*caller                 // those of one client's after the other's
	byID    map[protocol.ID][]*caller // the same by their clients
	// value is what transactions of a workload write: see workload.Txn.Run.
	value func(was []byte) []byte
	// ended is told of each transaction.
	ended func(*caller, result)
	// states are what coordinators say that were asked.
	states map[protocol.ID]store.SpeculationStatus
}

// A result is what became of a transaction.
type result struct {
	id       store.TxnID // of one that was submitted
	ops      []workload.Op
	began    time.Duration
	took     time.Duration
	verdict  store.Verdict
	reason   store.Reason   // of an aborted one
	fast     bool           // it was committed by the protocol's fast path
	priority store.Priority // of an aborted one: for the next attempt
	read     map[store.Key]store.Value
	// err is what the program ended with. It has written nothing then, in place of writes.
	err    error
	writes []store.Write
}

// wrote reports whether the transaction is one of a workload that writes.
func (r result) wrote() bool { return !workload.Txn{Ops: r.ops}.ReadOnly() }

// A setting says which store there is, and who uses it.
type setting struct {
	system    plan.System
	protocol  store.Protocol // if it has a name, in place of the system's
	wan       wan.Matrix
	placement [][]wan.Site
	agents    int        // at each site
	machines  bool       // see storesim.NodesConfig
	clients   []wan.Site // where they are
	callers   int        // of each client; 0 is 1
	roundTrip time.Duration
	maxOffset time.Duration
	readers   int // of each partition; 0: all its copies
	seed      uint64
	disk      sim.Disk
	service   func(sim.Call[store.Message]) time.Duration
}

// placementOf has a partition led at each site, with copies at the two that follow.
func placementOf(m wan.Matrix) ([][]wan.Site, error) {
	return ringOf(m.Sites(), len(m.Sites()), replicas)
}

// ringOf deals partitions to sites in turn, with copies at those that follow.
func ringOf(sites []wan.Site, partitions, copies int) ([][]wan.Site, error) {
	names := make([]string, len(sites))
	for i, s := range sites {
		names[i] = string(s)
	}
	ring, err := store.Ring(names, partitions, copies, nil)
	placement := make([][]wan.Site, len(ring))
	for i, at := range ring {
		for _, s := range at {
			placement[i] = append(placement[i], wan.Site(s))
		}
	}
	return placement, err
}

// replicas is how many sites have a copy of a partition [Carousel §3.4.1].
const replicas = 3

// populate returns the nodes when they have settled.
func populate(s setting) (*population, error) {
	p := &population{byID: map[protocol.ID][]*caller{}, ended: func(*caller, result) {},
		states: map[protocol.ID]store.SpeculationStatus{}}
	c := storesim.NodesConfig{System: s.system, Protocol: s.protocol, Placement: s.placement, Agents: s.agents,
		Machines: s.machines,
		Clients:  s.clients, RoundTrip: s.roundTrip, MaxOffset: s.maxOffset, Readers: s.readers, Hear: p.receive,
		Sim: sim.Config[store.Message]{Seed: s.seed, WAN: s.wan, Disk: s.disk, Service: s.service, CheckEvery: 1 << 20,
			TraceKeep: -1, CodecChance: codecChance}}
	var err error
	if p.Nodes, err = storesim.NewNodes(c); err != nil {
		return nil, err
	}
	for i, id := range p.Clients {
		for n := range max(s.callers, 1) {
			cl := &caller{all: p, id: id, site: c.Clients[i],
				random: rand.New(rand.NewPCG(s.seed, uint64(len(p.clients)))),
				ref:    uint64(n) * callerRefs}
			p.clients, p.byID[id] = append(p.clients, cl), append(p.byID[id], cl)
		}
	}
	return p, p.Settle()
}

// atEach returns the sites of clients, so many at each site.
func atEach(m wan.Matrix, n int) []wan.Site { return slices.Repeat(m.Sites(), n) }

// close ends the programs of transactions that are under way.
func (p *population) close() {
	for _, c := range p.clients {
		if c.running != nil {
			c.running.stop()
		}
	}
}

// codecChance is how many messages travel as bytes: it costs more time than all else.
const codecChance = 1e-3

func (p *population) receive(from protocol.ID, msg store.Message) {
	if m, refused := msg.(store.Refused); refused {
		p.Fail("a server is refused: %s", m.Reason)
		return
	}
	if m, is := msg.(store.SpeculationStatus); is {
		p.states[from] = m
		return
	}
	if n := refOf(msg) / callerRefs; n < uint64(len(p.byID[from])) {
		p.byID[from][n].receive(msg)
	}
}

// callerRefs is how many calls a caller can number: those of one client are told apart by that.
const callerRefs = 1 << 32

// refOf returns which call a message answers.
func refOf(msg store.Message) uint64 {
	switch m := msg.(type) {
	case store.Declared:
		return m.Ref
	case store.Got:
		return m.Ref
	case store.Done:
		return m.Ref
	case store.Speculates:
		return m.Ref
	}
	return math.MaxUint64
}

// A caller is an application of a client's, which makes one transaction at a time.
type caller struct {
	all    *population
	id     protocol.ID
	site   wan.Site
	random *rand.Rand
	then   func(result) // of the transaction that is under way; nil: there is none

	program program
	began   time.Duration
	keys    []store.Key // that it has declared to read, in ascending order
	read    map[store.Key]store.Value
	viewing bool                 // what was declared is of one time
	sure    map[store.Key]bool   // of that time, or without it: what the key holds is settled
	asked   map[uint64]store.Key // reads without an answer yet
	ref     uint64
	begun   uint64     // the Ref of the Declare that has begun what is prepared; 0: nothing is
	running *coroutine // nil: what was declared is not there yet
}

// makes makes a transaction of a workload, which declares all its keys.
func (c *caller) makes(t workload.Txn, then func(result)) {
	reads, writes := t.Keys()
	c.runs(program{ops: t.Ops, reads: reads, writes: writes, code: func(ctx context.Context, tx workload.Tx) error {
		return t.Run(ctx, tx, c.all.value)
	}}, then)
}

// runs makes a transaction by its program, as clients in mode grpc of package store/client do: what
// is declared is asked for at once, and other keys when the program comes to them. Who tries again
// declares nothing.
func (c *caller) runs(p program, then func(result)) {
	c.program, c.then, c.began = p, then, c.all.Now()
	c.keys, c.begun, c.viewing, c.running = nil, 0, false, nil
	c.read, c.sure, c.asked = map[store.Key]store.Value{}, map[store.Key]bool{}, map[uint64]store.Key{}
	if !p.priority.IsZero() {
		c.resume()
		return
	}
	c.keys = sorted(p.reads)
	writes, can := sorted(p.writes), c.all.Protocol
	if can.Declares && (len(writes) > 0 || can.Clocked && len(c.keys) > 0) {
		c.ref++
		c.all.Deliver(c.id, store.Declare{Ref: c.ref, Reads: c.keys, Writes: writes})
		return
	}
	if c.ask(c.keys...); len(c.keys) == 0 {
		c.resume()
	}
}

// sorted returns keys in ascending order.
func sorted(names []string) (keys []store.Key) {
	for _, n := range names {
		keys = append(keys, store.Key(n))
	}
	slices.Sort(keys)
	return keys
}

// ask reads keys.
func (c *caller) ask(keys ...store.Key) {
	if c.all.Protocol.Steps {
		c.step(keys)
		return
	}
	for _, k := range keys {
		c.ref++
		c.asked[c.ref] = k
	}
	first := c.ref - uint64(len(keys)) + 1
	for i, k := range keys {
		c.all.Deliver(c.id, store.Get{Ref: first + uint64(i), Key: k, Priority: c.program.priority})
	}
}

// step reads keys as of the transaction's snapshot, of a protocol whose transactions have one.
func (c *caller) step(keys []store.Key) {
	if len(keys) == 0 {
		return
	}
	c.keys = keys
	c.ref++
	m := store.Declare{Ref: c.ref, Reads: keys, Begun: c.begun, General: c.begun == 0}
	if m.General {
		c.begun = c.ref
	}
	c.all.Deliver(c.id, m)
}

// stepped takes what the snapshot has.
func (c *caller) stepped(m store.Declared) {
	if !m.OK {
		c.end(result{verdict: store.Aborted, priority: c.program.priority})
		return
	}
	for i, k := range c.keys {
		c.read[k] = m.Values[i].Value
	}
	c.resume()
}

func (c *caller) receive(msg store.Message) {
	if c.then == nil {
		return
	}
	switch m := msg.(type) {
	case store.Declared:
		switch {
		case m.Ref != c.ref:
		case c.all.Protocol.Steps:
			c.stepped(m)
		default:
			c.declared(m)
		}
	case store.Got:
		c.got(m)
	case store.Speculates:
		if m.Ref == c.ref && c.program.local != nil {
			c.program.local(m.ID)
		}
	case store.Done:
		if m.Ref == c.ref {
			c.end(result{id: m.Txn.ID, verdict: m.Outcome.Verdict, reason: m.Outcome.Reason, fast: m.Outcome.Fast,
				priority: m.Txn.Priority})
		}
	}
}

// declared takes what the declared keys hold, but for values that are too large to come with it.
func (c *caller) declared(m store.Declared) {
	if !m.OK {
		c.end(result{verdict: store.Unknown})
		return
	}
	if c.viewing = len(c.program.writes) == 0; !c.viewing {
		c.begun = m.Ref
	}
	for i, k := range c.keys {
		if !m.Values[i].Large {
			c.read[k], c.sure[k] = m.Values[i].Value, c.viewing
		}
	}
	c.resume()
}

func (c *caller) got(m store.Got) {
	key, waits := c.asked[m.Ref]
	if !waits {
		return
	}
	delete(c.asked, m.Ref)
	if !m.OK {
		c.end(result{verdict: store.Unknown})
		return
	}
	c.read[key], c.sure[key] = m.Value, m.Settled && !c.viewing
	if len(c.asked) == 0 {
		c.resume()
	}
}

// resume has the program go on until it comes to a key that is not known, or to its end.
func (c *caller) resume() {
	if c.running == nil {
		c.running = start(c.program.code, c.read)
	}
	if key, more := c.running.next(); more {
		c.ask(key)
		return
	}
	c.commit()
}

// busy reports whether a transaction is under way.
func (c *caller) busy() bool { return c.then != nil }

// commit commits what the program has read and writes, unless there is nothing to say about it. Who
// has failed writes nothing; that it failed has to stand on what it read.
func (c *caller) commit() {
	reads, writes := c.running.buffer.Accesses()
	if c.running.err != nil {
		writes = nil
	}
	if len(writes) == 0 && c.known(reads) {
		c.end(result{verdict: store.Committed})
		return
	}
	begun := c.begun
	c.begun = 0
	c.ref++
	c.all.Deliver(c.id, store.Submit{Ref: c.ref, Priority: c.program.priority, Reads: reads, Writes: writes, Begun: begun,
		Speculate: c.program.local != nil, After: c.program.after})
}

// known reports whether reads need no validation: they are of one time, or there is one at most.
func (c *caller) known(reads []store.Read) bool {
	return (c.viewing || len(reads) <= 1) &&
		!slices.ContainsFunc(reads, func(r store.Read) bool { return !c.sure[r.Key] })
}

// end ends the transaction, and tells what became of it.
func (c *caller) end(r result) {
	r.ops, r.began, r.took, r.read = c.program.ops, c.began, c.all.Now()-c.began, c.read
	if c.running != nil {
		r.err = c.running.err
		_, r.writes = c.running.buffer.Accesses()
		c.running.stop()
	}
	if c.begun != 0 {
		c.all.Deliver(c.id, store.Abandon{Ref: c.begun})
	}
	then := c.then
	c.then, c.asked, c.running = nil, nil, nil
	c.all.ended(c, r)
	then(r)
}

// paced has the client make a workload's transactions, each so long after the one before began, or
// later, when that has ended: it is never in a hurry to catch up. With 0 it makes one after the
// other. It goes on until more says no.
func (c *caller) paced(w workload.Workload, every time.Duration, more func() bool) {
	if !more() {
		return
	}
	began := c.all.Now()
	c.makes(w.Next(c.random), func(result) {
		c.all.At(max(began+every, c.all.Now()), func() { c.paced(w, every, more) })
	})
}

// begin has all clients begin at times of chance, within the time between two transactions.
func (p *population) begin(w workload.Workload, every time.Duration, more func() bool) {
	for _, c := range p.clients {
		p.After(time.Duration(c.random.Int64N(int64(max(every, startSpread)))), func() { c.paced(w, every, more) })
	}
}

// startSpread is the time over which clients begin that do not wait between transactions.
const startSpread = 250 * time.Millisecond

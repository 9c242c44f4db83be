package simulated

import (
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
	clients []*caller
	byID    map[protocol.ID]*caller
	// value is what a transaction writes to a key that held something, if it has read it.
	value func(key store.Key, was store.Value) []byte
	// ended is told of each transaction.
	ended func(*caller, result)
}

// A result is what became of a transaction.
type result struct {
	ops     []workload.Op
	began   time.Duration
	took    time.Duration
	verdict store.Verdict
	fast    bool // it was committed by the protocol's fast path
	read    map[store.Key]store.Value
}

// wrote reports whether the transaction is one that writes.
func (r result) wrote() bool {
	return slices.ContainsFunc(r.ops, func(o workload.Op) bool { return o.Write })
}

// A setting says which store there is, and who uses it.
type setting struct {
	system    plan.System
	wan       wan.Matrix
	placement [][]wan.Site
	agents    int // at each site
	clients   int // at each site
	roundTrip time.Duration
	maxOffset time.Duration
	seed      uint64
	disk      sim.Disk
	service   func(sim.Call[store.Message]) time.Duration
}

// placementOf has a partition led at each site, with copies at the two that follow.
func placementOf(m wan.Matrix) ([][]wan.Site, error) {
	sites := m.Sites()
	names := make([]string, len(sites))
	for i, s := range sites {
		names[i] = string(s)
	}
	ring, err := store.Ring(names, len(sites), replicas, nil)
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
	p := &population{byID: map[protocol.ID]*caller{}, ended: func(*caller, result) {}}
	c := storesim.NodesConfig{System: s.system, Placement: s.placement, Agents: s.agents, RoundTrip: s.roundTrip,
		MaxOffset: s.maxOffset, Sim: sim.Config[store.Message]{Seed: s.seed, WAN: s.wan, Disk: s.disk, Service: s.service,
			CheckEvery: 1 << 20, TraceKeep: -1, CodecChance: codecChance}, Hear: p.receive}
	sites := s.wan.Sites()
	for range s.clients {
		c.Clients = append(c.Clients, sites...)
	}
	var err error
	if p.Nodes, err = storesim.NewNodes(c); err != nil {
		return nil, err
	}
	for i, id := range p.Clients {
		cl := &caller{all: p, id: id, site: c.Clients[i], random: rand.New(rand.NewPCG(s.seed, uint64(i)))}
		p.clients, p.byID[id] = append(p.clients, cl), cl
	}
	return p, p.Settle()
}

// codecChance is how many messages travel as bytes: it costs more time than all else.
const codecChance = 1e-3

func (p *population) receive(from protocol.ID, msg store.Message) {
	if m, refused := msg.(store.Refused); refused {
		p.Fail("a server is refused: %s", m.Reason)
		return
	}
	if c := p.byID[from]; c != nil {
		c.receive(msg)
	}
}

// A caller is a client's application, which makes one transaction at a time.
type caller struct {
	all    *population
	id     protocol.ID
	site   wan.Site
	random *rand.Rand
	then   func(result) // of the transaction that is under way; nil: there is none

	ops    []workload.Op
	began  time.Duration
	keys   []store.Key // that it reads, in ascending order
	read   map[store.Key]store.Value
	asked  map[uint64]store.Key // reads without an answer yet
	ref    uint64
	unsure bool // an answer does not settle what the key holds
}

// makes makes a transaction whose keys are all known from the start, as clients in mode grpc of
// package store/client do.
func (c *caller) makes(ops []workload.Op, then func(result)) {
	c.ops, c.then, c.began, c.unsure = ops, then, c.all.Now(), false
	c.read, c.asked = map[store.Key]store.Value{}, map[uint64]store.Key{}
	var writes []store.Key
	c.keys = nil
	for _, o := range ops {
		key := store.Key(workload.Name(o.Key))
		if o.Read {
			c.keys = append(c.keys, key)
		}
		if o.Write {
			writes = append(writes, key)
		}
	}
	slices.Sort(c.keys)
	slices.Sort(writes)
	p := c.all.Protocol
	if p.Declares && (len(writes) > 0 || p.Clocked) {
		c.ref++
		c.all.Deliver(c.id, store.Declare{Ref: c.ref, Reads: c.keys, Writes: writes})
		return
	}
	for _, k := range c.keys {
		c.ref++
		c.asked[c.ref] = k
	}
	first := c.ref - uint64(len(c.keys)) + 1
	for i, k := range c.keys {
		c.all.Deliver(c.id, store.Get{Ref: first + uint64(i), Key: k})
	}
	if len(c.keys) == 0 {
		c.commit(0)
	}
}

func (c *caller) receive(msg store.Message) {
	if c.then == nil {
		return
	}
	switch m := msg.(type) {
	case store.Declared:
		if m.Ref == c.ref {
			c.declared(m)
		}
	case store.Got:
		c.got(m)
	case store.Done:
		if m.Ref == c.ref {
			c.end(m.Outcome.Verdict, m.Outcome.Fast)
		}
	}
}

func (c *caller) declared(m store.Declared) {
	if !m.OK {
		c.end(store.Unknown, false)
		return
	}
	for i, k := range c.keys {
		c.read[k] = m.Values[i].Value
	}
	if c.readsOnly() {
		c.end(store.Committed, false)
		return
	}
	c.commit(m.Ref)
}

func (c *caller) got(m store.Got) {
	key, waits := c.asked[m.Ref]
	if !waits {
		return
	}
	delete(c.asked, m.Ref)
	if !m.OK {
		c.end(store.Unknown, false)
		return
	}
	c.read[key], c.unsure = m.Value, c.unsure || !m.Settled
	switch {
	case len(c.asked) > 0:
	case c.readsOnly() && len(c.keys) == 1 && !c.unsure:
		c.end(store.Committed, false)
	default:
		c.commit(0)
	}
}

// busy reports whether a transaction is under way.
func (c *caller) busy() bool { return c.then != nil }

func (c *caller) readsOnly() bool { return !result{ops: c.ops}.wrote() }

// commit commits what the transaction has read and writes, which has begun as what was declared if
// begun is not 0.
func (c *caller) commit(begun uint64) {
	var b store.Buffer
	for _, k := range c.keys {
		b.Saw(k, c.read[k])
	}
	for _, o := range c.ops {
		if key := store.Key(workload.Name(o.Key)); o.Write {
			b.Put(key, c.all.value(key, c.read[key]))
		}
	}
	reads, writes := b.Accesses()
	c.ref++
	c.all.Deliver(c.id, store.Submit{Ref: c.ref, Reads: reads, Writes: writes, Begun: begun})
}

func (c *caller) end(v store.Verdict, fast bool) {
	r := result{ops: c.ops, began: c.began, took: c.all.Now() - c.began, verdict: v, fast: fast, read: c.read}
	then := c.then
	c.then, c.asked = nil, nil
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
	c.makes(w.Next(c.random).Ops, func(result) {
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

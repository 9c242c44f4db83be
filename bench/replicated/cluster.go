package replicated

import (
	"math/rand/v2"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/smrsim"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// Setting is a group of replicas in a simulated network, with a client at each site that makes
// calls whatever becomes of those before.
type Setting struct {
	Protocol smr.Protocol
	WAN      wan.Deployment
	Seed     uint64
	Ack      smr.Ack       // what calls wait for; AckDefault is AckOrdered
	Every    time.Duration // between two calls of a client, on average
	Sync     time.Duration // what a disk takes; 0 is a disk that takes no time
	MaxBatch int           // 0 is the default, 1 no batching

	// Clients are the sites of the clients, nil for all sites.
	Clients []wan.Site
	// Keys are those that are written. nil: each call has one of its own.
	Keys workload.Keys
	// RoundTrip is what nodes are told of the network; 0 is the default of package smr.
	RoundTrip time.Duration
	// Skew bounds how far apart two clocks are: each is off by a constant that is drawn from half
	// of it to both sides.
	Skew time.Duration
	// Changes are what happens to the network from when clients begin to call.
	Changes wan.Schedule
}

const firstClient = protocol.ID(1000)

// cluster is a Setting that runs.
type cluster struct {
	Setting
	*smrsim.Group
	rand    *rand.Rand
	stores  map[protocol.ID]*cells // of the present incarnations
	callers []*caller
	done    func(*caller, call) // is told of each call that was committed
}

type caller struct {
	site    wan.Site
	id      protocol.ID
	last    uint64 // of its calls
	waiting int    // calls that have no answer yet
}

type call struct {
	key   string
	began time.Duration
}

// newCluster returns a setting at its beginning. Timeouts are the defaults, and the first member
// leads first.
func newCluster(s Setting) (*cluster, error) {
	c := &cluster{Setting: s, rand: rand.New(rand.NewPCG(s.Seed, 7)), stores: map[protocol.ID]*cells{}}
	var err error
	c.Group, err = smrsim.New(smrsim.Config{
		Protocol: s.Protocol, Place: s.WAN, Clients: s.Clients, FirstClient: firstClient, RoundTrip: s.RoundTrip,
		Clock: c.clock,
		Sim:   sim.Config[smr.Message]{Seed: s.Seed, Disk: sim.Disk{Latency: s.Sync}, CheckEvery: 1000, TraceKeep: -1},
		Replica: func(r *smr.ReplicaConfig) {
			c.stores[r.ID] = newCells()
			r.Machine, r.Leader, r.MaxBatch = c.stores[r.ID], 1, s.MaxBatch
		},
	})
	if err != nil {
		return nil, err
	}
	for _, id := range c.Group.Clients {
		c.callers = append(c.callers, &caller{site: c.Site(id), id: id})
	}
	return c, nil
}

// clock draws a node's clock.
func (c *cluster) clock(protocol.ID) sim.Clock {
	if c.Skew <= 0 {
		return sim.Clock{}
	}
	return sim.Clock{Offset: time.Duration(c.rand.Int64N(int64(c.Skew)+1)) - c.Skew/2}
}

func (c *cluster) fail(format string, args ...any) {
	c.Fail("%s on %s, seed %d: "+format, append([]any{c.Protocol.Name, c.WAN.Name, c.Seed}, args...)...)
}

// start has the clients make calls from now on, each at instants of its own, until a time has come.
func (c *cluster) start(until time.Duration) {
	for _, cl := range c.callers {
		c.After(time.Duration(c.rand.Int64N(int64(c.Every))), func() { c.next(cl, until) })
	}
}

func (c *cluster) next(cl *caller, until time.Duration) {
	if c.Now() >= until {
		return
	}
	c.make(cl)
	// The instants vary, so that clients do not move in step.
	c.After(c.Every/2+time.Duration(c.rand.Int64N(int64(c.Every))), func() { c.next(cl, until) })
}

// make makes a call that writes 16 bytes, key and value.
func (c *cluster) make(cl *caller) {
	cl.last++
	n := uint64(cl.id)<<32 | cl.last
	if c.Keys != nil {
		n = c.Keys.Draw(c.rand)
	}
	key := string(number(n))
	m := smr.Call{Kind: smr.Propose, Ack: c.Ack, Command: put(key, "8 bytes.")}
	if c.Ack == smr.AckExecuted {
		m.Kind = smr.Execute
	}
	cl.waiting++
	c.Make(cl.id, m, func(a smrsim.Answer) {
		cl.waiting--
		switch {
		case a.Outcome == smr.Rejected:
			c.fail("client at %s: rejected: %s", cl.site, a.Reason)
		case a.Outcome == smr.Committed && c.done != nil:
			c.done(cl, call{key, a.Began})
		}
	})
}

// warm waits until each client has had an answer.
func (c *cluster) warm() error {
	answered := map[*caller]bool{}
	c.done = func(cl *caller, _ call) { answered[cl] = true }
	for _, cl := range c.callers {
		c.make(cl)
	}
	err := c.Await(30*time.Second, func() bool { return len(answered) == len(c.callers) })
	c.done = nil
	return err
}

// statusWithin is how long all replicas have to answer: their answers wait for what they are
// writing.
const statusWithin = time.Second

// ask asks each replica for its status, and waits until all have answered. All are up.
func (c *cluster) ask(each func(protocol.ID, smr.Status)) {
	clear(c.Status)
	for _, m := range c.Members {
		c.Deliver(m.ID, smr.StatusQuery{})
	}
	if err := c.Await(statusWithin, func() bool { return len(c.Status) == len(c.Members) }); err != nil {
		c.fail("%v", err)
	}
	for _, m := range c.Members {
		each(m.ID, c.Status[m.ID])
	}
}

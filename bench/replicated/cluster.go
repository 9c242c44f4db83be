package replicated

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
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
	sim      *sim.Sim[smr.Message]
	rand     *rand.Rand
	replicas []protocol.ID
	stores   map[protocol.ID]*cells // of the present incarnations
	clients  []*caller
	err      error
	done     func(*caller, call)           // is told of each call that was committed
	status   func(protocol.ID, smr.Status) // is told of each status
}

type caller struct {
	site  wan.Site
	id    protocol.ID
	last  smr.CallID
	calls map[smr.CallID]call
}

type call struct {
	key   string
	began time.Duration
}

func newCluster(s Setting) (*cluster, error) {
	c := &cluster{Setting: s, rand: rand.New(rand.NewPCG(s.Seed, 7)), stores: map[protocol.ID]*cells{}}
	var err error
	c.sim, err = sim.New(sim.Config[smr.Message]{
		Seed: s.Seed, WAN: s.WAN.Matrix, Disk: sim.Disk{Latency: s.Sync}, App: c.app, CheckEvery: 1000, TraceKeep: -1,
	})
	if err != nil {
		return nil, err
	}
	var members []smr.Member
	for i := range s.WAN.Replicas {
		members = append(members, smr.Member{ID: protocol.ID(i + 1)})
	}
	for i, m := range members {
		if err := c.addReplica(m.ID, members, s.WAN.Replicas[i]); err != nil {
			return nil, err
		}
	}
	sites := s.Clients
	if sites == nil {
		sites = s.WAN.Matrix.Sites()
	}
	for i, site := range sites {
		if err := c.addClient(firstClient+protocol.ID(i), members, site); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// addReplica puts a replica in. Timeouts are the defaults, and the first member leads first.
func (c *cluster) addReplica(id protocol.ID, members []smr.Member, site wan.Site) error {
	build := func() (protocol.Node[smr.Message], error) {
		c.stores[id] = newCells()
		return c.Protocol.NewReplica(smr.ReplicaConfig{
			ID: id, Members: members, Machine: c.stores[id], Leader: 1, MaxBatch: c.MaxBatch, RoundTrip: c.RoundTrip,
		})
	}
	if _, err := build(); err != nil {
		return err
	}
	c.replicas = append(c.replicas, id)
	return c.sim.Add(sim.Node[smr.Message]{ID: id, Site: site, Clock: c.clock(), New: func() protocol.Node[smr.Message] {
		n, err := build()
		if err != nil {
			panic(err) // it was right before
		}
		return n
	}})
}

func (c *cluster) addClient(id protocol.ID, members []smr.Member, site wan.Site) error {
	near := slices.Index(c.WAN.Replicas, c.WAN.Matrix.Nearest(site, c.WAN.Replicas))
	n, err := c.Protocol.NewClient(smr.ClientConfig{ID: id, Members: members, Nearest: members[near].ID, RoundTrip: c.RoundTrip})
	if err != nil {
		return err
	}
	c.clients = append(c.clients, &caller{site: site, id: id, calls: map[smr.CallID]call{}})
	return c.sim.Add(sim.Node[smr.Message]{ID: id, Site: site, Clock: c.clock(), New: func() protocol.Node[smr.Message] { return n }})
}

// clock draws a node's clock.
func (c *cluster) clock() sim.Clock {
	if c.Skew <= 0 {
		return sim.Clock{}
	}
	return sim.Clock{Offset: time.Duration(c.rand.Int64N(int64(c.Skew)+1)) - c.Skew/2}
}

func (c *cluster) app(from protocol.ID, msg smr.Message) {
	switch msg := msg.(type) {
	case smr.Done:
		cl := c.clients[from-firstClient]
		call := cl.calls[msg.ID]
		delete(cl.calls, msg.ID)
		switch msg.Outcome {
		case smr.Committed:
			if c.done != nil {
				c.done(cl, call)
			}
		case smr.Rejected:
			c.fail("client at %s: rejected: %s", cl.site, msg.Reason)
		}
	case smr.Status:
		if c.status != nil {
			c.status(from, msg)
		}
	case smr.Refused:
		c.fail("replica %d is refused: %s", from, msg.Reason)
	}
}

func (c *cluster) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%s on %s, seed %d, at %v: "+format, append([]any{c.Protocol.Name, c.WAN.Name, c.Seed, c.sim.Now()}, args...)...)
	}
}

// start has the clients make calls from now on, each at instants of its own, until a time has come.
func (c *cluster) start(until time.Duration) {
	for _, cl := range c.clients {
		c.sim.After(time.Duration(c.rand.Int64N(int64(c.Every))), func() { c.next(cl, until) })
	}
}

func (c *cluster) next(cl *caller, until time.Duration) {
	if c.sim.Now() >= until {
		return
	}
	c.make(cl)
	// The instants vary, so that clients do not move in step.
	c.sim.After(c.Every/2+time.Duration(c.rand.Int64N(int64(c.Every))), func() { c.next(cl, until) })
}

// make makes a call that writes 16 bytes, key and value.
func (c *cluster) make(cl *caller) {
	cl.last++
	key := uint64(cl.id)<<32 | uint64(cl.last)
	if c.Keys != nil {
		key = c.Keys.Draw(c.rand)
	}
	b := string(number(key))
	cl.calls[cl.last] = call{b, c.sim.Now()}
	m := smr.Call{ID: cl.last, Kind: smr.Propose, Ack: c.Ack, Command: put(b, "8 bytes.")}
	if c.Ack == smr.AckExecuted {
		m.Kind = smr.Execute
	}
	c.sim.Deliver(cl.id, m)
}

// warm waits until each client has had an answer.
func (c *cluster) warm() error {
	answered := map[*caller]bool{}
	c.done = func(cl *caller, _ call) { answered[cl] = true }
	for _, cl := range c.clients {
		c.make(cl)
	}
	err := c.sim.RunUntil(30*time.Second, func() bool { return len(answered) == len(c.clients) || c.err != nil })
	c.done = nil
	if c.err != nil {
		return c.err
	}
	return err
}

func (c *cluster) pass(d time.Duration) error {
	if err := c.sim.Run(d); err != nil {
		return err
	}
	return c.err
}

// statusWithin is how long all replicas have to answer: their answers wait for what they are
// writing.
const statusWithin = time.Second

// ask asks each replica for its status, and waits until all have answered. All are up.
func (c *cluster) ask(each func(protocol.ID, smr.Status)) {
	missing := len(c.replicas)
	c.status = func(id protocol.ID, s smr.Status) {
		missing--
		each(id, s)
	}
	for _, id := range c.replicas {
		c.sim.Deliver(id, smr.StatusQuery{})
	}
	if err := c.sim.RunUntil(statusWithin, func() bool { return missing == 0 }); err != nil {
		c.fail("%v", err)
	}
	c.status = nil
}

package domino

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/wan"
)

// world is a deployment of a paper: a replica at each of its sites and a client at every site of
// its network.
type world struct {
	*sim.Sim[smr.Message]
	t       testing.TB
	wan     wan.Deployment
	group   []smr.Member
	clients map[wan.Site]protocol.ID
	began   map[protocol.ID][]time.Duration // by call, from 1
	answers []answer
	status  map[protocol.ID]smr.Status
}

type answer struct {
	client protocol.ID
	smr.Done
	began, took time.Duration
}

// setup is what a world is made from.
type setup struct {
	preset string
	opt    Options
	cfg    sim.Config[smr.Message]
	jitter time.Duration // of all links
	clocks func(protocol.ID) sim.Clock
	adjust func(*smr.ReplicaConfig)
}

func newWorld(t testing.TB, s setup) *world {
	t.Helper()
	d, err := wan.Preset(s.preset)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, wan: d, clients: map[wan.Site]protocol.ID{}, began: map[protocol.ID][]time.Duration{}, status: map[protocol.ID]smr.Status{}}
	m := d.Matrix
	for p, l := range d.Matrix.Links() {
		if l.Delay > 0 {
			l.Jitter = s.jitter
		}
		m = m.WithLink(p, l)
	}
	s.cfg.WAN, s.cfg.App = m, w.app
	s.cfg.Seed = max(s.cfg.Seed, 1)
	if w.Sim, err = sim.New(s.cfg); err != nil {
		t.Fatal(err)
	}
	p := New("", "", s.opt)
	for i := range d.Replicas {
		w.group = append(w.group, smr.Member{ID: protocol.ID(i + 1)})
	}
	for i, m := range w.group {
		w.add(s, m.ID, d.Replicas[i], func() (protocol.Node[smr.Message], error) {
			c := smr.ReplicaConfig{ID: m.ID, Members: w.group, Machine: kv.New(), RoundTrip: w.longest(), Leader: 1}
			if s.adjust != nil {
				s.adjust(&c)
			}
			return p.NewReplica(c)
		})
	}
	for i, site := range d.Matrix.Sites() {
		id := protocol.ID(100 + i)
		w.clients[site], w.began[id] = id, []time.Duration{0}
		w.add(s, id, site, func() (protocol.Node[smr.Message], error) {
			return p.NewClient(smr.ClientConfig{ID: id, Members: w.group, RoundTrip: w.longest()})
		})
	}
	w.run(2 * time.Second) // to elect, to measure, and to open the sessions
	return w
}

// longest is the longest round trip between replicas.
func (w *world) longest() time.Duration { return w.wan.Matrix.MaxRTT(w.wan.Replicas) }

func (w *world) add(s setup, id protocol.ID, site wan.Site, make func() (protocol.Node[smr.Message], error)) {
	w.t.Helper()
	node := sim.Node[smr.Message]{ID: id, Site: site, New: func() protocol.Node[smr.Message] {
		n, err := make()
		if err != nil {
			w.t.Fatal(err)
		}
		return n
	}}
	if s.clocks != nil {
		node.Clock = s.clocks(id)
	}
	if err := w.Add(node); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) app(from protocol.ID, msg smr.Message) {
	switch msg := msg.(type) {
	case smr.Done:
		began := w.began[from][msg.ID]
		w.answers = append(w.answers, answer{from, msg, began, w.Now() - began})
	case smr.Status:
		w.status[from] = msg
	}
}

func (w *world) run(d time.Duration) {
	w.t.Helper()
	if err := w.Run(d); err != nil {
		w.t.Fatal(err)
	}
}

// call has a client make a call.
func (w *world) call(client protocol.ID, c smr.Call) {
	c.ID = smr.CallID(len(w.began[client]))
	w.began[client] = append(w.began[client], w.Now())
	w.Deliver(client, c)
}

func (w *world) replica(id protocol.ID) *Replica { return w.Get(id).(*Replica) }

func (w *world) client(site wan.Site) *Client { return w.Get(w.clients[site]).(*Client) }

// load has every client write so many times a second, for a while, and returns how long the calls
// took. One that is not done at the end is a failure.
func (w *world) load(call smr.Call, perSecond int, lasting time.Duration) []answer {
	w.t.Helper()
	w.answers = nil
	every, calls := time.Second/time.Duration(perSecond), 0
	for i, site := range w.wan.Matrix.Sites() {
		id := w.clients[site]
		for at := time.Duration(i) * every / 9; at < lasting; at += every {
			calls++
			w.After(at, func() {
				c := call
				c.Command = kv.Put(fmt.Appendf(nil, "%08d", (len(w.began[id])*7919)%1000), []byte("12345678"))
				w.call(id, c)
			})
		}
	}
	w.run(lasting + 2*time.Second)
	if len(w.answers) != calls {
		w.t.Fatalf("%d calls of %d are done", len(w.answers), calls)
	}
	for _, a := range w.answers {
		if a.Outcome != smr.Committed {
			w.t.Fatalf("client %d: %v, %s", a.client, a.Outcome, a.Reason)
		}
	}
	return w.answers
}

// percentile returns how long a part of the calls took at most.
func percentile(answers []answer, p float64) time.Duration {
	var took []time.Duration
	for _, a := range answers {
		took = append(took, a.took)
	}
	slices.Sort(took)
	return took[min(int(p*float64(len(took))), len(took)-1)]
}

type (
	protocolID = protocol.ID
	node       = protocol.Node[smr.Message]
)

func ids(id ...protocol.ID) []protocol.ID { return id }

// noting is a state machine that notes what it executes.
type noting struct {
	smr.StateMachine
	log *[]string
}

func (n *noting) Apply(command []byte) []byte {
	*n.log = append(*n.log, string(command))
	return n.StateMachine.Apply(command)
}

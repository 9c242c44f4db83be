package mencius

import (
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/wan"
)

// world is a deployment of a paper: a replica at each of its sites, and a client at every site of
// its network, which asks the nearest replica.
type world struct {
	*sim.Sim[smr.Message]
	t       *testing.T
	wan     wan.Deployment
	group   []smr.Member
	clients map[wan.Site]protocol.ID
	begun   map[protocol.ID]map[smr.CallID]time.Duration
	done    []answer
	status  map[protocol.ID]smr.Status
}

type answer struct {
	client protocol.ID
	smr.Done
	took time.Duration
}

func newWorld(t *testing.T, preset string, cfg sim.Config[smr.Message]) *world {
	t.Helper()
	d, err := wan.Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, wan: d, clients: map[wan.Site]protocol.ID{}, begun: map[protocol.ID]map[smr.CallID]time.Duration{},
		status: map[protocol.ID]smr.Status{},
	}
	cfg.WAN, cfg.App, cfg.Codec = d.Matrix, w.app, Codec()
	cfg.Seed = max(cfg.Seed, 1)
	if w.Sim, err = sim.New(cfg); err != nil {
		t.Fatal(err)
	}
	for i := range d.Replicas {
		w.group = append(w.group, smr.Member{ID: protocol.ID(i + 1)})
	}
	for i, m := range w.group {
		w.add(m.ID, d.Replicas[i], func() (protocol.Node[smr.Message], error) {
			return NewReplica(smr.ReplicaConfig{ID: m.ID, Members: w.group, Machine: kv.New(), SnapshotEvery: 500})
		})
	}
	for i, site := range d.Matrix.Sites() {
		w.addClient(protocol.ID(100+i), site, w.group)
		w.clients[site] = protocol.ID(100 + i)
	}
	w.run(2 * time.Second) // to open the sessions
	return w
}

func (w *world) addClient(id protocol.ID, site wan.Site, members []smr.Member) {
	w.begun[id] = map[smr.CallID]time.Duration{}
	w.add(id, site, func() (protocol.Node[smr.Message], error) {
		return Protocol().NewClient(smr.ClientConfig{ID: id, Members: members, Nearest: w.nearest(site)})
	})
}

func (w *world) nearest(site wan.Site) protocol.ID {
	near := w.wan.Matrix.Nearest(site, w.wan.Replicas)
	for i, s := range w.wan.Replicas {
		if s == near {
			return protocol.ID(i + 1)
		}
	}
	return 0
}

func (w *world) add(id protocol.ID, site wan.Site, build func() (protocol.Node[smr.Message], error)) {
	w.t.Helper()
	err := w.Add(sim.Node[smr.Message]{ID: id, Site: site, New: func() protocol.Node[smr.Message] {
		n, err := build()
		if err != nil {
			w.t.Fatal(err)
		}
		return n
	}})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) app(from protocol.ID, msg smr.Message) {
	switch msg := msg.(type) {
	case smr.Done:
		w.done = append(w.done, answer{from, msg, w.Now() - w.begun[from][msg.ID]})
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

// ask returns how a replica is.
func (w *world) ask(id protocol.ID) smr.Status {
	w.t.Helper()
	w.Deliver(id, smr.StatusQuery{})
	w.run(5 * time.Millisecond)
	return w.status[id]
}

// call has a client make a call, and returns its name.
func (w *world) call(client protocol.ID, c smr.Call) smr.CallID {
	c.ID = smr.CallID(len(w.begun[client]) + 1)
	w.begun[client][c.ID] = w.Now()
	w.Deliver(client, c)
	return c.ID
}

// one makes a call and returns its answer.
func (w *world) one(client protocol.ID, c smr.Call) answer {
	w.t.Helper()
	w.done = nil
	w.call(client, c)
	w.run(time.Second)
	if len(w.done) != 1 || w.done[0].Outcome != smr.Committed {
		w.t.Fatalf("client %d: %+v", client, w.done)
	}
	return w.done[0]
}

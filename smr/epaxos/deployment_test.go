package epaxos

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/wan"
)

// deployment is a group at the sites of a paper, and a client at every site of its network that
// asks the nearest replica.
type deployment struct {
	*sim.Sim[smr.Message]
	t       testing.TB
	wan     wan.Deployment
	group   []smr.Member
	clients map[wan.Site]protocol.ID
	sites   map[protocol.ID]wan.Site
	calls   map[protocol.ID][]time.Duration // when each began
	done    []finished
	trip    time.Duration
}

type finished struct {
	site wan.Site
	smr.Done
	began, took time.Duration
}

func deploy(t testing.TB, preset string, cfg sim.Config[smr.Message], adjust func(*smr.ReplicaConfig)) *deployment {
	t.Helper()
	p, err := wan.Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	d := &deployment{t: t, wan: p, clients: map[wan.Site]protocol.ID{}, sites: map[protocol.ID]wan.Site{}, calls: map[protocol.ID][]time.Duration{}}
	cfg.WAN, cfg.App, cfg.Seed = p.Matrix, d.app, max(cfg.Seed, 1)
	if d.Sim, err = sim.New(cfg); err != nil {
		t.Fatal(err)
	}
	for i := range p.Replicas {
		d.group = append(d.group, smr.Member{ID: protocol.ID(i + 1)})
	}
	d.trip = max(100*time.Millisecond, p.Matrix.MaxRTT(p.Matrix.Sites()))
	for i, m := range d.group {
		d.add(m.ID, p.Replicas[i], func() (protocol.Node[smr.Message], error) {
			c := smr.ReplicaConfig{ID: m.ID, Members: d.group, RoundTrip: d.trip, Machine: newRegisters(nil)}
			if adjust != nil {
				adjust(&c)
			}
			return NewReplica(c)
		})
	}
	for i, site := range p.Matrix.Sites() {
		id := protocol.ID(101 + i)
		d.clients[site], d.sites[id] = id, site
		nearest := d.group[slices.Index(p.Replicas, p.Matrix.Nearest(site, p.Replicas))].ID
		d.add(id, site, func() (protocol.Node[smr.Message], error) {
			return NewClient(smr.ClientConfig{ID: id, Members: d.group, RoundTrip: d.trip, Nearest: nearest})
		})
	}
	d.run(3 * time.Second) // to begin, and to open the sessions
	return d
}

func (d *deployment) add(id protocol.ID, site wan.Site, make func() (protocol.Node[smr.Message], error)) {
	d.t.Helper()
	err := d.Add(sim.Node[smr.Message]{ID: id, Site: site, New: func() protocol.Node[smr.Message] {
		n, err := make()
		if err != nil {
			d.t.Fatal(err)
		}
		return n
	}})
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *deployment) app(from protocol.ID, msg smr.Message) {
	if done, ok := msg.(smr.Done); ok {
		began := d.calls[from][done.ID-1]
		d.done = append(d.done, finished{d.sites[from], done, began, d.Now() - began})
	}
}

func (d *deployment) run(t time.Duration) {
	d.t.Helper()
	if err := d.Run(t); err != nil {
		d.t.Fatal(err)
	}
}

func (d *deployment) call(site wan.Site, c smr.Call) {
	id := d.clients[site]
	d.calls[id] = append(d.calls[id], d.Now())
	c.ID = smr.CallID(len(d.calls[id]))
	d.Deliver(id, c)
}

func durable(value string, keys ...string) smr.Call {
	return smr.Call{Kind: smr.Propose, Ack: smr.AckDurable, Command: set(value, keys...)}
}

// model returns what a call from a site takes with a number of round trips between its replica and
// the nearest quorum.
func (d *deployment) model(site wan.Site, trips int) time.Duration {
	near := d.wan.Matrix.Nearest(site, d.wan.Replicas)
	var to []time.Duration
	for _, r := range d.wan.Replicas {
		to = append(to, d.wan.Matrix.RTT(near, r))
	}
	slices.Sort(to) // the first one is its own, 0
	return d.wan.Matrix.RTT(site, near) + time.Duration(trips)*to[fastQuorum(len(to))-1]
}

// percentile returns the value that a share of them does not exceed.
func percentile(all []time.Duration, share float64) time.Duration {
	all = slices.Sorted(slices.Values(all))
	if len(all) == 0 {
		return 0
	}
	return all[min(int(share*float64(len(all))), len(all)-1)]
}

func name(i int) string { return fmt.Sprint("key", i) }

// roughen makes all links between sites jitter and lose segments.
func (d *deployment) roughen(jitter time.Duration, loss float64) {
	d.t.Helper()
	for _, a := range d.wan.Matrix.Sites() {
		for _, b := range d.wan.Matrix.Sites() {
			path := wan.Path{From: a, To: b}
			link, ok := d.Link(path)
			if !ok || a == b {
				continue
			}
			link.Jitter, link.Loss = jitter, loss
			if err := d.SetLink(path, link); err != nil {
				d.t.Fatal(err)
			}
		}
	}
}

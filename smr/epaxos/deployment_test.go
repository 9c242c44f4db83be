package epaxos

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/smrsim"
	"github.com/foresay/foresay/smr/smrtest"
	"github.com/foresay/foresay/wan"
)

// deployment is a group at the sites of a paper, and a client at every site of its network that
// asks the nearest replica.
type deployment struct{ *smrtest.Deployed }

func deploy(t testing.TB, preset string, cfg sim.Config[smr.Message], adjust func(*smr.ReplicaConfig)) *deployment {
	t.Helper()
	p, err := wan.Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	d := &deployment{smrtest.Deploy(t, preset, smrsim.Config{
		Protocol: Protocol(), Place: p, RoundTrip: max(100*time.Millisecond, p.Matrix.MaxRTT(p.Matrix.Sites())), Sim: cfg,
		Replica: func(c *smr.ReplicaConfig) {
			c.Machine = newRegisters(nil)
			if adjust != nil {
				adjust(c)
			}
		},
	})}
	d.Run(time.Second)
	return d
}

func (d *deployment) call(site wan.Site, c smr.Call) { d.Call(d.Client(site), c) }

func durable(value string, keys ...string) smr.Call {
	return smr.Call{Kind: smr.Propose, Ack: smr.AckDurable, Command: set(value, keys...)}
}

// model returns what a call from a site takes with a number of round trips between its replica and
// the nearest quorum.
func (d *deployment) model(site wan.Site, trips int) time.Duration {
	near := d.Place.Matrix.Nearest(site, d.Place.Replicas)
	return d.Place.Matrix.RTT(site, near) + time.Duration(trips)*d.Trip(near, fastQuorum(len(d.Members)))
}

func name(i int) string { return fmt.Sprint("key", i) }

// roughen makes all links between sites jitter and lose segments.
func (d *deployment) roughen(t testing.TB, jitter time.Duration, loss float64) {
	t.Helper()
	for _, a := range d.Place.Matrix.Sites() {
		for _, b := range d.Place.Matrix.Sites() {
			path := wan.Path{From: a, To: b}
			link, ok := d.Link(path)
			if !ok || a == b {
				continue
			}
			link.Jitter, link.Loss = jitter, loss
			if err := d.SetLink(path, link); err != nil {
				t.Fatal(err)
			}
		}
	}
}

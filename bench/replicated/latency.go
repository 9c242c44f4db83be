package replicated

import (
	"time"

	"github.com/foresay/foresay/wan"
)

// Sample is a call: when it was made, from when the clients began, and how long it took.
type Sample struct{ Began, Took time.Duration }

// SiteLatency is what became of the calls of one client.
type SiteLatency struct {
	Site wan.Site
	// Calls are in the order in which they were answered.
	Calls []Sample
	// Model is the round trip to the leader and the leader's to a majority: what a protocol with a leader that stays takes at least.
	Model time.Duration
}

// Took returns how long the calls took, in the order in which they were answered.
func (l SiteLatency) Took() []time.Duration {
	var took []time.Duration
	for _, c := range l.Calls {
		took = append(took, c.Took)
	}
	return took
}

// warming is how long clients call before anything is measured, so that what they know of the network is of the network under this load.
const warming = 2 * time.Second

// Latency lets the clients of a setting make calls for a time, and returns how long they took, in order of the sites.
func Latency(s Setting, lasting time.Duration) ([]SiteLatency, error) {
	c, err := newCluster(s)
	if err != nil {
		return nil, err
	}
	if err := c.warm(); err != nil {
		return nil, err
	}
	if err := c.pass(time.Second); err != nil {
		return nil, err
	}
	began := c.sim.Now() + warming
	if err := c.sim.Apply(s.Changes.Later(began)); err != nil {
		return nil, err
	}
	calls := map[*caller][]Sample{}
	c.done = func(cl *caller, call call) {
		if call.began >= began {
			calls[cl] = append(calls[cl], Sample{call.began - began, c.sim.Now() - call.began})
		}
	}
	c.start(began + lasting)
	if err := c.pass(warming + lasting + 5*time.Second); err != nil {
		return nil, err
	}
	var out []SiteLatency
	for _, cl := range c.clients {
		if len(cl.calls) > 0 {
			c.fail("client at %s: %d calls have no answer", cl.site, len(cl.calls))
		}
		out = append(out, SiteLatency{Site: cl.site, Calls: calls[cl], Model: Model(s.WAN, cl.site)})
	}
	return out, c.err
}

// Model returns how long a command of a client takes that goes to the leader, the deployment's first replica, and from there to a majority.
func Model(d wan.Deployment, site wan.Site) time.Duration {
	leader := d.Replicas[0]
	var toOthers []time.Duration
	for _, r := range d.Replicas[1:] {
		toOthers = append(toOthers, d.Matrix.RTT(leader, r))
	}
	return d.Matrix.RTT(site, leader) + nth(toOthers, len(d.Replicas)/2)
}

// nth returns the nth smallest, counted from 1; 0 for n = 0.
func nth(all []time.Duration, n int) time.Duration {
	if n == 0 {
		return 0
	}
	for _, d := range all {
		below := 0
		equal := 0
		for _, o := range all {
			if o < d {
				below++
			} else if o == d {
				equal++
			}
		}
		if below < n && n <= below+equal {
			return d
		}
	}
	return 0
}

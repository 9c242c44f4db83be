package replicated

import (
	"time"

	"github.com/foresay/foresay/wan"
)

// SiteLatency is how long the calls of one client took.
type SiteLatency struct {
	Site wan.Site
	// Took is unsorted.
	Took []time.Duration
	// Model is the round trip to the leader and the leader's to a majority: what a protocol with a leader that stays takes at least.
	Model time.Duration
}

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
	took := map[*caller][]time.Duration{}
	c.done = func(cl *caller, call call) { took[cl] = append(took[cl], c.sim.Now()-call.began) }
	c.start(c.sim.Now() + lasting)
	if err := c.pass(lasting + 5*time.Second); err != nil {
		return nil, err
	}
	var out []SiteLatency
	for _, cl := range c.clients {
		if len(cl.calls) > 0 {
			c.fail("client at %s: %d calls have no answer", cl.site, len(cl.calls))
		}
		out = append(out, SiteLatency{Site: cl.site, Took: took[cl], Model: Model(s.WAN, cl.site)})
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

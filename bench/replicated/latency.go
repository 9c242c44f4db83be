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
	// Answered counts the calls that were answered since the clients began, those that were made
	// before included. Of as many, Tried is for how many Domino's Fast Paxos was tried, and Taken
	// how many of these took its fast path. Both are 0 of other protocols.
	Answered, Tried, Taken int
}

// Took returns how long the calls took, in the order in which they were answered.
func (l SiteLatency) Took() []time.Duration {
	var took []time.Duration
	for _, c := range l.Calls {
		took = append(took, c.Took)
	}
	return took
}

// warming is how long clients call before anything is measured, so that what they know of the
// network is of the network under this load.
const warming = 2 * time.Second

// Latency lets the clients of a setting make calls for a time, and returns how long they took, in
// order of the sites.
func Latency(s Setting, lasting time.Duration) ([]SiteLatency, error) {
	c, err := newCluster(s)
	if err != nil {
		return nil, err
	}
	if err := c.warm(); err != nil {
		return nil, err
	}
	if err := c.Pass(time.Second); err != nil {
		return nil, err
	}
	began := c.Now() + warming
	if err := c.Apply(s.Changes.Later(began)); err != nil {
		return nil, err
	}
	calls, answered := map[*caller][]Sample{}, map[*caller]int{}
	c.done = func(cl *caller, call call) {
		if c.Now() >= began {
			answered[cl]++
		}
		if call.began >= began {
			calls[cl] = append(calls[cl], Sample{call.began - began, c.Now() - call.began})
		}
	}
	c.start(began + lasting)
	if err := c.Pass(warming); err != nil {
		return nil, err
	}
	before := c.fastPaths()
	if err := c.Pass(lasting + 5*time.Second); err != nil {
		return nil, err
	}
	var out []SiteLatency
	for i, cl := range c.callers {
		if cl.waiting > 0 {
			c.fail("client at %s: %d calls have no answer", cl.site, cl.waiting)
		}
		out = append(out, SiteLatency{Site: cl.site, Calls: calls[cl], Answered: answered[cl]})
		after := c.fastPaths()[i]
		out[i].Tried, out[i].Taken = after.tried-before[i].tried, after.taken-before[i].taken
	}
	return out, c.Err()
}

// fastPath counts attempts of a client to go by Domino's Fast Paxos. Calls of a setting come one by
// one, so an attempt is a command.
type fastPath struct{ taken, tried int }

// fastPaths returns the counts of all clients, zeros for protocols without any.
func (c *cluster) fastPaths() []fastPath {
	out := make([]fastPath, len(c.callers))
	for i, cl := range c.callers {
		if n, ok := c.Get(cl.id).(interface{ FastPath() (taken, tried int) }); ok {
			out[i].taken, out[i].tried = n.FastPath()
		}
	}
	return out
}

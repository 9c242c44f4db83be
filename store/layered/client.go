package layered

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// client is the node of an application. It reads from the leader of a shard, or from a majority of
// its servers if nobody says that it leads, and has the coordinator of one site commit, or of
// another one if that does not answer.
type client struct {
	kit.NearestCalls[*get, *submit]
	cfg store.Config
}

// get is a read that lacks answers.
type get struct {
	kit.Get
	led bool // one of them is the leader's
}

// submit is a transaction that lacks its outcome.
type submit struct {
	kit.Submit
	probed bool // it is found out whether its site is there
	there  bool // it is
	stays  int  // how often it has stayed with the site since
}

// maxStays is how often a transaction that is not answered stays with a site that is there: it may
// wait for older ones, for longestWait, and then two groups have to decide.
const maxStays = 2

// newClient returns a client. The error names the field of the configuration that is wrong.
func newClient(cfg store.Config) (*client, error) {
	calls, cfg, err := kit.NewNearestCalls("layered", cfg, func() *get { return new(get) },
		func() *submit { return new(submit) })
	if err != nil {
		return nil, err
	}
	return &client{NearestCalls: calls, cfg: cfg}, nil
}

// Receive implements protocol.Node.
func (c *client) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	if m, ok := msg.(store.ReadReply); ok {
		if c.Found(env, from, m) {
			c.found(from)
			return
		}
		c.onReadReply(env, from, m)
		return
	}
	c.NearestCalls.Receive(env, from, msg)
}

func (c *client) onReadReply(env *protocol.Env[store.Message], from protocol.ID, m store.ReadReply) {
	g, p := c.GetOf(from, m)
	if g == nil {
		return
	}
	out, n := c.Heard(env, p, &g.Get, m)
	g.led = g.led || m.Led
	switch {
	case c.suffices(g, n, g.Tries):
		c.EndGet(env, g, out)
	case n == 1:
		env.Send(protocol.App, g.First(p.Site))
	}
}

// Expire implements protocol.Node.
func (c *client) Expire(env *protocol.Env[store.Message], t protocol.Timer) {
	if t, ok := t.(kit.GetTimer); ok {
		if g := c.Get(t.Number); g != nil && !g.Tired(env.Now) {
			if out, n := g.Answered(); c.suffices(g, n, g.Tries+1) {
				c.EndGet(env, g, out)
				return
			}
		}
	}
	if t, ok := t.(kit.SubmitTimer); ok && c.stays(env, t) {
		return
	}
	c.NearestCalls.Expire(env, t)
}

// stays reports whether a transaction without an answer stays with its coordinator. That one may
// wait itself, for older transactions: another one would have all of it prepared again, where many
// wait already. So the client asks first whether servers of the site are there.
func (c *client) stays(env *protocol.Env[store.Message], t kit.SubmitTimer) bool {
	s := c.Submit(t.ID)
	switch {
	case s == nil || s.stays >= maxStays:
		return false
	case !s.probed:
		s.probed = true
		c.FindHome(env)
		env.After(c.cfg.RoundTrip, t)
		return true
	case !s.there:
		s.probed = false
		return false
	}
	s.probed, s.there = false, false
	s.stays++
	// It may have forgotten the transaction with a crash, and begins with it anew then.
	env.Send(c.cfg.Layout.Coordinator(s.Site, s.Txn.ID), s.Request())
	env.After(c.Patience(), t)
	return true
}

// found notes for the transactions that look that a server's site is there.
func (c *client) found(from protocol.ID) {
	for s := range c.Submits() {
		if slices.Contains(c.cfg.Layout.Sites[s.Site].Shards, from) {
			s.there = s.probed
		}
	}
}

// suffices reports whether n answers are enough for a read whose servers were asked so often: the
// leader's, or those of a majority while none comes.
func (c *client) suffices(g *get, n, tries int) bool {
	majority := len(c.cfg.Layout.HoldersOf(c.cfg.Layout.ShardOf(g.Ask.Key)))/2 + 1
	return g.led || g.Ask.Nearest && n > 0 || tries > 1 && n >= majority
}

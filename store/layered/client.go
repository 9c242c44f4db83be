package layered

import (
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
type submit struct{ kit.Submit }

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
	c.NearestCalls.Expire(env, t)
}

// suffices reports whether n answers are enough for a read whose servers were asked so often: the
// leader's, or those of a majority while none comes.
func (c *client) suffices(g *get, n, tries int) bool {
	majority := len(c.cfg.Layout.HoldersOf(c.cfg.Layout.ShardOf(g.Ask.Key)))/2 + 1
	return g.led || g.Ask.Nearest && n > 0 || tries > 1 && n >= majority
}

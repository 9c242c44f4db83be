package layered

import (
	"fmt"

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
	cfg, err := kit.FixedSites("layered", cfg)
	if err != nil {
		return nil, err
	}
	calls, err := kit.NewNearestCalls[*get, *submit](cfg)
	if err != nil {
		return nil, fmt.Errorf("layered: %w", err)
	}
	return &client{NearestCalls: calls, cfg: cfg}, nil
}

// Receive implements protocol.Node.
func (c *client) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	switch m := msg.(type) {
	case store.Get:
		if g := new(get); c.AddGet(env, m, g) {
			c.Read(env, g)
		}
	case store.Submit:
		if s := new(submit); c.AddSubmit(env, m, s) {
			s.Site = c.Home()
			c.Send(env, s)
		}
	case store.Query:
		if s := new(submit); c.AddQuery(env, m, s) {
			s.Site = c.Home()
			c.Send(env, s)
		}
	case store.ReadReply:
		c.onReadReply(env, from, m)
	default:
		c.NearestCalls.Receive(env, from, msg)
	}
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

package layered

import (
	"fmt"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// client is the node of an application. It reads from a majority of a shard's servers, and
// has the coordinator of one site commit, or of another one if that does not answer.
type client struct {
	kit.NearestCalls[*get, *submit]
	cfg store.Config
}

// get is a read that lacks answers.
type get struct{ kit.Get }

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
	switch {
	case g.Ask.Nearest || n > len(c.cfg.Layout.HoldersOf(p.Index))/2:
		c.EndGet(env, g, out)
	case n == 1:
		env.Send(protocol.App, g.First(p.Site))
	}
}

package layered

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// client is the node of an application. It reads from a majority of a shard's servers, and
// has the coordinator of one site commit, or of another one if that does not answer.
type client struct {
	kit.Calls[*get, *submit]
	cfg   store.Config
	near  kit.Near
	first int // the site whose coordinator is asked as long as nobody is known to be near
}

// get is a read that lacks answers.
type get struct{ kit.Get }

// submit is a transaction that lacks its outcome.
type submit struct {
	kit.Submit
	site int // that is asked
}

// newClient returns a client. The error names the field of the configuration that is wrong.
func newClient(cfg store.Config) (*client, error) {
	cfg, err := withDefaults(cfg)
	if err != nil {
		return nil, err
	}
	calls, err := kit.NewCalls[*get, *submit](cfg)
	if err != nil {
		return nil, fmt.Errorf("layered: %w", err)
	}
	return &client{Calls: calls, cfg: cfg, near: kit.NewNear(cfg.Layout)}, nil
}

// Patience implements store.ClientNode: a commit is two decisions of groups, one after the other,
// whose leaders may be anywhere.
func (c *client) Patience() time.Duration { return 6 * c.cfg.RoundTrip }

// ReadPatience implements store.ClientNode.
func (c *client) ReadPatience() time.Duration { return 2 * c.cfg.RoundTrip }

// Start implements protocol.Node.
func (c *client) Start(env *protocol.Env[store.Message], _ []protocol.Record[store.Message]) {
	c.Begin(env)
	c.first = env.Rand.IntN(len(c.cfg.Layout.Sites))
}

// Receive implements protocol.Node.
func (c *client) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	switch m := msg.(type) {
	case store.Get:
		if g := new(get); c.AddGet(env, m, g) {
			c.read(env, g)
		}
	case store.Submit:
		if s := (&submit{site: c.home()}); c.AddSubmit(env, m, s) {
			c.send(env, s)
		}
	case store.Query:
		if s := (&submit{site: c.home()}); c.AddQuery(env, m, s) {
			c.send(env, s)
		}
	case store.Cancel:
		if s := c.Cancel(env, m); s != nil {
			c.EndSubmit(env, s, store.Done{Outcome: s.Unanswered(), Site: store.NoSite})
		}
	case store.ReadReply:
		c.onReadReply(env, from, m)
	case store.Decided:
		c.onDecided(env, from, m)
	case store.Busy:
		if s := c.Submit(m.ID); s != nil { // another site may have room
			c.send(env, s)
		}
	}
}

// Expire implements protocol.Node.
func (c *client) Expire(env *protocol.Env[store.Message], t protocol.Timer) {
	switch t := t.(type) {
	case kit.GetTimer:
		if g := c.Get(t.Number); g != nil {
			c.read(env, g)
		}
	case kit.SubmitTimer:
		if s := c.Submit(t.ID); s != nil {
			c.near.Silent(s.site, c.Patience()) // until a read shows that it answers
			c.send(env, s)
		}
	}
}

// read asks all sites that have not answered.
func (c *client) read(env *protocol.Env[store.Message], g *get) {
	if g.Tired(env.Now) {
		c.EndGet(env, g, store.Got{})
		return
	}
	c.Ask(env, &g.Get)
	env.After(c.ReadPatience(), kit.GetTimer{Number: g.Number})
}

func (c *client) onReadReply(env *protocol.Env[store.Message], from protocol.ID, m store.ReadReply) {
	g, p := c.GetOf(from, m)
	if g == nil {
		return
	}
	c.See(m.Hint)
	if g.Tries == 1 { // else it may be to either
		c.near.Answered(p, env.Now-g.Begun, c.Patience())
	}
	out, n := g.Answer(p.Site, m)
	switch {
	case g.Ask.Nearest || n > len(c.cfg.Layout.SitesOf(p.Index))/2:
		c.EndGet(env, g, out)
	case n == 1:
		env.Send(protocol.App, g.First(p.Site))
	}
}

// home is the nearest site.
func (c *client) home() int {
	if at := c.near.Site(c.cfg.Layout.Unfenced()); at != store.NoSite {
		return at
	}
	return c.first
}

// send asks a coordinator, each time that of the next site.
func (c *client) send(env *protocol.Env[store.Message], s *submit) {
	if s.Tired(env.Now) {
		c.EndSubmit(env, s, store.Done{Outcome: s.Unanswered(), Site: store.NoSite})
		return
	}
	if s.Tries > 0 {
		s.site = (s.site + 1) % len(c.cfg.Layout.Sites)
	}
	s.Tries++
	env.Send(c.cfg.Layout.Coordinator(s.site, s.Txn.ID), store.CommitRequest{Txn: s.Txn, Recover: s.Tries > 1})
	env.After(c.Patience(), kit.SubmitTimer{ID: s.Txn.ID})
}

func (c *client) onDecided(env *protocol.Env[store.Message], from protocol.ID, m store.Decided) {
	p, ok := c.Coordinator(from)
	s := c.Submit(m.ID)
	if !ok || s == nil {
		return
	}
	c.EndSubmit(env, s, store.Done{Outcome: s.Outcome(m), Site: p.Site})
}

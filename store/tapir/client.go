package tapir

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// timestamps is how many later ones a client proposes before it gives a transaction up.
const timestamps = 4

// client is the node of an application. It goes by the first answer to a read, and has the
// coordinator of the nearest site commit, or of another one if that does not answer.
type client struct {
	kit.Calls[*get, *submit]
	cfg  store.Config
	near kit.Near
}

// get is a read that lacks answers.
type get struct{ kit.Get }

// submit is a transaction that lacks its outcome.
type submit struct {
	kit.Submit
	site  int // that is asked
	later int // how many later timestamps it has had
}

// newClient returns a client. The error names the field of the configuration that is wrong.
func newClient(cfg store.Config) (*client, error) {
	cfg, err := withDefaults(cfg)
	if err != nil {
		return nil, err
	}
	calls, err := kit.NewCalls[*get, *submit](cfg)
	if err != nil {
		return nil, fmt.Errorf("tapir: %w", err)
	}
	return &client{Calls: calls, cfg: cfg, near: kit.NewNear(cfg.Layout)}, nil
}

// Patience implements store.ClientNode: a commit is a round trip or two, and timeouts may be on the
// way.
func (c *client) Patience() time.Duration { return 6 * c.cfg.RoundTrip }

// ReadPatience implements store.ClientNode.
func (c *client) ReadPatience() time.Duration { return 2 * c.cfg.RoundTrip }

// Start implements protocol.Node.
func (c *client) Start(env *protocol.Env[store.Message], _ []protocol.Record[store.Message]) {
	c.Begin(env)
}

// Receive implements protocol.Node.
func (c *client) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	switch m := msg.(type) {
	case store.Get:
		if g := new(get); c.AddGet(env, m, g) {
			c.read(env, g)
		}
	case store.Submit:
		if s := (&submit{site: c.home(env)}); c.AddSubmit(env, m, s) {
			c.send(env, s)
		}
	case store.Query:
		c.onQuery(env, m)
	case store.Cancel:
		if s := c.Cancel(env, m); s != nil {
			c.EndSubmit(env, s, store.Done{Outcome: s.Unanswered(), Site: store.NoSite})
		}
	case store.ReadReply:
		c.onReadReply(env, from, m)
	case store.Decided:
		c.onDecided(env, from, m)
	case store.SiteVote:
		c.onSiteVote(env, from, m)
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

// onReadReply goes by the first answer, as the commit says whether that was right. A
// transaction that is tried again goes by those of a majority: the nearest server may have missed
// something.
func (c *client) onReadReply(env *protocol.Env[store.Message], from protocol.ID, m store.ReadReply) {
	g, p := c.GetOf(from, m)
	if g == nil {
		return
	}
	if g.Tries == 1 { // else it may be to either
		c.near.Answered(p, env.Now-g.Begun, c.Patience())
	}
	c.See(m.Hint)
	out, n := g.Answer(p.Site, m)
	switch {
	case g.Ask.Nearest, g.Ask.Priority.IsZero(), n > len(c.cfg.Layout.SitesOf(p.Index))/2:
		c.EndGet(env, g, out)
	case n == 1:
		env.Send(protocol.App, g.First(p.Site))
	}
}

// home returns the nearest site, at random before there is any that is known to be.
func (c *client) home(env *protocol.Env[store.Message]) int {
	if at := c.near.Site(c.cfg.Layout.Unfenced()); at != store.NoSite {
		return at
	}
	return env.Rand.IntN(len(c.cfg.Layout.Sites))
}

// onQuery asks for the outcome of a transaction that may have been sent before: it is not sent as a
// new one, and has its timestamp.
func (c *client) onQuery(env *protocol.Env[store.Message], m store.Query) {
	if s := (&submit{site: c.home(env), later: timestamps}); c.AddQuery(env, m, s) {
		s.Tries = 1
		c.send(env, s)
	}
}

// send asks a coordinator, each time that of the next site. The first one that is asked, and only
// that, may go by a fast quorum.
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

// onSiteVote is told that a transaction is aborted, and that it may do with a later timestamp: it
// is another transaction then, with the same reads and writes.
func (c *client) onSiteVote(env *protocol.Env[store.Message], from protocol.ID, m store.SiteVote) {
	p, ok := c.Coordinator(from)
	s := c.Submit(m.ID)
	if !ok || s == nil || m.Yes {
		return
	}
	c.See(m.Hint)
	if m.Reason != store.StaleWrite || s.later >= timestamps || slices.ContainsFunc(s.Txn.Reads, func(r store.Read) bool {
		return r.Version.Time > c.Seen()
	}) {
		c.EndSubmit(env, s, store.Done{Outcome: store.Outcome{Verdict: store.Aborted, Reason: m.Reason}, Site: p.Site})
		return
	}
	c.Rename(env, s, c.NextID(env.Now))
	s.later++
	s.site = p.Site
	c.send(env, s)
}

package tapir

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// timestamps is how many later ones a client proposes before it gives a transaction up.
const timestamps = 4

// client is the node of an application. It goes by the first answer to a read, and has the
// coordinator of the nearest site commit, or of another one if that does not answer.
type client struct {
	kit.NearestCalls[*get, *submit]
	cfg store.Config
}

// get is a read that lacks answers.
type get struct{ kit.Get }

// submit is a transaction that lacks its outcome.
type submit struct {
	kit.Submit
	later int // how many later timestamps it has had
}

// newClient returns a client. The error names the field of the configuration that is wrong.
func newClient(cfg store.Config) (*client, error) {
	calls, cfg, err := kit.NewNearestCalls("tapir", cfg, func() *get { return new(get) },
		func() *submit { return new(submit) })
	if err != nil {
		return nil, err
	}
	return &client{NearestCalls: calls, cfg: cfg}, nil
}

// Receive implements protocol.Node.
func (c *client) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	switch m := msg.(type) {
	case store.Query:
		c.onQuery(env, m)
	case store.ReadReply:
		c.onReadReply(env, from, m)
	case store.SiteVote:
		c.onSiteVote(env, from, m)
	default:
		c.NearestCalls.Receive(env, from, msg)
	}
}

// onReadReply goes by the first answer, as the commit says whether that was right. A
// transaction that is tried again goes by those of a majority: the nearest server may have missed
// something.
func (c *client) onReadReply(env *protocol.Env[store.Message], from protocol.ID, m store.ReadReply) {
	g, p := c.GetOf(from, m)
	if g == nil {
		return
	}
	out, n := c.Heard(env, p, &g.Get, m)
	switch {
	case g.Ask.Nearest, g.Ask.Priority.IsZero(), n > len(c.cfg.Layout.SitesOf(p.Index))/2:
		c.EndGet(env, g, out)
	case n == 1:
		env.Send(protocol.App, g.First(p.Site))
	}
}

// onQuery asks for the outcome of a transaction that may have been sent before: it is not sent as a
// new one, and has its timestamp.
func (c *client) onQuery(env *protocol.Env[store.Message], m store.Query) {
	if s := (&submit{later: timestamps}); c.AddQuery(env, m, s) {
		s.Site, s.Tries = c.Home(), 1
		c.Send(env, s)
	}
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
	s.Site = p.Site
	c.Send(env, s)
}

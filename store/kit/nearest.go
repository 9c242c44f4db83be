package kit

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// NearestCalls are the books of a client that has the coordinator of one site commit: the nearest
// one, or that of the next site if it does not answer.
type NearestCalls[G interface{ get() *Get }, S interface{ submit() *Submit }] struct {
	Calls[G, S]
	newGet    func() G
	newSubmit func() S

	near  Near
	first int // the site that is home as long as nobody is known to be near

	looking uint64 // the number of the reads by which it looks for a home; 0: it does not
	looked  time.Duration
}

// NewNearestCalls returns the books of a client of a protocol with FixedSites, with the makers of
// what it keeps, and the configuration with its defaults. The error names the protocol and the
// field of the configuration that is wrong.
func NewNearestCalls[G interface{ get() *Get }, S interface{ submit() *Submit }](
	name string, cfg store.Config, newGet func() G, newSubmit func() S,
) (out NearestCalls[G, S], _ store.Config, err error) {
	if cfg, err = FixedSites(name, cfg); err != nil {
		return out, cfg, err
	}
	calls, err := NewCalls[G, S](cfg)
	if err != nil {
		return out, cfg, fmt.Errorf("%s: %w", name, err)
	}
	return NearestCalls[G, S]{Calls: calls, newGet: newGet, newSubmit: newSubmit, near: NewNear(cfg.Layout)}, cfg, nil
}

// Patience implements store.ClientNode: a commit is two decisions of groups, one after the other
// or side by side, whose leaders may be anywhere, and timeouts may be on the way.
func (c *NearestCalls[G, S]) Patience() time.Duration { return 6 * c.cfg.RoundTrip }

// ReadPatience implements store.ClientNode.
func (c *NearestCalls[G, S]) ReadPatience() time.Duration { return 2 * c.cfg.RoundTrip }

// Start implements protocol.Node: it gives the incarnation its ID, and a home until it knows
// better.
func (c *NearestCalls[G, S]) Start(env *protocol.Env[store.Message], _ []protocol.Record[store.Message]) {
	c.Begin(env)
	c.first = env.Rand.IntN(len(c.cfg.Layout.Sites))
}

// Home returns the nearest site, as far as is known.
func (c *NearestCalls[G, S]) Home() int {
	if at := c.near.Site(c.cfg.Layout.Unfenced()); at != store.NoSite {
		return at
	}
	return c.first
}

// Lost reports whether nobody is known to be near: no read was answered yet.
func (c *NearestCalls[G, S]) Lost() bool { return c.near.Site(c.cfg.Layout.Unfenced()) == store.NoSite }

// FindHome asks a server of each site for some key, for a client that is Lost and has nothing to
// read. The nearest site answers first: see Found. A second call forgets the first.
func (c *NearestCalls[G, S]) FindHome(env *protocol.Env[store.Message]) {
	c.n++
	c.looking, c.looked = c.n, env.Now
	asked := map[int]bool{}
	l := c.cfg.Layout
	for i := 0; len(asked) < len(l.Sites) && i < keysPerShard*len(l.Sites[0].Shards); i++ {
		key := store.Key(strconv.Itoa(i))
		shard := l.ShardOf(key)
		for _, site := range l.SitesOf(shard) {
			if !asked[site] {
				asked[site] = true
				env.Send(l.Sites[site].Shards[shard], store.ReadRequest{Ref: c.looking, Key: key})
			}
		}
	}
}

// keysPerShard is how many keys are tried for each shard to find one that is in it.
const keysPerShard = 64

// Found takes an answer to FindHome; false: it is none.
func (c *NearestCalls[G, S]) Found(env *protocol.Env[store.Message], from protocol.ID, m store.ReadReply) bool {
	p, ok := c.shards[from]
	if !ok || c.looking == 0 || m.Ref != c.looking {
		return false
	}
	c.near.Answered(p, env.Now-c.looked, lateAfter*c.cfg.RoundTrip)
	return true
}

// Receive takes what an application asks: a read, a transaction and its outcome, which the
// coordinator of the nearest site has to say. And it takes what ends a call: a decision, word that
// nobody waits any more, and that a site has no room, as another one may have it.
func (c *NearestCalls[G, S]) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	switch m := msg.(type) {
	case store.Get:
		if own := c.newGet(); c.AddGet(env, m, own) {
			c.Read(env, own)
		}
	case store.Submit:
		if own := c.newSubmit(); c.AddSubmit(env, m, own) {
			own.submit().Site = c.Home()
			c.Send(env, own)
		}
	case store.Query:
		if own := c.newSubmit(); c.AddQuery(env, m, own) {
			own.submit().Site = c.Home()
			c.Send(env, own)
		}
	case store.Decided:
		c.decided(env, from, m)
	case store.Cancel:
		c.giveUp(env, m)
	case store.Busy:
		if own, ok := c.submits[m.ID]; ok {
			c.Send(env, own)
		}
	}
}

// Expire implements protocol.Node: what was not answered is asked again. A site that has not
// answered a commit is Silent.
func (c *NearestCalls[G, S]) Expire(env *protocol.Env[store.Message], t protocol.Timer) {
	switch t := t.(type) {
	case GetTimer:
		if own, ok := c.gets[t.Number]; ok {
			c.Read(env, own)
		}
	case SubmitTimer:
		if own, ok := c.submits[t.ID]; ok {
			c.Silent(own.submit().Site, c.Patience())
			c.Send(env, own)
		}
	}
}

// Read asks for a read, and after ReadPatience once more, or gives it up.
func (c *NearestCalls[G, S]) Read(env *protocol.Env[store.Message], own G) {
	g := own.get()
	if g.Tired(env.Now) {
		c.EndGet(env, own, store.Got{})
		return
	}
	c.Ask(env, g)
	env.After(c.ReadPatience(), GetTimer{g.Number})
}

// lateAfter is how many round trips no answer takes that waits for the network alone.
const lateAfter = 6

// Heard takes a site's answer to a read, and learns from it how near the site is. It returns what
// all answers that have come say, and how many they are.
func (c *NearestCalls[G, S]) Heard(
	env *protocol.Env[store.Message], p store.Place, g *Get, m store.ReadReply,
) (out store.Got, n int) {
	c.See(m.Hint)
	if g.Tries == 1 { // else it may be to either
		c.near.Answered(p, env.Now-g.Begun, lateAfter*c.cfg.RoundTrip)
	}
	return g.Answer(p.Site, m)
}

// Send asks the coordinator at the transaction's Site, each time after the first that of the next
// nearest one, and once more after Patience, or gives the transaction up.
func (c *NearestCalls[G, S]) Send(env *protocol.Env[store.Message], own S) {
	s := own.submit()
	if s.Tired(env.Now) {
		c.EndSubmit(env, own, store.Done{Outcome: s.Unanswered(), Site: store.NoSite})
		return
	}
	if s.Tries > 0 {
		s.Site = c.next(s)
	}
	s.Tries++
	c.Repeat(env, s)
}

// Repeat asks the coordinator at the transaction's Site, and has it asked for again after Patience.
func (c *NearestCalls[G, S]) Repeat(env *protocol.Env[store.Message], s *Submit) {
	env.Send(c.cfg.Layout.Coordinator(s.Site, s.Txn.ID), s.Request())
	env.After(c.Patience(), SubmitTimer{s.Txn.ID})
}

// next returns the site whose coordinator is asked after that of the transaction's Site: the
// nearest one of those that were not asked yet or, once all were, since then; where nobody knows
// which is near, the next one in the layout.
func (c *NearestCalls[G, S]) next(s *Submit) int {
	sites := len(c.cfg.Layout.Sites)
	if s.asked = append(s.asked, s.Site); len(s.asked) >= sites {
		s.asked = []int{s.Site}
	}
	var left []int
	for i := range sites {
		if at := (s.Site + i) % sites; !slices.Contains(s.asked, at) {
			left = append(left, at)
		}
	}
	if at := c.near.Site(left); at != store.NoSite {
		return at
	}
	return append(left, s.Site)[0]
}

// Silent learns that a site has not answered for so long: until a read shows that it does, it is
// not near.
func (c *NearestCalls[G, S]) Silent(site int, waited time.Duration) { c.near.Silent(site, waited) }

// decided ends a transaction as a coordinator says.
func (c *NearestCalls[G, S]) decided(env *protocol.Env[store.Message], from protocol.ID, m store.Decided) {
	p, ok := c.Coordinator(from)
	own, known := c.submits[m.ID]
	if ok && known {
		c.EndSubmit(env, own, store.Done{Outcome: own.submit().Outcome(m), Version: m.Version, Current: m.Current,
			Site: p.Site})
	}
}

// giveUp forgets a call. A transaction for which nobody waits any more ends as one without an
// answer.
func (c *NearestCalls[G, S]) giveUp(env *protocol.Env[store.Message], m store.Cancel) {
	own, ok := c.submits[c.submitRefs[m.Ref]]
	last := ok && len(own.submit().refs) == 1
	if c.Cancel(env, m); last {
		c.EndSubmit(env, own, store.Done{Outcome: own.submit().Unanswered(), Site: store.NoSite})
	}
}

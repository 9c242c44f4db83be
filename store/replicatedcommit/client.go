package replicatedcommit

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

const (
	recoverFrom = 2           // from this try on a client asks for a decision without the votes that are missing
	silentFor   = time.Second // a site that says nothing for so long is away, as far as a client can tell
	longAgo     = 1           // since when a site is silent that is known to be away
)

// slower is by how many powers of two a client waits longer after it has asked so often.
func slower(asked int) int { return min(max(asked-kit.Tries, 0), 5) }

// client is the node of an application that reads and commits transactions: [store.Get],
// [store.Submit] and [store.Query] each have one answer.
type client struct {
	kit.Calls[*get, *submit]
	cfg      store.Config
	near     kit.Near
	usual    [][]time.Duration // like near: how long a read takes at present
	silent   []time.Duration   // by site: since when it has not answered commits; 0: it has
	pace     pace              // of commits
	reading  pace              // of reads
	nearGets uint64            // reads from the nearest site
}

// A get is a read that lacks answers.
type get struct {
	kit.Get
	sent []time.Duration // by site: when it was asked; 0: not at all, or again, so that an answer may be to either
	wait time.Duration   // until they are asked again
	// the sites that were asked alone at first: the nearest, or a majority of them; nil: all are
	// asked by now
	few    []int
	done   bool // it is answered: what else comes is measured only
	queued int  // how often sites have said that it is not its turn
}

// A submit is a transaction that lacks votes.
type submit struct {
	kit.Submit
	votes []store.SiteVote // by site; of the zero ID if missing
	bytes int              // of what it reads and writes
	firm  bool             // a site has voted yes before others were asked
	alone int              // the site that is asked before others; store.NoSite: all are asked
	asked sites            // who has been asked, ever
	hold  int              // the site whose vote may wait when it is asked first; store.NoSite: none
	sent  int              // how often it was sent before; Tries counts anew when the others are asked
}

// newClient returns a client. The error names the field of the configuration that is wrong.
func newClient(cfg store.Config) (*client, error) {
	cfg, err := withDefaults(cfg)
	if err != nil {
		return nil, err
	}
	calls, err := kit.NewCalls[*get, *submit](cfg)
	if err != nil {
		return nil, fmt.Errorf("replicatedcommit: %w", err)
	}
	return &client{Calls: calls, cfg: cfg, near: kit.NewNear(cfg.Layout), usual: kit.NewNear(cfg.Layout),
		silent: make([]time.Duration, len(cfg.Layout.Sites))}, nil
}

// Start implements protocol.Node.
func (c *client) Start(env *protocol.Env[message], _ []protocol.Record[message]) {
	c.Begin(env)
}

// Receive implements protocol.Node.
func (c *client) Receive(env *protocol.Env[message], from protocol.ID, msg message) {
	if from == protocol.App {
		switch m := msg.(type) {
		case store.Get:
			c.onGet(env, m)
		case store.Submit:
			c.onSubmit(env, m)
		case store.Query:
			c.onQuery(env, m)
		case store.Cancel:
			if s := c.Cancel(env, m); s != nil {
				c.end(env, s, s.Unanswered(), store.NoSite)
			}
		}
		return
	}
	switch m := msg.(type) {
	case store.ReadReply:
		c.onReadReply(env, from, m)
	case store.SiteVote:
		c.onSiteVote(env, from, m)
	case store.Decided:
		c.onDecided(env, from, m)
	}
}

// Expire implements protocol.Node.
func (c *client) Expire(env *protocol.Env[message], t protocol.Timer) {
	switch t := t.(type) {
	case kit.GetTimer:
		switch g := c.Get(t.Number); {
		case g == nil:
		case g.done:
			c.ForgetGet(env, g)
		default:
			c.sendGet(env, g)
		}
	case kit.SubmitTimer:
		if s := c.Submit(t.ID); s != nil {
			c.sendCommit(env, s)
		}
	}
}

func (c *client) onGet(env *protocol.Env[message], m store.Get) {
	if g := (&get{sent: make([]time.Duration, len(c.cfg.Layout.Sites))}); c.AddGet(env, m, g) {
		c.sendGet(env, g)
	}
}

// sendGet asks for a read, as few sites as will do: the nearest one, or a majority of those that
// answer soonest. A store is loaded by reads above all, and what the others say comes too late to
// count. They are asked when those few take longer than they do at present, and from the start when
// a transaction is tried again: its reads also reserve keys, which helps at every site.
//
// What the few have not answered by then counts as the time that they take, so that a site which
// has become slow, or is gone, is not among the nearest for long.
func (c *client) sendGet(env *protocol.Env[message], g *get) {
	if g.Tired(env.Now) {
		c.EndGet(env, g, store.Got{})
		return
	}
	shard := c.cfg.Layout.ShardOf(g.Ask.Key)
	held := c.cfg.RoundTrip // a read of a locked key may be
	if !g.Ask.Priority.IsZero() {
		held *= queueFor
	}
	g.wait = held + c.ReadPatience() - c.cfg.RoundTrip
	first := g.few
	switch {
	case g.few != nil: // some take longer than that, and others may be nearer
		for _, i := range g.few {
			if waited := env.Now - g.sent[i]; g.Answers[i] == nil {
				c.near.Waited(i, shard, waited)
				c.usual[i][shard] = max(c.usual[i][shard], waited)
			}
		}
		g.few = nil
	case g.Tries == 0 && g.Ask.Nearest:
		if g.few = c.nearest(shard, c.near, 1); g.few != nil {
			g.wait = c.near[g.few[0]][shard] + held + c.cfg.RoundTrip/2
		}
	case g.Tries == 0 && g.Ask.Priority.IsZero():
		if g.few = c.nearest(shard, c.usual, c.cfg.Layout.Majority()); g.few != nil {
			g.wait = 2 * c.usual[g.few[len(g.few)-1]][shard]
		}
	}
	g.Tries++
	g.wait <<= slower(g.Tries)
	for _, i := range c.cfg.Layout.Unfenced() {
		if g.Answers[i] != nil || g.few != nil && !slices.Contains(g.few, i) || slices.Contains(first, i) {
			continue
		}
		if g.sent[i] = max(env.Now, 1); g.Tries > 1 && first == nil {
			g.sent[i] = 0 // nobody could say which request the answer is to
		}
		env.Send(c.cfg.Layout.Sites[i].Shards[shard],
			store.ReadRequest{Ref: g.Number, Key: g.Ask.Key, Priority: g.Ask.Priority})
	}
	env.After(g.wait, kit.GetTimer{Number: g.Number})
}

// maxQueued is how often, for each site, a read takes it that it is not its turn. After that it
// goes by what it is told: its transaction is refused, or it is not.
const maxQueued = 16

// onReadReply counts a site's answer to a read. The newest value of a majority is the read's: a
// version that was committed is at a majority, so one of these has it.
func (c *client) onReadReply(env *protocol.Env[message], from protocol.ID, m store.ReadReply) {
	g, p := c.GetOf(from, m)
	if g == nil {
		return
	}
	if sent := g.sent[p.Site]; sent != 0 && g.Ask.Priority.IsZero() { // others may have waited for their turn
		c.measured(p, env.Now-sent)
		if g.queued == 0 {
			c.reading.saw(env.Now, env.Now-sent, c.cfg.RoundTrip)
		}
	}
	c.See(max(m.Hint, m.Value.Version.Time))
	if m.Queued && !g.done && g.queued < maxQueued*len(g.Answers) {
		g.queued++
		env.Send(from, store.ReadRequest{Ref: m.Ref, Key: g.Ask.Key, Priority: g.Ask.Priority})
		env.After(g.wait, kit.GetTimer{Number: m.Ref}) // they answer: no reason to give up
		return
	}
	out, n := g.Answer(p.Site, m)
	switch {
	case g.done:
		return
	case g.Ask.Nearest:
	case n >= c.cfg.Layout.Majority():
	case n == 1:
		env.Send(protocol.App, g.First(p.Site))
		return
	default:
		return
	}
	out.Settled = !g.Ask.Nearest && !out.Pending
	if g.few == nil && g.Tries == 1 && (g.Ask.Nearest || g.Ask.Priority.IsZero()) {
		g.done = true // the others' distances are learnt, until the timer ends it
		c.AnswerGet(env, g, out)
	} else {
		c.EndGet(env, g, out)
	}
}

func (c *client) onSubmit(env *protocol.Env[message], m store.Submit) {
	s := &submit{hold: store.NoSite}
	if m.Hold {
		s.hold = c.near.Site(c.cfg.Layout.Unfenced())
	}
	for _, i := range m.Absent {
		c.silent[i] = longAgo
	}
	if c.AddSubmit(env, m, s) {
		c.begin(env, s)
	}
}

// onQuery asks for the outcome. Nobody votes for the transaction any more who has not.
func (c *client) onQuery(env *protocol.Env[message], m store.Query) {
	if s := (&submit{hold: store.NoSite, sent: recoverFrom}); c.AddQuery(env, m, s) {
		c.begin(env, s)
	}
}

// begin sends a transaction for the first time. Fenced sites have voted no, as they will not vote
// any more, unless the transaction was sent before: their votes of that time may have decided it.
func (c *client) begin(env *protocol.Env[message], s *submit) {
	s.bytes = store.ContentBytes(s.Txn.Reads, s.Txn.Writes)
	c.pace.bytes += s.bytes
	s.votes = make([]store.SiteVote, len(c.cfg.Layout.Sites))
	for i, site := range c.cfg.Layout.Sites {
		if site.Fenced && s.sent == 0 {
			s.votes[i] = store.SiteVote{ID: s.Txn.ID, Reason: store.Fenced}
		}
	}
	c.sendCommit(env, s)
}

// sendCommit asks for votes, again and again until there is a decision. While a site is away it
// asks one site before the other, as two sites that vote differently would block, and the keys with
// them (DESIGN.md, "Blocking must not spread"). Who only reads has no lock to leave behind, and
// asks all.
func (c *client) sendCommit(env *protocol.Env[message], s *submit) {
	if s.Tired(env.Now) || s.Tries >= kit.Tries && c.stuck(env, s) {
		c.giveUp(env, s)
		return
	}
	s.alone = store.NoSite
	if s.sent == 0 && !s.firm && !s.asked.all(c.cfg.Layout) && !s.Txn.ReadOnly() {
		s.alone = c.firstHealthy(env)
	}
	if s.alone != store.NoSite {
		s.hold = store.NoSite // each of the sites that are left is needed, and has the other one wait
	}
	c.askVotes(env, s)
	s.Tries++
	wait := c.Patience()
	if c.firstHealthy(env) != store.NoSite {
		// what takes long then is a site that is away, and asking again finds that out
		wait = c.silence()
	}
	env.After(wait<<slower(s.Tries), kit.SubmitTimer{ID: s.Txn.ID})
}

// askVotes asks the sites whose votes are missing and, when it is repeated, all: they may know the
// decision. While one site is asked before others, those that are away are asked with it when that
// is repeated: they may be back, and it gone.
func (c *client) askVotes(env *protocol.Env[message], s *submit) {
	away := c.away(env)
	for _, i := range c.cfg.Layout.Unfenced() {
		switch {
		case s.alone != store.NoSite && s.alone != i && (s.Tries == 0 || !slices.Contains(away, i)):
			continue
		case !s.votes[i].ID.IsZero() && (s.Tries == 0 || s.Txn.ReadOnly()):
			continue
		}
		if c.silent[i] == 0 {
			c.silent[i] = max(env.Now, 1)
		}
		s.asked |= 1 << i
		env.Send(c.cfg.Layout.Coordinator(i, s.Txn.ID), store.CommitRequest{
			Txn: s.Txn, Recover: s.Tries+s.sent >= recoverFrom, Firm: s.firm, Hold: i == s.hold && s.Tries+s.sent == 0,
		})
	}
}

// onSiteVote counts a site's vote. A majority of yes commits, and the client may go on: the sites
// find out the same from each other's votes, and each vote is on disk. The first vote of a site
// counts, since a site votes once.
//
// A site that is asked before others decides more by itself. Its yes makes the request to the
// others firm. Its no is the end, but only if nobody else has ever been asked about this
// transaction: somebody else's yes could still commit it.
func (c *client) onSiteVote(env *protocol.Env[message], from protocol.ID, m store.SiteVote) {
	p, ok := c.Coordinator(from)
	s := c.Submit(m.ID)
	c.See(m.Hint)
	if ok {
		c.silent[p.Site] = 0
	}
	if !ok || s == nil || !s.votes[p.Site].ID.IsZero() {
		return
	}
	if s.sent == 0 && !s.firm {
		c.pace.saw(env.Now, env.Now-s.Begun, c.cfg.RoundTrip)
	}
	s.votes[p.Site] = m
	yes, no, o := s.count()
	switch {
	case yes >= c.cfg.Layout.Majority():
		c.end(env, s, store.Outcome{Verdict: store.Committed}, p.Site)
	case s.alone == p.Site && m.Yes:
		s.alone, s.firm = store.NoSite, true
		s.Tries = 0 // the others are asked for the first time
		c.askVotes(env, s)
		s.Tries++
	case s.alone == p.Site && s.asked == 1<<p.Site:
		o.Verdict = store.Aborted // nobody else has been asked, and nobody will be
		// What some of the site's shards have locked is free when another site has said no as well.
		env.Send(c.cfg.Layout.Coordinator(p.Site, s.Txn.ID), store.CommitRequest{Txn: s.Txn, Recover: true})
		c.end(env, s, o, p.Site)
	case len(s.votes)-no < c.cfg.Layout.Majority():
		o.Verdict = store.Aborted
		if o.Reason == store.Old && !s.Txn.ReadOnly() && s.Tries+s.sent > 1 {
			o.Verdict = store.Unknown // it may have been voted for before it was forgotten
		}
		c.end(env, s, o, p.Site)
	case s.alone == p.Site: // one that was away may have said yes, so this site finds out
		env.Send(c.cfg.Layout.Coordinator(p.Site, s.Txn.ID), store.CommitRequest{Txn: s.Txn, Recover: true})
	}
}

// count returns how many sites said yes and no, and the reason of an abort.
func (s *submit) count() (yes, no int, o store.Outcome) {
	for _, v := range s.votes {
		switch {
		case v.ID.IsZero():
		case v.Yes:
			yes++
		default:
			no++
			if o.Reason == store.NoReason || v.Reason == store.Old {
				o.Reason = v.Reason
			}
		}
	}
	return yes, no, o
}

// onDecided takes the word of a coordinator that knows the decision. It needs no other votes: the
// coordinator has counted them.
func (c *client) onDecided(env *protocol.Env[message], from protocol.ID, m store.Decided) {
	p, ok := c.Coordinator(from)
	s := c.Submit(m.ID)
	if ok {
		c.silent[p.Site] = 0
	}
	if !ok || s == nil {
		return
	}
	c.end(env, s, store.Outcome{Verdict: m.Verdict, Reason: m.Reason}, p.Site)
}

// split reports whether sites have voted differently, so that those that are missing decide.
func (c *client) split(s *submit) bool {
	yes, no, _ := s.count()
	return yes > 0 && no > 0 && yes+no >= c.cfg.Layout.Majority()
}

// stuck reports whether the votes are split and the sites that are missing have been silent for
// long: to ask for longer gains nothing before they are back. One that is only slow is waited for.
func (c *client) stuck(env *protocol.Env[message], s *submit) bool {
	for i, v := range s.votes {
		if c.cfg.Layout.Sites[i].Fenced {
			continue // nobody waits for it
		}
		if since := c.silent[i]; v.ID.IsZero() && (since == 0 || env.Now-since < silentFor) {
			return false
		}
	}
	return c.split(s)
}

// giveUp says what is known of a transaction whose decision does not come.
func (c *client) giveUp(env *protocol.Env[message], s *submit) {
	_, _, refused := s.count()
	o := store.Outcome{Verdict: store.Unknown}
	if c.split(s) {
		o.Verdict = store.Blocked
		for i, v := range s.votes {
			if v.ID.IsZero() && !c.cfg.Layout.Sites[i].Fenced {
				o.Sites = append(o.Sites, c.cfg.Layout.Sites[i].Name)
			}
		}
	}
	if len(o.Sites) == 0 {
		o.Verdict = store.Unknown
	}
	if s.Txn.ReadOnly() {
		o = store.Outcome{Verdict: store.Aborted, Reason: refused.Reason} // it has no effect that could be
	}
	c.end(env, s, o, store.NoSite)
}

// end tells how a transaction ended. Of an aborted one it passes on what the votes said its reads
// should have been: the next attempt need not read those keys again.
func (c *client) end(env *protocol.Env[message], s *submit, o store.Outcome, site int) {
	c.pace.bytes -= s.bytes
	done := store.Done{Outcome: o, Site: site}
	if o.Verdict == store.Aborted {
		for _, v := range s.votes {
			done.Current = append(done.Current, v.Current...)
		}
	}
	c.EndSubmit(env, s, done)
}

// probeEvery is how many reads from the nearest sites there are to one that asks all, to see who is
// the nearest by now.
const probeEvery = 128

// nearest returns so many sites whose servers of a shard answer soonest, the first one first, by
// what is known of how long they take; nil if all are to be asked. What more sites than a majority
// say about a read comes too late to count, and costs them as much as the rest.
func (c *client) nearest(shard int, took [][]time.Duration, n int) []int {
	c.nearGets++
	if c.nearGets%probeEvery == 0 {
		return nil
	}
	known := slices.DeleteFunc(c.cfg.Layout.Unfenced(), func(i int) bool { return took[i][shard] == 0 })
	slices.SortStableFunc(known, func(a, b int) int { return cmp.Compare(took[a][shard], took[b][shard]) })
	if len(known) < n {
		return nil
	}
	return known[:n]
}

// measured learns how long a read took.
func (c *client) measured(p store.Place, took time.Duration) {
	took = max(took, 1)
	if usual := &c.usual[p.Site][p.Index]; *usual == 0 {
		*usual = took
	} else {
		*usual = max(*usual+(took-*usual)/8, 1)
	}
	c.near.Answered(p, took, 4*c.cfg.RoundTrip)
}

package replicatedcommit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// Timers of a client.
type (
	getTimer    struct{ n uint64 }
	submitTimer struct{ id store.TxnID }
)

// A client asks so often, and for so long, before it gives an answer that is none. From recoverFrom
// on it asks for a decision without the votes that are missing.
const (
	tries       = 6
	askFor      = 3 * time.Second // a machine may be busy, however near it is
	recoverFrom = 2
	silentFor   = time.Second // a site that says nothing for so long is away, as far as a client can tell
	longAgo     = 1           // since when a site is silent that is known to be away
)

// slower is by how many powers of two a client waits longer after it has asked so often.
func slower(asked int) int { return min(max(asked-tries, 0), 5) }

// client is the node of an application that reads and commits transactions: [Get], [Submit] and
// [Query] each have one answer.
type client struct {
	cfg          store.Config
	id           store.ClientID // of this incarnation
	shards       map[protocol.ID]store.Place
	coordinators map[protocol.ID]store.Place
	last         uint64 // Invariant: the next version's time is above it
	n            uint64 // of reads
	gets         map[uint64]*get
	submits      map[store.TxnID]*submit
	// by site and shard: how long it takes to answer a read when nothing is in the way; 0 is not
	// known
	near       [][]time.Duration
	usual      [][]time.Duration      // likewise: how long it takes at present
	silent     []time.Duration        // by site: since when it has not answered commits; 0: it has
	pace       pace                   // of commits
	reading    pace                   // of reads
	nearGets   uint64                 // reads from the nearest site
	getRefs    map[uint64]uint64      // of gets, by the application's numbers
	submitRefs map[uint64]store.TxnID // of submits, likewise
}

// A get is a read that lacks answers.
type get struct {
	ask     store.Get
	answers []*store.ReadReply // by site
	first   *store.ReadReply
	tries   int
	begun   time.Duration
	sent    []time.Duration // by site: when it was asked; 0: not at all, or again, so that an answer may be to either
	wait    time.Duration   // until they are asked again
	// the sites that were asked alone at first: the nearest, or a majority of them; nil: all are
	// asked by now
	few    []int
	done   bool // it is answered: what else comes is measured only
	queued int  // how often sites have said that it is not its turn
}

// A submit is a transaction that lacks votes.
type submit struct {
	refs  []uint64 // who wait: the first one, and those who asked for the outcome meanwhile
	txn   store.Txn
	votes []store.SiteVote // by site; of the zero ID if missing
	bytes int              // of what it reads and writes
	begun time.Duration
	firm  bool  // a site has voted yes before others were asked
	alone int   // the site that is asked before others; noSite: all are asked
	asked sites // who has been asked, ever
	hold  int   // the site whose vote may wait when it is asked first; noSite: none
	tries int
	sent  int // how often in all
}

// newClient returns a client. The error names the field of the configuration that is wrong.
func newClient(cfg store.Config) (*client, error) {
	cfg, err := withDefaults(cfg)
	if err != nil {
		return nil, err
	}
	c := &client{
		cfg: cfg, gets: map[uint64]*get{}, submits: map[store.TxnID]*submit{}, getRefs: map[uint64]uint64{},
		submitRefs: map[uint64]store.TxnID{},
	}
	c.silent = make([]time.Duration, len(cfg.Layout.Sites))
	for range cfg.Layout.Sites {
		c.near = append(c.near, make([]time.Duration, len(cfg.Layout.Sites[0].Shards)))
		c.usual = append(c.usual, make([]time.Duration, len(cfg.Layout.Sites[0].Shards)))
	}
	c.shards, c.coordinators = cfg.Layout.Places()
	if _, ok := c.shards[cfg.ID]; ok {
		return nil, fmt.Errorf("replicatedcommit: Config.ID: %d is a shard of the layout", cfg.ID)
	}
	if _, ok := c.coordinators[cfg.ID]; ok {
		return nil, fmt.Errorf("replicatedcommit: Config.ID: %d is a coordinator of the layout", cfg.ID)
	}
	return c, nil
}

// Start implements protocol.Node.
func (c *client) Start(env *protocol.Env[message], _ []protocol.Record[message]) {
	c.id = store.ClientID(env.Rand.Uint64())
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
			c.onCancel(env, m)
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
	case getTimer:
		switch g := c.gets[t.n]; {
		case g == nil:
		case g.done:
			delete(c.gets, t.n)
		default:
			c.sendGet(env, t.n, g)
		}
	case submitTimer:
		if s := c.submits[t.id]; s != nil {
			c.sendCommit(env, s)
		}
	}
}

func (c *client) onGet(env *protocol.Env[message], m store.Get) {
	if len(c.gets) >= c.cfg.MaxWaiting || len(m.Key) > store.MaxKeyBytes {
		env.Send(protocol.App, store.Got{Ref: m.Ref, Full: len(c.gets) >= c.cfg.MaxWaiting})
		return
	}
	c.n++
	g := &get{ask: m, answers: make([]*store.ReadReply, len(c.cfg.Layout.Sites)),
		sent: make([]time.Duration, len(c.cfg.Layout.Sites)), begun: env.Now}
	c.gets[c.n], c.getRefs[m.Ref] = g, c.n
	c.sendGet(env, c.n, g)
}

func (c *client) sendGet(env *protocol.Env[message], n uint64, g *get) {
	if g.tries >= tries && env.Now-g.begun >= askFor {
		c.endGet(env, n)
		env.Send(protocol.App, store.Got{Ref: g.ask.Ref})
		return
	}
	shard := c.cfg.Layout.ShardOf(g.ask.Key)
	held := c.cfg.RoundTrip // a read of a locked key may be
	if !g.ask.Priority.IsZero() {
		held *= queueFor
	}
	g.wait = held + c.ReadPatience() - c.cfg.RoundTrip
	first := g.few
	switch {
	case g.few != nil: // some take longer than that, and others may be nearer
		for _, i := range g.few {
			if waited := env.Now - g.sent[i]; g.answers[i] == nil {
				c.near[i][shard], c.usual[i][shard] = max(c.near[i][shard], waited), max(c.usual[i][shard], waited)
			}
		}
		g.few = nil
	case g.tries == 0 && g.ask.Nearest:
		if g.few = c.nearest(shard, c.near, 1); g.few != nil {
			g.wait = c.near[g.few[0]][shard] + held + c.cfg.RoundTrip/2
		}
	case g.tries == 0 && g.ask.Priority.IsZero():
		if g.few = c.nearest(shard, c.usual, c.cfg.Layout.Majority()); g.few != nil {
			g.wait = 2 * c.usual[g.few[len(g.few)-1]][shard]
		}
	}
	g.tries++
	g.wait <<= slower(g.tries)
	for _, i := range c.cfg.Layout.Unfenced() {
		if g.answers[i] != nil || g.few != nil && !slices.Contains(g.few, i) || slices.Contains(first, i) {
			continue
		}
		if g.sent[i] = max(env.Now, 1); g.tries > 1 && first == nil {
			g.sent[i] = 0
		}
		env.Send(c.cfg.Layout.Sites[i].Shards[shard], store.ReadRequest{Ref: n, Key: g.ask.Key, Priority: g.ask.Priority})
	}
	env.After(g.wait, getTimer{n})
}

// maxQueued is how often, for each site, a read takes it that it is not its turn. After that it
// goes by what it is told: its transaction is refused, or it is not.
const maxQueued = 16

func (c *client) onReadReply(env *protocol.Env[message], from protocol.ID, m store.ReadReply) {
	p, ok := c.shards[from]
	g := c.gets[m.Ref]
	if !ok || g == nil || p.Index != c.cfg.Layout.ShardOf(g.ask.Key) || g.answers[p.Site] != nil {
		return
	}
	if sent := g.sent[p.Site]; sent != 0 && g.ask.Priority.IsZero() { // others may have waited for their turn
		c.measured(p, env.Now-sent)
		if g.queued == 0 {
			c.reading.saw(env.Now, env.Now-sent, c.cfg.RoundTrip)
		}
	}
	c.see(max(m.Hint, m.Value.Version.Time))
	if m.Queued && !g.done && g.queued < maxQueued*len(g.answers) {
		g.queued++
		env.Send(from, store.ReadRequest{Ref: m.Ref, Key: g.ask.Key, Priority: g.ask.Priority})
		env.After(g.wait, getTimer{m.Ref}) // they answer: no reason to give up
		return
	}
	g.answers[p.Site] = &m
	if g.done {
		return
	}
	if g.first == nil {
		g.first = &m
	}
	out, n := store.Got{Ref: g.ask.Ref, OK: true, Site: p.Site}, 0
	for _, a := range g.answers {
		if a == nil {
			continue
		}
		n++
		out.Pending = out.Pending || a.Pending
		if n == 1 || a.Value.Version.After(out.Value.Version) {
			out.Value = a.Value
		}
	}
	switch {
	case g.ask.Nearest:
	case n >= c.cfg.Layout.Majority():
	case n == 1:
		env.Send(protocol.App, store.First{Ref: g.ask.Ref, Value: m.Value, Pending: m.Pending, Site: p.Site})
		return
	default:
		return
	}
	out.Settled = !g.ask.Nearest && !out.Pending
	if g.few == nil && g.tries == 1 && (g.ask.Nearest || g.ask.Priority.IsZero()) {
		g.done = true // the others' distances are learnt, until the timer ends it
		delete(c.getRefs, g.ask.Ref)
	} else {
		c.endGet(env, m.Ref)
	}
	env.Send(protocol.App, out)
}

// maxTime bounds versions that are believed, so that the next one is always above.
const maxTime = 1 << 63

// see keeps the next version above one that somebody has.
func (c *client) see(time uint64) {
	if time < maxTime {
		c.last = max(c.last, time)
	}
}

func (c *client) onSubmit(env *protocol.Env[message], m store.Submit) {
	for _, r := range m.Reads {
		c.see(r.Version.Time)
	}
	c.last = max(c.last+1, uint64(max(env.Now, 0)))
	t := store.Txn{ID: store.TxnID{Time: c.last, Client: c.id}, Priority: m.Priority, Reads: m.Reads, Writes: m.Writes}
	if t.Priority.IsZero() {
		t.Priority = store.Priority{Began: t.ID.Time, Client: c.id}
	}
	s := &submit{refs: []uint64{m.Ref}, txn: t, hold: noSite}
	if m.Hold {
		s.hold = c.home()
	}
	for _, i := range m.Absent {
		c.silent[i] = longAgo
	}
	c.begin(env, s)
}

func (c *client) onQuery(env *protocol.Env[message], m store.Query) {
	if s := c.submits[m.Txn.ID]; s != nil { // it is on its way, or was asked about
		s.refs = append(s.refs, m.Ref)
		c.submitRefs[m.Ref] = m.Txn.ID
		return
	}
	// nobody votes for it any more who has not
	c.begin(env, &submit{refs: []uint64{m.Ref}, txn: m.Txn, hold: noSite, sent: recoverFrom})
}

func (c *client) begin(env *protocol.Env[message], s *submit) {
	o := store.Outcome{Verdict: store.Rejected}
	if s.sent > 0 {
		o.Verdict = store.Unknown // it may have been sent before, whatever is wrong with the question
	}
	err := s.txn.Validate()
	switch {
	case err != nil:
		o.Detail = err.Error()
	case len(c.submits) >= c.cfg.MaxWaiting:
		o.Detail = fmt.Sprintf("%d transactions are on their way", len(c.submits))
	case len(s.txn.Reads)+len(s.txn.Writes) == 0:
		o.Verdict = store.Committed
	default:
		s.bytes, s.begun = store.ContentBytes(s.txn.Reads, s.txn.Writes), env.Now
		c.pace.bytes += s.bytes
		s.votes = make([]store.SiteVote, len(c.cfg.Layout.Sites))
		for i, site := range c.cfg.Layout.Sites {
			if site.Fenced && s.sent == 0 { // what was sent before may be decided by a vote of its
				s.votes[i] = store.SiteVote{ID: s.txn.ID, Reason: store.Fenced}
			}
		}
		c.submits[s.txn.ID], c.submitRefs[s.refs[0]] = s, s.txn.ID
		c.sendCommit(env, s)
		return
	}
	env.Send(protocol.App, store.Done{Ref: s.refs[0], Txn: s.txn, Outcome: o, Site: noSite})
}

func (c *client) sendCommit(env *protocol.Env[message], s *submit) {
	if s.tries >= tries && (env.Now-s.begun >= askFor || c.stuck(env, s)) {
		c.giveUp(env, s)
		return
	}
	s.alone = noSite
	if s.sent == 0 && !s.firm && !s.asked.all(c.cfg.Layout) && !s.txn.ReadOnly() {
		s.alone = c.firstHealthy(env)
	}
	if s.alone != noSite {
		s.hold = noSite // each of the sites that are left is needed, and has the other one wait
	}
	c.askVotes(env, s)
	s.tries++
	wait := c.Patience()
	if c.firstHealthy(env) != noSite { // what takes long then is a site that is away, and asking again finds that out
		wait = c.silence()
	}
	env.After(wait<<slower(s.tries), submitTimer{s.txn.ID})
}

// askVotes asks the sites whose votes are missing and, when it is repeated, all: they may know the
// decision. While one site is asked before others, those that are away are asked with it when that
// is repeated: they may be back, and it gone.
func (c *client) askVotes(env *protocol.Env[message], s *submit) {
	away := c.away(env)
	for _, i := range c.cfg.Layout.Unfenced() {
		switch {
		case s.alone != noSite && s.alone != i && (s.tries == 0 || !slices.Contains(away, i)):
			continue
		case !s.votes[i].ID.IsZero() && (s.tries == 0 || s.txn.ReadOnly()):
			continue
		}
		if c.silent[i] == 0 {
			c.silent[i] = max(env.Now, 1)
		}
		s.asked |= 1 << i
		env.Send(c.cfg.Layout.Coordinator(i, s.txn.ID), store.CommitRequest{
			Txn: s.txn, Recover: s.tries+s.sent >= recoverFrom, Firm: s.firm, Hold: i == s.hold && s.tries+s.sent == 0,
		})
	}
}

func (c *client) onSiteVote(env *protocol.Env[message], from protocol.ID, m store.SiteVote) {
	p, ok := c.coordinators[from]
	s := c.submits[m.ID]
	c.see(m.Hint)
	if ok {
		c.silent[p.Site] = 0
	}
	if !ok || s == nil || !s.votes[p.Site].ID.IsZero() {
		return
	}
	if s.sent == 0 && !s.firm {
		c.pace.saw(env.Now, env.Now-s.begun, c.cfg.RoundTrip)
	}
	s.votes[p.Site] = m
	yes, no, o := s.count()
	switch {
	case yes >= c.cfg.Layout.Majority():
		c.end(env, s, store.Outcome{Verdict: store.Committed}, p.Site)
	case s.alone == p.Site && m.Yes:
		s.alone, s.firm = noSite, true
		s.tries = 0 // the others are asked for the first time
		c.askVotes(env, s)
		s.tries++
	case s.alone == p.Site && s.asked == 1<<p.Site:
		o.Verdict = store.Aborted // nobody else has been asked, and nobody will be
		// What some of the site's shards have locked is free when another site has said no as well.
		env.Send(c.cfg.Layout.Coordinator(p.Site, s.txn.ID), store.CommitRequest{Txn: s.txn, Recover: true})
		c.end(env, s, o, p.Site)
	case len(s.votes)-no < c.cfg.Layout.Majority():
		o.Verdict = store.Aborted
		if o.Reason == store.Old && !s.txn.ReadOnly() && s.tries+s.sent > 1 {
			o.Verdict = store.Unknown // it may have been voted for before it was forgotten
		}
		c.end(env, s, o, p.Site)
	case s.alone == p.Site: // one that was away may have said yes, so this site finds out
		env.Send(c.cfg.Layout.Coordinator(p.Site, s.txn.ID), store.CommitRequest{Txn: s.txn, Recover: true})
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

func (c *client) onDecided(env *protocol.Env[message], from protocol.ID, m store.Decided) {
	p, ok := c.coordinators[from]
	s := c.submits[m.ID]
	if ok {
		c.silent[p.Site] = 0
	}
	if !ok || s == nil {
		return
	}
	c.end(env, s, store.Outcome{Verdict: m.Verdict, Reason: m.Reason}, p.Site)
}

// split tells whether sites have voted differently, so that those that are missing decide.
func (c *client) split(s *submit) bool {
	yes, no, _ := s.count()
	return yes > 0 && no > 0 && yes+no >= c.cfg.Layout.Majority()
}

// stuck tells whether the votes are split and the sites that are missing have been silent for long:
// to ask for longer gains nothing before they are back. One that is only slow is waited for.
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
	if s.txn.ReadOnly() {
		o = store.Outcome{Verdict: store.Aborted, Reason: refused.Reason} // it has no effect that could be
	}
	c.end(env, s, o, noSite)
}

// noSite is Done.Site where no site's word was the last.
const noSite = -1

func (c *client) end(env *protocol.Env[message], s *submit, o store.Outcome, site int) {
	delete(c.submits, s.txn.ID)
	c.pace.bytes -= s.bytes
	env.Stop(submitTimer{s.txn.ID})
	done := store.Done{Txn: s.txn, Outcome: o, Site: site}
	if o.Verdict == store.Aborted {
		for _, v := range s.votes {
			done.Current = append(done.Current, v.Current...)
		}
	}
	for _, ref := range s.refs {
		delete(c.submitRefs, ref)
		done.Ref = ref
		env.Send(protocol.App, done)
	}
}

// onCancel forgets a call. Others that wait for the same transaction go on waiting.
func (c *client) onCancel(env *protocol.Env[message], m store.Cancel) {
	if n, ok := c.getRefs[m.Ref]; ok {
		c.endGet(env, n)
	}
	s := c.submits[c.submitRefs[m.Ref]]
	if s == nil {
		return
	}
	o := store.Outcome{Verdict: store.Unknown}
	if s.txn.ReadOnly() {
		o.Verdict = store.Aborted
	}
	if len(s.refs) == 1 {
		c.end(env, s, o, noSite)
		return
	}
	s.refs = slices.DeleteFunc(s.refs, func(ref uint64) bool { return ref == m.Ref })
	delete(c.submitRefs, m.Ref)
	env.Send(protocol.App, store.Done{Ref: m.Ref, Txn: s.txn, Outcome: o, Site: noSite})
}

// endGet forgets a read.
func (c *client) endGet(env *protocol.Env[message], n uint64) {
	delete(c.getRefs, c.gets[n].ask.Ref)
	delete(c.gets, n)
	env.Stop(getTimer{n})
}

// Check implements protocol.Checked.
func (c *client) Check() error {
	for _, id := range slices.SortedFunc(maps.Keys(c.submits), func(a, b store.TxnID) int {
		return cmp.Compare(a.Time, b.Time)
	}) {
		if s := c.submits[id]; s.tries < 1 || s.txn.ID != id {
			return fmt.Errorf("replicatedcommit: client %d: transaction %v, kept as %v, was tried %d times", c.cfg.ID, s.txn.ID,
				id, s.tries)
		}
	}
	if len(c.gets) < len(c.getRefs) || len(c.submits) > len(c.submitRefs) {
		return fmt.Errorf("replicatedcommit: client %d: %d reads and %d transactions wait, numbered as %d and %d", c.cfg.ID,
			len(c.gets), len(c.submits), len(c.getRefs), len(c.submitRefs))
	}
	return nil
}

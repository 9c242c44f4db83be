package tapir

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A client asks so often, and for so long, before it gives an answer that is none. It proposes so
// many later timestamps before it gives a transaction up.
const (
	tries      = 6
	askFor     = 3 * time.Second
	timestamps = 4
)

// noSite is Done.Site where nobody's word was the last.
const noSite = -1

// Timers of a client.
type (
	getTimer    struct{ n uint64 }
	submitTimer struct{ id store.TxnID }
)

// client is the node of an application. It goes by the first answer to a read, and has the
// coordinator of the nearest site commit, or of another one if that does not answer.
type client struct {
	cfg          store.Config
	id           store.ClientID
	shards       map[protocol.ID]store.Place
	coordinators map[protocol.ID]store.Place
	last         uint64          // Invariant: the next version's time is above it
	n            uint64          // of reads
	near         []time.Duration // by site: how soon it has answered a read at best; 0: not yet
	gets         map[uint64]*get
	getRefs      map[uint64]uint64 // of gets, by the application's numbers
	submits      map[store.TxnID]*submit
	submitRefs   map[uint64]store.TxnID // of submits, likewise
}

// get is a read that lacks answers.
type get struct {
	ask     store.Get
	answers []*store.ReadReply // by site
	tries   int
	begun   time.Duration
}

// submit is a transaction that lacks its outcome.
type submit struct {
	refs  []uint64
	txn   store.Txn
	site  int // that is asked
	tries int
	begun time.Duration
	later int // how many later timestamps it has had
}

// newClient returns a client. The error names the field of the configuration that is wrong.
func newClient(cfg store.Config) (*client, error) {
	cfg, err := withDefaults(cfg)
	if err != nil {
		return nil, err
	}
	c := &client{cfg: cfg, gets: map[uint64]*get{}, getRefs: map[uint64]uint64{}, submits: map[store.TxnID]*submit{},
		submitRefs: map[uint64]store.TxnID{}, near: make([]time.Duration, len(cfg.Layout.Sites))}
	c.shards, c.coordinators = cfg.Layout.Places()
	_, isShard := c.shards[cfg.ID]
	if _, isCoordinator := c.coordinators[cfg.ID]; isShard || isCoordinator {
		return nil, fmt.Errorf("tapir: Config.ID: %d is another node of the layout", cfg.ID)
	}
	return c, nil
}

// Patience implements store.ClientNode: a commit is a round trip or two, and timeouts may be on the
// way.
func (c *client) Patience() time.Duration { return 6 * c.cfg.RoundTrip }

// ReadPatience implements store.ClientNode.
func (c *client) ReadPatience() time.Duration { return 2 * c.cfg.RoundTrip }

// Start implements protocol.Node.
func (c *client) Start(env *protocol.Env[store.Message], _ []protocol.Record[store.Message]) {
	c.id = store.ClientID(env.Rand.Uint64())
}

// Receive implements protocol.Node.
func (c *client) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	switch m := msg.(type) {
	case store.Get:
		c.onGet(env, m)
	case store.Submit:
		c.onSubmit(env, m)
	case store.Query:
		c.onQuery(env, m)
	case store.Cancel:
		c.onCancel(env, m)
	case store.ReadReply:
		c.onReadReply(env, from, m)
	case store.Decided:
		c.onDecided(env, from, m)
	case store.SiteVote:
		c.onSiteVote(env, from, m)
	case store.Busy:
		if s := c.submits[m.ID]; s != nil { // another site may have room
			c.send(env, s)
		}
	}
}

// Expire implements protocol.Node.
func (c *client) Expire(env *protocol.Env[store.Message], t protocol.Timer) {
	switch t := t.(type) {
	case getTimer:
		if g := c.gets[t.n]; g != nil {
			c.read(env, t.n, g)
		}
	case submitTimer:
		if s := c.submits[t.id]; s != nil {
			c.send(env, s)
		}
	}
}

func (c *client) onGet(env *protocol.Env[store.Message], m store.Get) {
	if full := len(c.gets) >= c.cfg.MaxWaiting; full || len(m.Key) > store.MaxKeyBytes {
		env.Send(protocol.App, store.Got{Ref: m.Ref, Full: full})
		return
	}
	c.n++
	g := &get{ask: m, answers: make([]*store.ReadReply, len(c.cfg.Layout.Sites)), begun: env.Now}
	c.gets[c.n], c.getRefs[m.Ref] = g, c.n
	c.read(env, c.n, g)
}

// read asks all sites that have not answered.
func (c *client) read(env *protocol.Env[store.Message], n uint64, g *get) {
	if g.tries >= tries && env.Now-g.begun >= askFor {
		c.endGet(env, n)
		env.Send(protocol.App, store.Got{Ref: g.ask.Ref})
		return
	}
	g.tries++
	shard := c.cfg.Layout.ShardOf(g.ask.Key)
	for _, i := range c.cfg.Layout.SitesOf(shard) {
		if g.answers[i] == nil {
			env.Send(c.cfg.Layout.Sites[i].Shards[shard], store.ReadRequest{Ref: n, Key: g.ask.Key, Priority: g.ask.Priority})
		}
	}
	env.After(c.ReadPatience(), getTimer{n})
}

// onReadReply goes by the first answer, as the commit says whether that was right. A
// transaction that is tried again goes by those of a majority: the nearest server may have missed
// something.
func (c *client) onReadReply(env *protocol.Env[store.Message], from protocol.ID, m store.ReadReply) {
	p, ok := c.shards[from]
	g := c.gets[m.Ref]
	if !ok || g == nil || g.answers[p.Site] != nil || p.Index != c.cfg.Layout.ShardOf(g.ask.Key) {
		return
	}
	if took := max(env.Now-g.begun, 1); g.tries == 1 && (c.near[p.Site] == 0 || took < c.near[p.Site]) {
		c.near[p.Site] = took
	}
	g.answers[p.Site] = &m
	c.see(m.Hint)
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
	case g.ask.Nearest, g.ask.Priority.IsZero(), n > len(c.cfg.Layout.SitesOf(p.Index))/2:
		c.endGet(env, m.Ref)
		env.Send(protocol.App, out)
	case n == 1:
		env.Send(protocol.App, store.First{Ref: g.ask.Ref, Value: m.Value, Pending: m.Pending, Site: p.Site})
	}
}

// endGet forgets a read.
func (c *client) endGet(env *protocol.Env[store.Message], n uint64) {
	delete(c.getRefs, c.gets[n].ask.Ref)
	delete(c.gets, n)
	env.Stop(getTimer{n})
}

// see keeps the next version above one that somebody has.
func (c *client) see(time uint64) {
	if time < 1<<63 {
		c.last = max(c.last, time)
	}
}

// home returns the site that has answered reads soonest, at random before there were any.
func (c *client) home(env *protocol.Env[store.Message]) int {
	best := noSite
	for i, took := range c.near {
		if took > 0 && (best == noSite || took < c.near[best]) {
			best = i
		}
	}
	if best == noSite {
		best = env.Rand.IntN(len(c.near))
	}
	return best
}

// timestamp returns one that is above all that the client has seen.
func (c *client) timestamp(env *protocol.Env[store.Message]) store.TxnID {
	c.last = max(c.last+1, uint64(max(env.Now, 0)))
	return store.TxnID{Time: c.last, Client: c.id}
}

func (c *client) onSubmit(env *protocol.Env[store.Message], m store.Submit) {
	for _, r := range m.Reads {
		c.see(r.Version.Time)
	}
	t := store.Txn{ID: c.timestamp(env), Priority: m.Priority, Reads: m.Reads, Writes: m.Writes}
	if t.Priority.IsZero() {
		t.Priority = store.Priority{Began: t.ID.Time, Client: c.id}
	}
	c.begin(env, m.Ref, t, store.Rejected)
}

func (c *client) onQuery(env *protocol.Env[store.Message], m store.Query) {
	if s := c.submits[m.Txn.ID]; s != nil {
		s.refs = append(s.refs, m.Ref)
		c.submitRefs[m.Ref] = m.Txn.ID
		return
	}
	c.begin(env, m.Ref, m.Txn, store.Unknown)
}

// begin has a transaction committed. What cannot be asked has the given end. One that may have been
// sent before is not sent as a new one.
func (c *client) begin(env *protocol.Env[store.Message], ref uint64, t store.Txn, cannot store.Verdict) {
	o := store.Outcome{Verdict: cannot}
	err := t.Validate()
	switch {
	case err != nil:
		o.Detail = err.Error()
	case len(c.submits) >= c.cfg.MaxWaiting:
		o.Detail = fmt.Sprintf("%d transactions are on their way", len(c.submits))
	case len(t.Reads)+len(t.Writes) == 0:
		o.Verdict = store.Committed
	default:
		s := &submit{refs: []uint64{ref}, txn: t, site: c.home(env), begun: env.Now}
		if cannot == store.Unknown {
			s.later = timestamps // it has its own
			s.tries = 1
		}
		c.submits[t.ID], c.submitRefs[ref] = s, t.ID
		c.send(env, s)
		return
	}
	env.Send(protocol.App, store.Done{Ref: ref, Txn: t, Outcome: o, Site: noSite})
}

// send asks a coordinator, each time that of the next site. The first one that is asked, and only
// that, may go by a fast quorum.
func (c *client) send(env *protocol.Env[store.Message], s *submit) {
	if s.tries >= tries && env.Now-s.begun >= askFor {
		c.end(env, s, c.given(s), noSite)
		return
	}
	if s.tries > 0 {
		s.site = (s.site + 1) % len(c.cfg.Layout.Sites)
	}
	s.tries++
	env.Send(c.cfg.Layout.Coordinator(s.site, s.txn.ID), store.CommitRequest{Txn: s.txn, Recover: s.tries > 1})
	env.After(c.Patience(), submitTimer{s.txn.ID})
}

// given returns the outcome of what is not waited for any more.
func (c *client) given(s *submit) store.Outcome {
	if s.txn.ReadOnly() {
		return store.Outcome{Verdict: store.Aborted} // it has no effect that could be
	}
	return store.Outcome{Verdict: store.Unknown}
}

func (c *client) onDecided(env *protocol.Env[store.Message], from protocol.ID, m store.Decided) {
	p, ok := c.coordinators[from]
	s := c.submits[m.ID]
	if !ok || s == nil {
		return
	}
	o := store.Outcome{Verdict: m.Verdict, Reason: m.Reason}
	if m.Verdict == store.Unknown {
		o.Verdict = c.given(s).Verdict
	}
	c.end(env, s, o, p.Site)
}

// onSiteVote is told that a transaction is aborted, and that it may do with a later timestamp: it
// is another transaction then, with the same reads and writes.
func (c *client) onSiteVote(env *protocol.Env[store.Message], from protocol.ID, m store.SiteVote) {
	p, ok := c.coordinators[from]
	s := c.submits[m.ID]
	if !ok || s == nil || m.Yes {
		return
	}
	c.see(m.Hint)
	if m.Reason != store.StaleWrite || s.later >= timestamps || slices.ContainsFunc(s.txn.Reads, func(r store.Read) bool {
		return r.Version.Time > c.last
	}) {
		c.end(env, s, store.Outcome{Verdict: store.Aborted, Reason: m.Reason}, p.Site)
		return
	}
	delete(c.submits, s.txn.ID)
	env.Stop(submitTimer{s.txn.ID})
	s.txn.ID = c.timestamp(env)
	s.later++
	s.tries, s.site = 0, p.Site
	c.submits[s.txn.ID] = s
	for _, ref := range s.refs {
		c.submitRefs[ref] = s.txn.ID
	}
	c.send(env, s)
}

func (c *client) end(env *protocol.Env[store.Message], s *submit, o store.Outcome, site int) {
	delete(c.submits, s.txn.ID)
	env.Stop(submitTimer{s.txn.ID})
	for _, ref := range s.refs {
		delete(c.submitRefs, ref)
		env.Send(protocol.App, store.Done{Ref: ref, Txn: s.txn, Outcome: o, Site: site})
	}
}

// onCancel forgets a call. Others that wait for the same transaction go on waiting.
func (c *client) onCancel(env *protocol.Env[store.Message], m store.Cancel) {
	if n, ok := c.getRefs[m.Ref]; ok {
		c.endGet(env, n)
	}
	s := c.submits[c.submitRefs[m.Ref]]
	if s == nil {
		return
	}
	if len(s.refs) == 1 {
		c.end(env, s, c.given(s), noSite)
		return
	}
	s.refs = slices.DeleteFunc(s.refs, func(ref uint64) bool { return ref == m.Ref })
	delete(c.submitRefs, m.Ref)
	env.Send(protocol.App, store.Done{Ref: m.Ref, Txn: s.txn, Outcome: c.given(s), Site: noSite})
}

package carousel

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A client asks so often, and for so long, before it gives an answer that is none.
const (
	tries  = 6
	askFor = 3 * time.Second
)

// noSite is Done.Site where nobody's word was the last.
const noSite = -1

// Timers of a client.
type (
	getTimer    struct{ n uint64 }
	submitTimer struct{ id store.TxnID }
	beatTimer   struct{ id store.TxnID }
)

// client is the node of an application. It reads from a partition's leader, or a majority of its
// servers if these are faster (see suffices), and has the agent of one site commit, or of another
// one if that does not answer.
type client struct {
	cfg          store.Config
	name         uint64 // of the next transaction; random at first, so that no two share one
	shards       map[protocol.ID]store.Place
	coordinators map[protocol.ID]store.Place
	last         uint64        // Invariant: the next version's time is above it
	n            uint64        // of reads
	home         int           // the site whose coordinator is asked first: the nearest, as far as is known
	trip         time.Duration // to it; the largest there is if that is not known
	gets         map[uint64]*get
	getRefs      map[uint64]uint64 // of gets, by the application's numbers
	submits      map[store.TxnID]*submit
	submitRefs   map[uint64]store.TxnID // of submits, likewise
	open         map[store.TxnID]*opened
}

// get is a read that lacks answers.
type get struct {
	ask     store.Get
	answers []*store.ReadReply // by site
	tries   int
	begun   time.Duration
}

// opened is a transaction that was declared and is not submitted yet.
type opened struct {
	ref      uint64
	ask      declareRequest
	site     int // whose agent has it
	tries    int
	answered bool
}

// submit is a transaction that lacks its outcome.
type submit struct {
	refs  []uint64
	txn   store.Txn
	site  int // that is asked
	tries int
	begun time.Duration
}

// newClient returns a client. The error names the field of the configuration that is wrong.
func newClient(cfg store.Config) (*client, error) {
	cfg, err := withDefaults(cfg)
	if err != nil {
		return nil, err
	}
	c := &client{cfg: cfg, gets: map[uint64]*get{}, getRefs: map[uint64]uint64{}, submits: map[store.TxnID]*submit{},
		submitRefs: map[uint64]store.TxnID{}, open: map[store.TxnID]*opened{}}
	c.shards, c.coordinators = cfg.Layout.Places()
	_, isShard := c.shards[cfg.ID]
	if _, isCoordinator := c.coordinators[cfg.ID]; isShard || isCoordinator {
		return nil, fmt.Errorf("carousel: Config.ID: %d is another node of the layout", cfg.ID)
	}
	return c, nil
}

// Patience implements store.ClientNode: a commit waits for groups side by side, whose leaders may
// be anywhere.
func (c *client) Patience() time.Duration { return 6 * c.cfg.RoundTrip }

// ReadPatience implements store.ClientNode.
func (c *client) ReadPatience() time.Duration { return 2 * c.cfg.RoundTrip }

// Start implements protocol.Node.
func (c *client) Start(env *protocol.Env[store.Message], _ []protocol.Record[store.Message]) {
	c.name = env.Rand.Uint64()
	c.home, c.trip = env.Rand.IntN(len(c.cfg.Layout.Sites)), math.MaxInt64
}

// Receive implements protocol.Node.
func (c *client) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	switch m := msg.(type) {
	case store.Get:
		c.onGet(env, m)
	case store.Declare:
		c.onDeclare(env, m)
	case store.Abandon:
		c.abandon(env, m.ID)
	case declareReply:
		c.onDeclared(env, m)
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
	case beatTimer:
		if o := c.open[t.id]; o != nil {
			c.beat(env, t.id, o)
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
	if c.suffices(g, shard) {
		c.got(env, n, slices.IndexFunc(g.answers, func(a *store.ReadReply) bool { return a != nil }))
		return
	}
	for _, i := range c.cfg.Layout.SitesOf(shard) {
		if g.answers[i] == nil {
			env.Send(c.cfg.Layout.Sites[i].Shards[shard], store.ReadRequest{Ref: n, Key: g.ask.Key, Priority: g.ask.Priority})
		}
	}
	env.After(c.ReadPatience(), getTimer{n})
}

func (c *client) onReadReply(env *protocol.Env[store.Message], from protocol.ID, m store.ReadReply) {
	p, ok := c.shards[from]
	g := c.gets[m.Ref]
	if !ok || g == nil || g.answers[p.Site] != nil || p.Index != c.cfg.Layout.ShardOf(g.ask.Key) {
		return
	}
	g.answers[p.Site] = &m
	c.see(m.Hint)
	n := g.answered()
	if n == 1 && g.tries == 1 {
		c.near(p.Index, p.Site, env.Now-g.begun)
	}
	switch {
	case c.suffices(g, p.Index):
		c.got(env, m.Ref, p.Site)
	case n == 1:
		env.Send(protocol.App, store.First{Ref: g.ask.Ref, Value: m.Value, Pending: m.Pending, Site: p.Site})
	}
}

func (g *get) answered() (n int) {
	for _, a := range g.answers {
		if a != nil {
			n++
		}
	}
	return n
}

// suffices tells whether a read has the answers that it needs: that of the site that leads the
// partition at first, or those of a majority. Who tries again needs both, unless that site is
// silent: it may lead no more, and be the last to know.
func (c *client) suffices(g *get, shard int) bool {
	n := g.answered()
	majority := n > len(c.cfg.Layout.SitesOf(shard))/2
	led := g.answers[c.cfg.Layout.FirstOf(shard)] != nil
	switch {
	case g.ask.Nearest:
		return n > 0
	case g.ask.Priority.IsZero():
		return majority || led
	}
	return majority && (led || g.tries > 1)
}

// got answers a read with the newest of the answers. Of these that of a site was the last.
func (c *client) got(env *protocol.Env[store.Message], n uint64, site int) {
	g := c.gets[n]
	out := store.Got{Ref: g.ask.Ref, OK: true, Site: site}
	for _, a := range g.answers {
		if a == nil {
			continue
		}
		out.Pending = out.Pending || a.Pending
		if a.Value.Version.After(out.Value.Version) {
			out.Value = a.Value
		}
	}
	c.endGet(env, n)
	env.Send(protocol.App, out)
}

// near learns from the first answer to a read which site is the nearest. Of a partition that home
// has no replica of, some other site's is always the first.
func (c *client) near(shard, site int, trip time.Duration) {
	if slices.Contains(c.cfg.Layout.SitesOf(shard), c.home) || trip < c.trip {
		c.home, c.trip = site, trip
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

// onDeclare begins a transaction whose keys are known.
func (c *client) onDeclare(env *protocol.Env[store.Message], m store.Declare) {
	full := len(c.open)+len(c.submits) >= c.cfg.MaxWaiting
	if full || !validKeys(m.Reads) || !validKeys(m.Writes) || len(m.Writes) == 0 {
		env.Send(protocol.App, store.Declared{Ref: m.Ref})
		return
	}
	id := c.newID(env, m.Reads, m.Writes)
	o := &opened{ref: m.Ref, ask: declareRequest{id, m.Reads, m.Writes}, site: c.home}
	c.open[id] = o
	c.beat(env, id, o)
}

// beat asks the agent for the values, and says that the client is there.
func (c *client) beat(env *protocol.Env[store.Message], id store.TxnID, o *opened) {
	if o.tries++; o.tries > 3*tries && !o.answered {
		c.abandon(env, id)
		env.Send(protocol.App, store.Declared{Ref: o.ref})
		return
	}
	env.Send(c.cfg.Layout.Coordinator(o.site, id), o.ask)
	env.After(c.cfg.RoundTrip, beatTimer{id})
}

func (c *client) onDeclared(env *protocol.Env[store.Message], m declareReply) {
	o := c.open[m.ID]
	if o == nil || o.answered || len(m.Values) != len(o.ask.Reads) {
		return
	}
	o.answered = true
	for _, v := range m.Values {
		c.see(v.Version.Time)
	}
	env.Send(protocol.App, store.Declared{Ref: o.ref, OK: true, ID: m.ID, Values: m.Values})
}

// abandon ends a transaction that was declared.
func (c *client) abandon(env *protocol.Env[store.Message], id store.TxnID) {
	if o := c.open[id]; o != nil {
		env.Send(c.cfg.Layout.Coordinator(o.site, id), abortRequest{ID: id})
		c.close(env, id)
	}
}

func (c *client) close(env *protocol.Env[store.Message], id store.TxnID) {
	delete(c.open, id)
	env.Stop(beatTimer{id})
}

// newID returns the ID of a transaction with these keys.
func (c *client) newID(env *protocol.Env[store.Message], reads, writes []store.Key) store.TxnID {
	c.last = max(c.last+1, uint64(max(env.Now, 0)))
	c.name++
	return store.TxnID{Time: c.last, Client: nameOf(c.name, c.coordinator(reads, writes))}
}

func (c *client) onSubmit(env *protocol.Env[store.Message], m store.Submit) {
	for _, r := range m.Reads {
		c.see(r.Version.Time)
	}
	var reads, writes []store.Key
	for _, r := range m.Reads {
		reads = append(reads, r.Key)
	}
	for _, w := range m.Writes {
		writes = append(writes, w.Key)
	}
	id, site := m.Begun, c.home
	if o := c.open[id]; o != nil {
		site = o.site
		c.close(env, id)
	} else {
		id = c.newID(env, reads, writes)
	}
	t := store.Txn{ID: id, Priority: m.Priority, Reads: m.Reads, Writes: m.Writes}
	if t.Priority.IsZero() {
		t.Priority = store.Priority{Began: id.Time, Client: id.Client}
	}
	c.begin(env, m.Ref, t, site, store.Rejected)
}

// coordinator returns the partition whose group is to coordinate a transaction: one of its own that
// is led at the client's site, else any that is, else the first of its own [Carousel §3.1.3].
func (c *client) coordinator(reads, writes []store.Key) uint32 {
	l := c.cfg.Layout
	own := func(key store.Key, best int) int {
		if k := l.ShardOf(key); best < 0 || l.FirstOf(k) == c.home && l.FirstOf(best) != c.home {
			return k
		}
		return best
	}
	best := -1
	for _, k := range reads {
		best = own(k, best)
	}
	for _, k := range writes {
		best = own(k, best)
	}
	if best >= 0 && l.FirstOf(best) == c.home {
		return uint32(best)
	}
	for k := range l.Sites[0].Shards {
		if l.FirstOf(k) == c.home {
			return uint32(k)
		}
	}
	return uint32(max(best, 0))
}

func (c *client) onQuery(env *protocol.Env[store.Message], m store.Query) {
	if s := c.submits[m.Txn.ID]; s != nil {
		s.refs = append(s.refs, m.Ref)
		c.submitRefs[m.Ref] = m.Txn.ID
		return
	}
	c.begin(env, m.Ref, m.Txn, c.home, store.Unknown)
}

// begin has a transaction committed. What cannot be asked has the given end.
func (c *client) begin(
	env *protocol.Env[store.Message], ref uint64, t store.Txn, site int, refused store.Verdict,
) {
	o := store.Outcome{Verdict: refused}
	err := t.Validate()
	switch {
	case err != nil:
		o.Detail = err.Error()
	case len(c.submits) >= c.cfg.MaxWaiting:
		o.Detail = fmt.Sprintf("%d transactions are on their way", len(c.submits))
	case len(t.Reads)+len(t.Writes) == 0:
		o.Verdict = store.Committed
	default:
		s := &submit{refs: []uint64{ref}, txn: t, site: site, begun: env.Now}
		c.submits[t.ID], c.submitRefs[ref] = s, t.ID
		c.send(env, s)
		return
	}
	env.Send(protocol.App, store.Done{Ref: ref, Txn: t, Outcome: o, Site: noSite})
}

// send asks a coordinator, each time that of the next site.
func (c *client) send(env *protocol.Env[store.Message], s *submit) {
	if s.tries >= tries && env.Now-s.begun >= askFor {
		o := store.Outcome{Verdict: store.Unknown}
		if s.txn.ReadOnly() {
			o.Verdict = store.Aborted // it has no effect that could be
		}
		c.end(env, s, o, noSite)
		return
	}
	if s.tries > 0 {
		if s.site == c.home {
			c.trip = math.MaxInt64 // it does not answer: whoever does is nearer
		}
		s.site = (s.site + 1) % len(c.cfg.Layout.Sites)
	}
	s.tries++
	env.Send(c.cfg.Layout.Coordinator(s.site, s.txn.ID), store.CommitRequest{Txn: s.txn, Recover: s.tries > 1})
	env.After(c.Patience(), submitTimer{s.txn.ID})
}

func (c *client) onDecided(env *protocol.Env[store.Message], from protocol.ID, m store.Decided) {
	p, ok := c.coordinators[from]
	s := c.submits[m.ID]
	if !ok || s == nil {
		return
	}
	if m.Verdict == store.Unknown && s.txn.ReadOnly() {
		m.Verdict = store.Aborted
	}
	c.end(env, s, store.Outcome{Verdict: m.Verdict, Reason: m.Reason}, p.Site)
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
	for id, o := range c.open { //pure:ok one of them at most has the number
		if o.ref == m.Ref && !o.answered {
			c.abandon(env, id)
			return
		}
	}
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

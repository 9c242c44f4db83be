package gate

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// What a gate's application asks it. Each has one answer, unless it is taken back or nobody knows.
type (
	// Read asks the site's shard for a key. ReadDone answers it.
	Read struct {
		Ref      uint64 // of the application's choice, as in all of these
		Key      store.Key
		Priority store.Priority
	}

	// ReadDone is what the shard says.
	ReadDone struct {
		Ref   uint64
		Reply store.ReadReply
	}

	// Commit asks the site for its vote. With Recover it asks for the decision. CommitDone
	// answers it.
	Commit struct {
		Ref     uint64
		Txn     store.Txn
		Recover bool
		Firm    bool // as in CommitRequest
		Hold    bool // likewise
		// Serializable and Explain are, too.
		Serializable, Explain bool
		// Speculate has the site say when the transaction is committed locally. Held, After and Told are
		// as in SpeculateRequest.
		Speculate, Held, Told, Waits bool
		After                        []store.TxnID
	}

	// CommitDone is the site's vote, or the decision if that was known, or word of the local commit.
	CommitDone struct {
		Ref     uint64
		Known   bool // Decided counts, not Vote
		Vote    store.SiteVote
		Decided store.Decided
		Local   *store.Speculated // nil: it is none
	}

	// Declare has the site begin a transaction whose keys are known. DeclareDone answers it.
	Declare struct {
		Ref uint64
		store.DeclareRequest
	}

	// DeclareDone is what the keys hold.
	DeclareDone struct {
		Ref   uint64
		Reply store.DeclareReply
	}

	// Abandon tells the site that a transaction which Declare has begun will not be committed. It is
	// not answered.
	Abandon struct{ ID store.TxnID }

	// Page asks the site's server of a shard for a page of a snapshot. PageDone answers it.
	Page struct {
		Ref uint64
		Ask store.PageRequest // without its Ref
	}

	// PageDone is what the server says.
	PageDone struct {
		Ref   uint64
		Reply store.PageReply
	}

	// Cancel says that nobody waits for an answer any more.
	Cancel struct{ Ref uint64 }

	// Refused answers Read, Commit and Declare when too many wait, nobody answers, or what is
	// asked makes no sense.
	Refused struct {
		Ref    uint64
		Full   bool // nothing was done; later there may be room
		Late   bool // later somebody may answer. What a Commit asked for may have happened.
		Detail string
	}
)

// Timers of a gate.
type (
	voteTimer struct{ ref uint64 } // how long who asked for a decision is left to wait for more than a vote
	// how long the site is left to answer: coordinators and shards say nothing to what they cannot
	// take
	endTimer struct{ ref uint64 }
)

// A site has patience round trips, and times that it takes to send what is asked, to
// answer, and longer if it is near and busy: more than clients wait, so that they repeat what
// they ask before.
const (
	patience      = 8
	leastPatience = 2 * time.Second
)

// patience is how long the site has to answer what has so many bytes.
func (g *Gate) patience(bytes int) time.Duration {
	return max(patience*(g.cfg.RoundTrip+store.SendTime(bytes)), leastPatience)
}

// Gate is the node by which clients that are no nodes reach a site: it hands what they ask to the
// site's shards and coordinators, and the answers back. It keeps nothing, and repeats nothing: its
// clients do.
type Gate struct {
	cfg     store.Config
	site    int
	reads   map[uint64]uint64 // from numbers that shards see to Refs, of Reads and Pages
	numbers map[uint64]uint64 // and back
	n       uint64
	commits map[uint64]*commit       // by Ref
	byTxn   map[store.TxnID][]uint64 // Refs, in order
}

type commit struct {
	id      store.TxnID
	declare bool   // it is a Declare
	step    uint32 // of that
	local   bool   // it speculates
	recover bool
	vote    *store.SiteVote
}

// New returns the gate of a site, which is a place in the layout.
func New(cfg store.Config, site int) (*Gate, error) {
	cfg, err := cfg.WithDefaults()
	if err != nil {
		return nil, err
	}
	shards, coordinators := cfg.Layout.Places()
	_, isShard := shards[cfg.ID]
	_, isCoordinator := coordinators[cfg.ID]
	switch {
	case isShard || isCoordinator:
		return nil, fmt.Errorf("gate: Config.ID: %d is another node of the layout", cfg.ID)
	case site < 0 || site >= len(cfg.Layout.Sites) || cfg.Layout.Sites[site].Fenced:
		return nil, fmt.Errorf("gate: a gate at site %d of %d, which does not take part", site, len(cfg.Layout.Sites))
	}
	return &Gate{
		cfg: cfg, site: site, reads: map[uint64]uint64{}, numbers: map[uint64]uint64{},
		commits: map[uint64]*commit{}, byTxn: map[store.TxnID][]uint64{},
	}, nil
}

// Start implements protocol.Node.
func (g *Gate) Start(env *protocol.Env[store.Message], _ []protocol.Record[store.Message]) {
	g.n = env.Rand.Uint64() >> 1 // answers to an earlier incarnation are nobody's
}

// Receive implements protocol.Node.
func (g *Gate) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	site := &g.cfg.Layout.Sites[g.site]
	switch m := msg.(type) {
	case Read:
		if from == protocol.App {
			g.onRead(env, m)
		}
	case Commit:
		if from == protocol.App {
			g.onCommit(env, m)
		}
	case Declare:
		if from == protocol.App {
			g.onDeclare(env, m)
		}
	case Page:
		if from == protocol.App {
			g.onPage(env, m)
		}
	case Abandon:
		if from == protocol.App {
			env.Send(g.cfg.Layout.Coordinator(g.site, m.ID), store.AbandonRequest{ID: m.ID})
		}
	case Cancel:
		if from == protocol.App {
			g.forget(env, m.Ref)
		}
	case store.ReadReply:
		ref, ok := g.reads[m.Ref]
		if ok && slices.Contains(site.Shards, from) {
			g.forget(env, ref)
			env.Send(protocol.App, ReadDone{ref, m})
		}
	case store.PageReply:
		if ref, ok := g.reads[m.Ref]; ok && slices.Contains(site.Shards, from) {
			g.forget(env, ref)
			env.Send(protocol.App, PageDone{ref, m})
		}
	case store.Busy:
		if slices.Contains(site.Coordinators, from) {
			for _, ref := range slices.Clone(g.byTxn[m.ID]) {
				g.forget(env, ref)
				env.Send(protocol.App, Refused{Ref: ref, Full: true,
					Detail: "the site's coordinator remembers as many transactions as it may"})
			}
		}
	case store.DeclareReply:
		if slices.Contains(site.Coordinators, from) {
			for _, ref := range g.waiting(m.ID, true) {
				if g.commits[ref].step == m.Step {
					g.forget(env, ref)
					env.Send(protocol.App, DeclareDone{ref, m})
				}
			}
		}
	case store.SiteVote:
		if slices.Contains(site.Coordinators, from) {
			g.onVote(env, m)
		}
	case store.Speculated:
		if slices.Contains(site.Coordinators, from) {
			g.onCommitted(env, m.ID, CommitDone{Local: &m})
		}
	case store.Decided:
		if slices.Contains(site.Coordinators, from) {
			g.onCommitted(env, m.ID, CommitDone{Known: true, Decided: m})
		}
	}
}

// Expire implements protocol.Node.
func (g *Gate) Expire(env *protocol.Env[store.Message], t protocol.Timer) {
	switch t := t.(type) {
	case voteTimer:
		if c := g.commits[t.ref]; c != nil && c.vote != nil {
			g.forget(env, t.ref)
			env.Send(protocol.App, CommitDone{Ref: t.ref, Vote: *c.vote})
		} else if c != nil {
			c.recover = false // the vote is enough from now on
		}
	case endTimer:
		if g.forget(env, t.ref) {
			env.Send(protocol.App, Refused{Ref: t.ref, Late: true, Detail: "nobody at the site answers"})
		}
	}
}

func (g *Gate) onRead(env *protocol.Env[store.Message], m Read) {
	shard := g.cfg.Layout.ShardOf(m.Key)
	switch {
	case len(m.Key) > store.MaxKeyBytes:
		env.Send(protocol.App, Refused{Ref: m.Ref, Detail: fmt.Sprintf("a key of %d bytes (the limit is %d)", len(m.Key),
			store.MaxKeyBytes)})
		return
	case !g.cfg.Layout.Sites[g.site].Has(shard):
		env.Send(protocol.App, Refused{Ref: m.Ref, Detail: fmt.Sprintf("site %s has no copy of shard %d, which has the key",
			g.cfg.Layout.Sites[g.site].Name, shard)})
		return
	}
	if n, ok := g.addRead(env, m.Ref); ok {
		env.Send(g.cfg.Layout.Sites[g.site].Shards[shard], store.ReadRequest{Ref: n, Key: m.Key, Priority: m.Priority})
	}
}

// addRead has a call for a shard's server wait, and returns the number by which that knows it; ok
// is false if too many wait.
func (g *Gate) addRead(env *protocol.Env[store.Message], ref uint64) (n uint64, ok bool) {
	if len(g.reads) >= g.cfg.MaxWaiting {
		env.Send(protocol.App, Refused{Ref: ref, Full: true, Detail: fmt.Sprintf("%d reads wait", len(g.reads))})
		return 0, false
	}
	g.n++
	g.reads[g.n], g.numbers[ref] = ref, g.n
	env.After(g.patience(0), endTimer{ref})
	return g.n, true
}

func (g *Gate) onPage(env *protocol.Env[store.Message], m Page) {
	site := g.cfg.Layout.Sites[g.site]
	if shard := int(m.Ask.Shard); shard >= len(site.Shards) || !site.Has(shard) {
		env.Send(protocol.App, Refused{Ref: m.Ref, Detail: fmt.Sprintf("site %s has no copy of shard %d", site.Name,
			m.Ask.Shard)})
		return
	}
	if n, ok := g.addRead(env, m.Ref); ok {
		m.Ask.Ref = n
		env.Send(site.Shards[m.Ask.Shard], m.Ask)
	}
}

func (g *Gate) onCommit(env *protocol.Env[store.Message], m Commit) {
	err := m.Txn.Validate()
	switch {
	case err != nil:
		env.Send(protocol.App, Refused{Ref: m.Ref, Detail: err.Error()})
		return
	case len(m.Txn.Reads)+len(m.Txn.Writes) == 0:
		env.Send(protocol.App, Refused{Ref: m.Ref, Detail: "a transaction that neither reads nor writes"})
		return
	case len(g.commits) >= g.cfg.MaxWaiting:
		env.Send(protocol.App, Refused{Ref: m.Ref, Full: true, Detail: fmt.Sprintf("%d transactions wait", len(g.commits))})
		return
	}
	g.add(env, m.Ref, &commit{id: m.Txn.ID, local: m.Speculate, recover: m.Recover},
		store.ContentBytes(m.Txn.Reads, m.Txn.Writes))
	if m.Recover {
		env.After(g.cfg.RoundTrip, voteTimer{m.Ref})
	}
	to := g.cfg.Layout.Coordinator(g.site, m.Txn.ID)
	ask := store.CommitRequest{Txn: m.Txn, Recover: m.Recover, Firm: m.Firm, Hold: m.Hold,
		Serializable: m.Serializable, Explain: m.Explain}
	if m.Speculate {
		env.Send(to, store.SpeculateRequest{CommitRequest: ask, Held: m.Held, After: m.After, Told: m.Told,
			Waits: m.Waits})
		return
	}
	env.Send(to, ask)
}

func (g *Gate) onDeclare(env *protocol.Env[store.Message], m Declare) {
	if err := m.Validate(); err != nil {
		env.Send(protocol.App, Refused{Ref: m.Ref, Detail: err.Error()})
		return
	}
	if len(g.commits) >= g.cfg.MaxWaiting {
		env.Send(protocol.App, Refused{Ref: m.Ref, Full: true, Detail: fmt.Sprintf("%d transactions wait", len(g.commits))})
		return
	}
	g.add(env, m.Ref, &commit{id: m.ID, declare: true, step: m.Step}, 0)
	env.Send(g.cfg.Layout.Coordinator(g.site, m.ID), m.DeclareRequest)
}

// add has a call for a transaction wait, which has so many bytes.
func (g *Gate) add(env *protocol.Env[store.Message], ref uint64, c *commit, bytes int) {
	g.commits[ref] = c
	g.byTxn[c.id] = append(g.byTxn[c.id], ref)
	env.After(g.patience(bytes), endTimer{ref})
}

// waiting returns who waits for a transaction, for its outcome or for what it has declared.
func (g *Gate) waiting(id store.TxnID, declared bool) (refs []uint64) {
	for _, ref := range g.byTxn[id] {
		if g.commits[ref].declare == declared {
			refs = append(refs, ref)
		}
	}
	return refs
}

// onCommitted answers who waits for a transaction's decision or, if that is what came, its local
// commit.
func (g *Gate) onCommitted(env *protocol.Env[store.Message], id store.TxnID, out CommitDone) {
	for _, ref := range g.waiting(id, false) {
		if out.Known || g.commits[ref].local {
			g.forget(env, ref)
			out.Ref = ref
			env.Send(protocol.App, out)
		}
	}
}

func (g *Gate) onVote(env *protocol.Env[store.Message], m store.SiteVote) {
	for _, ref := range g.waiting(m.ID, false) {
		c := g.commits[ref]
		if c.recover {
			c.vote = &m
			continue
		}
		g.forget(env, ref)
		env.Send(protocol.App, CommitDone{Ref: ref, Vote: m})
	}
}

// forget reports whether there was something to forget.
func (g *Gate) forget(env *protocol.Env[store.Message], ref uint64) bool {
	n, isRead := g.numbers[ref]
	c := g.commits[ref]
	if !isRead && c == nil {
		return false
	}
	env.Stop(endTimer{ref})
	if isRead {
		delete(g.reads, n)
		delete(g.numbers, ref)
	}
	if c == nil {
		return true
	}
	if c.recover {
		env.Stop(voteTimer{ref})
	}
	delete(g.commits, ref)
	g.byTxn[c.id] = slices.DeleteFunc(g.byTxn[c.id], func(r uint64) bool { return r == ref })
	if len(g.byTxn[c.id]) == 0 {
		delete(g.byTxn, c.id)
	}
	return true
}

// Open returns how many calls have no answer yet.
func (g *Gate) Open() int { return len(g.reads) + len(g.commits) }

// Check implements protocol.Checked.
func (g *Gate) Check() error {
	n := 0
	for _, id := range slices.SortedFunc(maps.Keys(g.byTxn), store.Version.Compare) {
		n += len(g.byTxn[id])
	}
	if n != len(g.commits) || len(g.reads) != len(g.numbers) || n > g.cfg.MaxWaiting || len(g.reads) > g.cfg.MaxWaiting {
		return fmt.Errorf("gate: gate %d: %d commits wait, listed as %d, and %d reads, listed as %d", g.cfg.ID,
			len(g.commits), n, len(g.reads), len(g.numbers))
	}
	return nil
}

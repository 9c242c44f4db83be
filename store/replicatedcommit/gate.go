package replicatedcommit

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
	// GateRead asks the site's shard for a key. GateReadDone answers it.
	GateRead struct {
		Ref      uint64 // of the application's choice, as in all of these
		Key      store.Key
		Priority store.Priority
	}

	// GateReadDone is what the shard says.
	GateReadDone struct {
		Ref   uint64
		Reply ReadReply
	}

	// GateCommit asks the site for its vote. With Recover it asks for the decision. GateCommitDone
	// answers it.
	GateCommit struct {
		Ref     uint64
		Txn     store.Txn
		Recover bool
		Firm    bool // as in CommitRequest
		Hold    bool // likewise
	}

	// GateCommitDone is the site's vote, or the decision if that was known.
	GateCommitDone struct {
		Ref     uint64
		Known   bool // Decided counts, not Vote
		Vote    SiteVote
		Decided Decided
	}

	// GateCancel says that nobody waits for an answer any more.
	GateCancel struct{ Ref uint64 }

	// GateRefused answers GateRead and GateCommit when too many wait, nobody answers, or what is
	// asked makes no sense.
	GateRefused struct {
		Ref    uint64
		Full   bool // nothing was done; later there may be room
		Late   bool // later somebody may answer. What a GateCommit asked for may have happened.
		Detail string
	}
)

// Timers of a gate.
type (
	gateTimer struct{ ref uint64 } // how long who asked for a decision is left to wait for more than a vote
	// how long the site is left to answer: coordinators and shards say nothing to what they cannot
	// take
	gateEnd struct{ ref uint64 }
)

// gatePatience is how many round trips, and times that it takes to send what is asked, a site has
// to answer, and longer if it is near and busy: more than clients wait, so that they repeat what
// they ask before.
const gatePatience = 8

// patience is how long the site has to answer what has so many bytes.
func (g *Gate) patience(bytes int) time.Duration {
	return max(gatePatience*(g.cfg.RoundTrip+sendTime(bytes)), 2*leastLag)
}

// Gate is the node by which clients that are no nodes reach a site: it hands what they ask to the
// site's shards and coordinators, and the answers back. It keeps nothing, and repeats nothing: its
// clients do.
type Gate struct {
	cfg     Config
	site    int
	reads   map[uint64]uint64 // from numbers that shards see to Refs
	numbers map[uint64]uint64 // and back
	n       uint64
	commits map[uint64]*gateCommit   // by Ref
	byTxn   map[store.TxnID][]uint64 // Refs, in order
}

type gateCommit struct {
	id      store.TxnID
	recover bool
	vote    *SiteVote
}

// NewGate returns the gate of a site, which is a place in the layout.
func NewGate(cfg Config, site int) (*Gate, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	shards, coordinators := cfg.Layout.places()
	_, isShard := shards[cfg.ID]
	_, isCoordinator := coordinators[cfg.ID]
	switch {
	case isShard || isCoordinator:
		return nil, fmt.Errorf("replicatedcommit: Config.ID: %d is another node of the layout", cfg.ID)
	case site < 0 || site >= len(cfg.Layout.Sites) || cfg.Layout.Sites[site].Fenced:
		return nil, fmt.Errorf("replicatedcommit: a gate at site %d of %d, which does not take part", site, len(cfg.Layout.Sites))
	}
	return &Gate{
		cfg: cfg, site: site, reads: map[uint64]uint64{}, numbers: map[uint64]uint64{},
		commits: map[uint64]*gateCommit{}, byTxn: map[store.TxnID][]uint64{},
	}, nil
}

// Start implements protocol.Node.
func (g *Gate) Start(env *protocol.Env[Message], _ []protocol.Record[Message]) {
	g.n = env.Rand.Uint64() >> 1 // answers to an earlier incarnation are nobody's
}

// Receive implements protocol.Node.
func (g *Gate) Receive(env *protocol.Env[Message], from protocol.ID, msg Message) {
	site := &g.cfg.Layout.Sites[g.site]
	switch m := msg.(type) {
	case GateRead:
		if from == protocol.App {
			g.onRead(env, m)
		}
	case GateCommit:
		if from == protocol.App {
			g.onCommit(env, m)
		}
	case GateCancel:
		if from == protocol.App {
			g.forget(env, m.Ref)
		}
	case ReadReply:
		ref, ok := g.reads[m.Ref]
		if ok && slices.Contains(site.Shards, from) {
			g.forget(env, ref)
			env.Send(protocol.App, GateReadDone{ref, m})
		}
	case Busy:
		if slices.Contains(site.Coordinators, from) {
			for _, ref := range slices.Clone(g.byTxn[m.ID]) {
				g.forget(env, ref)
				env.Send(protocol.App, GateRefused{Ref: ref, Full: true, Detail: "the site's coordinator remembers as many transactions as it may"})
			}
		}
	case SiteVote:
		if slices.Contains(site.Coordinators, from) {
			g.onVote(env, m)
		}
	case Decided:
		if slices.Contains(site.Coordinators, from) {
			for _, ref := range slices.Clone(g.byTxn[m.ID]) {
				g.forget(env, ref)
				env.Send(protocol.App, GateCommitDone{Ref: ref, Known: true, Decided: m})
			}
		}
	}
}

// Expire implements protocol.Node.
func (g *Gate) Expire(env *protocol.Env[Message], t protocol.Timer) {
	switch t := t.(type) {
	case gateTimer:
		if c := g.commits[t.ref]; c != nil && c.vote != nil {
			g.forget(env, t.ref)
			env.Send(protocol.App, GateCommitDone{Ref: t.ref, Vote: *c.vote})
		} else if c != nil {
			c.recover = false // the vote is enough from now on
		}
	case gateEnd:
		if g.forget(env, t.ref) {
			env.Send(protocol.App, GateRefused{Ref: t.ref, Late: true, Detail: "nobody at the site answers"})
		}
	}
}

func (g *Gate) onRead(env *protocol.Env[Message], m GateRead) {
	switch {
	case len(m.Key) > store.MaxKeyBytes:
		env.Send(protocol.App, GateRefused{Ref: m.Ref, Detail: fmt.Sprintf("a key of %d bytes (the limit is %d)", len(m.Key), store.MaxKeyBytes)})
		return
	case len(g.reads) >= g.cfg.MaxWaiting:
		env.Send(protocol.App, GateRefused{Ref: m.Ref, Full: true, Detail: fmt.Sprintf("%d reads wait", len(g.reads))})
		return
	}
	g.n++
	g.reads[g.n], g.numbers[m.Ref] = m.Ref, g.n
	env.After(g.patience(0), gateEnd{m.Ref})
	env.Send(g.cfg.Layout.Sites[g.site].Shards[g.cfg.Layout.shardOf(m.Key)], ReadRequest{Ref: g.n, Key: m.Key, Priority: m.Priority})
}

func (g *Gate) onCommit(env *protocol.Env[Message], m GateCommit) {
	err := m.Txn.Validate()
	switch {
	case err != nil:
		env.Send(protocol.App, GateRefused{Ref: m.Ref, Detail: err.Error()})
		return
	case len(m.Txn.Reads)+len(m.Txn.Writes) == 0:
		env.Send(protocol.App, GateRefused{Ref: m.Ref, Detail: "a transaction that neither reads nor writes"})
		return
	case len(g.commits) >= g.cfg.MaxWaiting:
		env.Send(protocol.App, GateRefused{Ref: m.Ref, Full: true, Detail: fmt.Sprintf("%d transactions wait", len(g.commits))})
		return
	}
	c := &gateCommit{id: m.Txn.ID, recover: m.Recover}
	g.commits[m.Ref] = c
	g.byTxn[c.id] = append(g.byTxn[c.id], m.Ref)
	env.After(g.patience(contentBytes(m.Txn.Reads, m.Txn.Writes)), gateEnd{m.Ref})
	if m.Recover {
		env.After(g.cfg.RoundTrip, gateTimer{m.Ref})
	}
	env.Send(g.cfg.Layout.coordinator(g.site, c.id), CommitRequest{Txn: m.Txn, Recover: m.Recover, Firm: m.Firm, Hold: m.Hold})
}

func (g *Gate) onVote(env *protocol.Env[Message], m SiteVote) {
	for _, ref := range slices.Clone(g.byTxn[m.ID]) {
		c := g.commits[ref]
		if c.recover {
			c.vote = &m
			continue
		}
		g.forget(env, ref)
		env.Send(protocol.App, GateCommitDone{Ref: ref, Vote: m})
	}
}

// forget tells whether there was something to forget.
func (g *Gate) forget(env *protocol.Env[Message], ref uint64) bool {
	n, isRead := g.numbers[ref]
	c := g.commits[ref]
	if !isRead && c == nil {
		return false
	}
	env.Stop(gateEnd{ref})
	if isRead {
		delete(g.reads, n)
		delete(g.numbers, ref)
	}
	if c == nil {
		return true
	}
	if c.recover {
		env.Stop(gateTimer{ref})
	}
	delete(g.commits, ref)
	g.byTxn[c.id] = slices.DeleteFunc(g.byTxn[c.id], func(r uint64) bool { return r == ref })
	if len(g.byTxn[c.id]) == 0 {
		delete(g.byTxn, c.id)
	}
	return true
}

// Check implements protocol.Checked.
func (g *Gate) Check() error {
	n := 0
	for _, id := range slices.SortedFunc(maps.Keys(g.byTxn), store.Version.Compare) {
		n += len(g.byTxn[id])
	}
	if n != len(g.commits) || len(g.reads) != len(g.numbers) || n > g.cfg.MaxWaiting || len(g.reads) > g.cfg.MaxWaiting {
		return fmt.Errorf("replicatedcommit: gate %d: %d commits wait, listed as %d, and %d reads, listed as %d", g.cfg.ID, len(g.commits), n, len(g.reads), len(g.numbers))
	}
	return nil
}

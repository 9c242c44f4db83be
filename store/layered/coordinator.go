package layered

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// coordinator is the node that has transactions prepared and decided. It forgets all with a crash:
// servers then ask another incarnation, or another coordinator, to finish what is open.
type coordinator struct {
	cfg     store.Config
	entries map[store.TxnID]*entry
	calls   kit.GroupCalls // of commands and checks
}

// entry is a transaction that the coordinator is at.
type entry struct {
	id      store.TxnID
	shards  []uint32
	clients []protocol.ID
	votes   map[uint32]bool // who has voted yes
	asked   bool            // the anchor is to decide
	decided *store.Decided
	left    map[uint32]bool // shards that have not carried out the decision
}

// newCoordinator returns a coordinator. The error names the field of the configuration that is
// wrong.
func newCoordinator(cfg store.Config) (*coordinator, error) {
	cfg, p, err := kit.CoordinatorConfig("layered", cfg)
	if err != nil {
		return nil, err
	}
	c := &coordinator{cfg: cfg, entries: map[store.TxnID]*entry{}}
	asking := kit.Asking(commandFormat())
	c.calls = kit.NewGroupCalls(cfg, p.Site, func(ref uint64, k *kit.GroupCall) store.Message {
		if m, ok := k.Command.(check); ok {
			m.Ref = ref
			return m
		}
		return asking(ref, k)
	})
	return c, nil
}

// Start implements protocol.Node.
func (c *coordinator) Start(env *protocol.Env[store.Message], _ []protocol.Record[store.Message]) {
	c.calls.Start(env)
}

// Receive implements protocol.Node.
func (c *coordinator) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	switch m := msg.(type) {
	case told:
		c.onTold(env, from, m)
	case kit.Elsewhere:
		c.calls.Elsewhere(env, from, m)
	case store.CommitRequest:
		c.onCommit(env, from, m)
	case finish:
		c.begin(env, m.ID, m.Shards, store.Fenced)
	case wound:
		c.onWound(env, m)
	}
}

// Expire implements protocol.Node.
func (c *coordinator) Expire(env *protocol.Env[store.Message], t protocol.Timer) {
	if t, ok := t.(kit.GroupCallTimer); ok {
		c.calls.Expire(env, t)
	}
}

// Broken implements protocol.Linked.
func (c *coordinator) Broken(env *protocol.Env[store.Message], from protocol.ID) {
	c.calls.Broken(env, from)
}

// onCommit begins a transaction, or tells what became of it.
func (c *coordinator) onCommit(env *protocol.Env[store.Message], from protocol.ID, m store.CommitRequest) {
	if m.Txn.Validate() != nil {
		return
	}
	if e := c.entries[m.Txn.ID]; e != nil {
		if e.decided != nil {
			env.Send(from, *e.decided)
		} else if !slices.Contains(e.clients, from) {
			e.clients = append(e.clients, from)
		}
		return
	}
	if len(c.entries) >= c.cfg.MaxTxns {
		env.Send(from, store.Busy{ID: m.Txn.ID})
		return
	}
	if m.Txn.ID.Time > uint64(max(env.Now+2*c.cfg.MaxAhead, 0)) {
		// No coordinator has such a clock. A record of it would have what is older count as too old.
		env.Send(from, store.Decided{ID: m.Txn.ID, Verdict: store.Aborted, Reason: store.Ahead})
		return
	}
	first := store.Priority{Began: m.Txn.ID.Time, Client: m.Txn.ID.Client}
	checks := m.Txn.ReadOnly() && m.Txn.Priority == first
	m.Txn.Priority = c.aged(env, m.Txn)
	parts, shards := c.cfg.Layout.Split(m.Txn)
	e := &entry{id: m.Txn.ID, shards: shards, clients: []protocol.ID{from}, votes: map[uint32]bool{}}
	c.entries[e.id] = e
	if checks {
		// One that is tried again waits for those who write: their locks may have been in its way.
		for i, k := range shards {
			c.calls.Ask(env, kit.GroupCall{Shard: k, ID: e.id, Command: check{Shard: k, Txn: parts[i]}})
		}
		return
	}
	if e.id.Time > uint64(max(env.Now+c.cfg.MaxAhead, 0)) {
		c.askAnchor(env, e, false, store.Ahead)
		return
	}
	for i, k := range shards {
		c.calls.Ask(env, kit.GroupCall{Shard: k, ID: e.id, Command: prepare{Txn: parts[i], Shards: shards,
			Only: len(shards) == 1, Waits: true}})
	}
}

// aged returns a transaction's priority, or a new one if no transaction is tried for so long:
// nobody goes before all others, time and again.
func (c *coordinator) aged(env *protocol.Env[store.Message], t store.Txn) store.Priority {
	now := max(env.Now, 0)
	if began := cmp.Or(t.Priority.Began, t.ID.Time); began < uint64(max(now-c.cfg.Retain, 0)) {
		return store.Priority{Began: uint64(now), Client: t.ID.Client}
	}
	return t.Priority
}

// begin aborts a transaction that another coordinator is at, or was, unless its anchor knows that
// it is committed.
func (c *coordinator) begin(env *protocol.Env[store.Message], id store.TxnID, shards []uint32, why store.Reason) {
	if c.entries[id] != nil || !c.cfg.Layout.ValidShards(shards) || id.IsZero() || len(c.entries) >= c.cfg.MaxTxns {
		return
	}
	e := &entry{id: id, shards: shards, votes: map[uint32]bool{}}
	c.entries[id] = e
	c.askAnchor(env, e, false, why)
}

// onWound has the anchor of a transaction abort it, unless it was asked for the decision.
func (c *coordinator) onWound(env *protocol.Env[store.Message], m wound) {
	if e := c.entries[m.ID]; e != nil {
		if e.decided == nil && !e.asked {
			c.askAnchor(env, e, false, store.Reserved)
		}
		return
	}
	c.begin(env, m.ID, m.Shards, store.Reserved)
}

func (c *coordinator) askAnchor(env *protocol.Env[store.Message], e *entry, commit bool, why store.Reason) {
	e.asked = true
	d := decide{ID: e.id, Shards: e.shards, Commit: commit, Anchor: true, Reason: why}
	c.calls.Ask(env, kit.GroupCall{Shard: e.shards[0], ID: e.id, Command: d})
}

// onTold takes what a shard says about a command.
func (c *coordinator) onTold(env *protocol.Env[store.Message], from protocol.ID, m told) {
	if m.Result.State == waiting {
		c.calls.Waits(env, from, m.Ref, longestWait)
		return
	}
	k, ok := c.calls.Answered(env, from, m.Ref)
	if !ok {
		return
	}
	e, res := c.entries[k.ID], m.Result
	if e == nil {
		return
	}
	switch k.Command.(type) {
	case check:
		c.onChecked(env, e, k.Shard, res)
	case prepare:
		c.onVote(env, e, k.Shard, res)
	case decide:
		if e.decided == nil {
			c.settle(env, e, k.Shard, res)
		} else {
			c.carriedOut(env, e, k.Shard)
		}
	case done:
		delete(c.entries, e.id)
	}
}

// onChecked takes what a shard says about the reads of a transaction that writes nothing. It is
// committed if all of them are still so: no shard knows of it, so none has to be told.
func (c *coordinator) onChecked(env *protocol.Env[store.Message], e *entry, shard uint32, res result) {
	if res.State == committed {
		e.votes[shard] = true
		if len(e.votes) < len(e.shards) {
			return
		}
	}
	c.tell(env, e, res)
	c.calls.Drop(env, e.id)
	delete(c.entries, e.id)
}

// onVote takes what a shard says about its part.
func (c *coordinator) onVote(env *protocol.Env[store.Message], e *entry, shard uint32, res result) {
	if e.decided != nil || e.asked {
		return
	}
	switch res.State {
	case prepared:
		e.votes[shard] = true
		if len(e.votes) == len(e.shards) {
			c.askAnchor(env, e, true, store.NoReason)
		}
	case forgotten:
		if len(e.shards) == 1 {
			c.settle(env, e, shard, res)
		} else {
			c.askAnchor(env, e, false, store.Old)
		}
	default:
		c.settle(env, e, shard, res)
	}
}

// settle takes the end of a transaction from a shard that knows it, tells the clients, and has the
// other shards carry it out.
func (c *coordinator) settle(env *protocol.Env[store.Message], e *entry, by uint32, res result) {
	c.tell(env, e, res)
	e.left = map[uint32]bool{}
	for _, k := range e.shards {
		if k != by {
			e.left[k] = true
			d := decide{ID: e.id, Shards: e.shards, Commit: res.State == committed, Anchor: k == e.shards[0],
				Reason: e.decided.Reason}
			c.calls.Ask(env, kit.GroupCall{Shard: k, ID: e.id, Command: d})
		}
	}
	c.maybeEnd(env, e)
}

// tell tells the clients how a transaction has ended.
func (c *coordinator) tell(env *protocol.Env[store.Message], e *entry, res result) {
	d := store.Decided{ID: e.id, Verdict: store.Aborted, Reason: res.Reason}
	switch {
	case res.State == committed:
		d.Verdict, d.Reason = store.Committed, store.NoReason
	case res.Reason == store.Old:
		d.Verdict = store.Unknown // it may have been carried out everywhere, and forgotten
	}
	e.decided = &d
	for _, id := range e.clients {
		env.Send(id, d)
	}
	e.clients = nil
}

// carriedOut notes that a shard has carried out the decision.
func (c *coordinator) carriedOut(env *protocol.Env[store.Message], e *entry, shard uint32) {
	delete(e.left, shard)
	c.maybeEnd(env, e)
}

// maybeEnd forgets a transaction whose shards have all carried out the decision. The anchor is told
// first, if it remembers a commit until then.
func (c *coordinator) maybeEnd(env *protocol.Env[store.Message], e *entry) {
	switch {
	case len(e.left) > 0:
	case e.decided.Verdict == store.Committed && len(e.shards) > 1:
		c.calls.Ask(env, kit.GroupCall{Shard: e.shards[0], ID: e.id, Command: done{e.id}})
	default:
		delete(c.entries, e.id)
	}
}

// Check implements protocol.Checked.
func (c *coordinator) Check() error {
	for id, e := range c.entries { //pure:ok any broken one is an error
		if e.id != id || e.decided == nil && e.left != nil {
			return fmt.Errorf("layered: coordinator %d: transaction %v is kept as %+v", c.cfg.ID, id, *e)
		}
	}
	return nil
}

package carousel

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// agent is what the thesis calls the client-side library [Carousel §3.1.3]: it finds the leaders,
// prepares at them and hands the transaction to its coordinator. There is one at each machine, and
// clients are at other machines of the same site. It forgets all with a crash: clients ask another
// one then, and all that it does can be repeated.
type agent struct {
	cfg   store.Config
	fast  bool
	where directory
	calls map[store.TxnID]*call
}

// call is a transaction that an agent is at.
type call struct {
	id      store.TxnID
	clients []protocol.ID
	parts   []callPart // in order
	txn     *store.Txn // to be committed; nil: the client still reads
	left    map[uint32]bool
	tries   int
	// Of a client that still reads, and has said which keys it will:
	declarer protocol.ID
	values   map[store.Key]store.Value
	answered bool
}

type callPart struct {
	ref    partRef
	reads  []store.Key
	writes []store.Key
}

// An agent asks again so many round trips after it has asked, and that often.
const (
	againAfter = 3
	maxTries   = 16
)

type againTimer struct{ id store.TxnID }

// newAgent returns an agent. The error names the field of the configuration that is wrong.
func newAgent(cfg store.Config, fast bool) (*agent, error) {
	cfg, err := withDefaults(cfg)
	if err != nil {
		return nil, err
	}
	if _, coordinators := cfg.Layout.Places(); coordinators[cfg.ID] == (store.Place{}) {
		if !slices.Contains(cfg.Layout.Sites[0].Coordinators, cfg.ID) {
			return nil, fmt.Errorf("carousel: Config.ID: %d is no coordinator of the layout", cfg.ID)
		}
	}
	return &agent{cfg: cfg, fast: fast, where: newDirectory(cfg.Layout), calls: map[store.TxnID]*call{}}, nil
}

// Start implements protocol.Node.
func (a *agent) Start(*protocol.Env[store.Message], []protocol.Record[store.Message]) {}

// Receive implements protocol.Node.
func (a *agent) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	switch m := msg.(type) {
	case store.CommitRequest:
		a.onCommit(env, from, m)
	case checkReply:
		a.onCheck(env, from, m)
	case store.Decided:
		if c := a.calls[m.ID]; c != nil && c.txn != nil {
			a.end(env, c, m)
		}
	case moved:
		if c := a.calls[m.ID]; a.where.correct(m) && c != nil {
			a.ask(env, c, func(shard uint32) bool { return shard == m.Shard })
		}
	}
}

// Expire implements protocol.Node.
func (a *agent) Expire(env *protocol.Env[store.Message], t protocol.Timer) {
	if t, ok := t.(againTimer); ok && a.calls[t.id] != nil {
		a.again(env, a.calls[t.id])
	}
}

// onCommit begins to commit a transaction.
func (a *agent) onCommit(env *protocol.Env[store.Message], from protocol.ID, m store.CommitRequest) {
	if m.Txn.Validate() != nil || len(m.Txn.Reads)+len(m.Txn.Writes) == 0 {
		return
	}
	if c := a.calls[m.Txn.ID]; c != nil {
		if !slices.Contains(c.clients, from) {
			c.clients = append(c.clients, from)
		}
		return
	}
	if len(a.calls) >= a.cfg.MaxTxns {
		env.Send(from, store.Busy{ID: m.Txn.ID})
		return
	}
	c := &call{id: m.Txn.ID, clients: []protocol.ID{from}, txn: &m.Txn, left: map[uint32]bool{}}
	a.calls[c.id] = c
	c.parts = a.split(m.Txn)
	for _, p := range c.parts {
		c.left[p.ref.Shard] = true
	}
	a.again(env, c)
}

// split returns a transaction's parts, of one step each.
func (a *agent) split(t store.Txn) (parts []callPart) {
	of := map[uint32]*callPart{}
	at := func(key store.Key) *callPart {
		shard := uint32(a.cfg.Layout.ShardOf(key))
		if of[shard] == nil {
			of[shard] = &callPart{ref: partRef{shard, 1}}
		}
		return of[shard]
	}
	for _, r := range t.Reads {
		p := at(r.Key)
		p.reads = append(p.reads, r.Key)
	}
	for _, w := range t.Writes {
		p := at(w.Key)
		p.writes = append(p.writes, w.Key)
	}
	for _, p := range of { //pure:ok they are sorted
		parts = append(parts, *p)
	}
	slices.SortFunc(parts, func(p, q callPart) int { return cmp.Compare(p.ref.Shard, q.ref.Shard) })
	return parts
}

// again asks whoever has not answered, for the first time too.
func (a *agent) again(env *protocol.Env[store.Message], c *call) {
	if c.tries == maxTries {
		delete(a.calls, c.id) // the client has asked another agent by now, or asks this one again
		return
	}
	if c.tries > 0 && c.tries%2 == 0 {
		a.where.tryNext(a.coord(c))
		for _, k := range slices.Sorted(maps.Keys(c.left)) {
			if k != a.coord(c) {
				a.where.tryNext(k)
			}
		}
	}
	c.tries++
	a.ask(env, c, func(uint32) bool { return true })
	env.After(againAfter*a.cfg.RoundTrip, againTimer{c.id})
}

func (a *agent) coord(c *call) uint32 { return coordOf(c.id, len(a.where.leads)) }

// ask asks the partitions of which that is said, as participants and as the coordinator.
func (a *agent) ask(env *protocol.Env[store.Message], c *call, which func(uint32) bool) {
	if c.txn.ReadOnly() {
		a.askChecks(env, c, which)
		return
	}
	for _, p := range c.parts {
		if which(p.ref.Shard) {
			a.prepare(env, c, p)
		}
	}
	if coord := a.coord(c); which(coord) {
		m := commitRequest{ID: c.id, commitRecord: commitRecord{Reads: c.txn.Reads, Writes: c.txn.Writes}}
		for _, p := range c.parts {
			m.Parts = append(m.Parts, p.ref)
		}
		env.Send(a.where.leader(coord), m)
	}
}

// prepare asks a partition's leader, or on the fast path all its members, to prepare a part.
func (a *agent) prepare(env *protocol.Env[store.Message], c *call, p callPart) {
	m := prepareRequest{Part: partID{c.id, p.ref.Step}, Coord: a.coord(c), Reads: p.reads, Writes: p.writes, Leader: true}
	leader := a.where.leader(p.ref.Shard)
	env.Send(leader, m)
	if !a.fast {
		return
	}
	m.Leader = false
	for _, id := range a.where.members[p.ref.Shard] {
		if id != leader {
			env.Send(id, m)
		}
	}
}

// askChecks validates what a transaction has read that writes nothing: there is nothing that a
// coordinator would have to remember.
func (a *agent) askChecks(env *protocol.Env[store.Message], c *call, which func(uint32) bool) {
	for _, p := range c.parts {
		k := p.ref.Shard
		if !c.left[k] || !which(k) {
			continue
		}
		m := checkRequest{ID: c.id}
		for _, r := range c.txn.Reads {
			if uint32(a.cfg.Layout.ShardOf(r.Key)) == k {
				m.Reads = append(m.Reads, r)
			}
		}
		env.Send(a.where.leader(k), m)
	}
}

func (a *agent) onCheck(env *protocol.Env[store.Message], from protocol.ID, m checkReply) {
	c := a.calls[m.ID]
	if c == nil || c.txn == nil || !c.txn.ReadOnly() || !a.where.isMember(m.Shard, from) {
		return
	}
	d := store.Decided{ID: c.id, Verdict: store.Committed}
	if m.Reason != store.NoReason {
		d.Verdict, d.Reason = store.Aborted, m.Reason
	} else if delete(c.left, m.Shard); len(c.left) > 0 {
		return
	}
	a.end(env, c, d)
}

// end tells clients how a transaction has ended.
func (a *agent) end(env *protocol.Env[store.Message], c *call, d store.Decided) {
	for _, to := range c.clients {
		env.Send(to, d)
	}
	delete(a.calls, c.id)
	env.Stop(againTimer{c.id})
}

// Check implements protocol.Checked.
func (a *agent) Check() error {
	for id, c := range a.calls { //pure:ok any broken one is an error
		if c.id != id || len(c.parts) == 0 {
			return fmt.Errorf("carousel: agent %d: transaction %v is kept as %+v", a.cfg.ID, id, *c)
		}
	}
	return nil
}

// coordBits are those of a transaction's ID that name its coordinating partition: so whoever knows
// the ID knows whom to ask for its end.
const coordBits = 12

func coordOf(id store.TxnID, shards int) uint32 {
	return uint32(uint64(id.Client) & (1<<coordBits - 1) % uint64(shards))
}

// Tell apart: Version.Client of what a transaction writes is its ID's, and Version.Time is not.
func nameOf(n uint64, coord uint32) store.ClientID {
	return store.ClientID(n<<coordBits | uint64(coord))
}

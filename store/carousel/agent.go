package carousel

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// agent is what the thesis calls the client-side library [Carousel §3.1.3]: it finds the leaders,
// prepares at them and hands the transaction to its coordinator. There is one at each machine, and
// clients are at other machines of the same site. It forgets all with a crash: clients ask another
// one then, and all that it does can be repeated.
type agent struct {
	cfg   store.Config
	fast  bool
	where directory
	// silent are partitions whose leader has let something wait: another one may lead.
	silent map[uint32]bool
	places map[protocol.ID]store.Place // of servers
	site   int
	calls  map[store.TxnID]*call
	// clocks are measured as transactions that only read get their timestamps here.
	clocks clocks
	near   nearby
	delays delays // of prepares that are ordered by their arrival
}

// call is a transaction that an agent is at.
type call struct {
	id      store.TxnID
	clients []protocol.ID
	parts   []callPart      // in order
	txn     *store.Txn      // to be committed; nil: the client still reads
	view    *view           // of one that writes nothing
	left    map[uint32]bool // likewise: partitions that have not answered
	tries   int
	// Of one that was declared:
	declared *store.DeclareRequest // at first
	steps    map[uint32]*store.DeclareRequest
	values   map[store.Key]store.Held
	heard    time.Duration // when the client was, last
	// ended is how it has ended before its client asked for a commit; nil: it goes on.
	ended *store.Decided
	// held is for how long its prepares are held at most by leaders, to be handled in order.
	held time.Duration
	// current is what leaders hold in place of what it has read, as far as they have said.
	current []store.Current
}

type callPart struct {
	ref    partRef
	reads  []store.Key
	writes []store.Key
	early  bool   // it was declared,
	step   uint32 // in this step
	// led says that what its keys hold is for the leader to say, who prepares them.
	led bool
	// stood are the versions of reads that the transaction stands on; nil: it has not said so yet.
	stood []store.Version
}

// An agent asks again so many round trips after it has asked, and that often.
const (
	againAfter = 3
	maxTries   = 16
)

// Timers of an agent.
type (
	againTimer struct{ id store.TxnID }
	probeTimer struct{}
)

// newAgent returns an agent. The error names the field of the configuration that is wrong.
func newAgent(cfg store.Config, mode variant) (*agent, error) {
	cfg, place, err := kit.CoordinatorConfig("carousel", cfg)
	if err != nil {
		return nil, err
	}
	shards, _ := cfg.Layout.Places()
	return &agent{cfg: cfg, fast: mode.fast(), where: newDirectory(cfg.Layout), silent: map[uint32]bool{},
		calls: map[store.TxnID]*call{}, places: shards, site: place.Site, clocks: newClocks(cfg, place.Site),
		near: nearby{members: map[protocol.ID]nearMember{}}, delays: newDelays()}, nil
}

// Start implements protocol.Node.
func (a *agent) Start(env *protocol.Env[store.Message], _ []protocol.Record[store.Message]) {
	a.probe(env)
}

// probe measures clocks now and then.
func (a *agent) probe(env *protocol.Env[store.Message]) {
	a.clocks.ask(env)
	env.After(probeEvery*a.cfg.RoundTrip, probeTimer{})
}

// Receive implements protocol.Node.
func (a *agent) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	switch m := msg.(type) {
	case store.CommitRequest:
		a.onCommit(env, from, m)
	case store.DeclareRequest:
		a.onDeclare(env, from, m)
	case store.AbandonRequest:
		a.onAbort(env, m)
	case valuesReply:
		a.onValues(env, from, m)
	case staleReply:
		a.onStale(from, m)
	case snapshotReply:
		a.onSnapshotReply(env, from, m)
	case closedReply:
		a.onClosedReply(env, from, m)
	case checkReply:
		a.onCheck(env, from, m)
	case timeRequest:
		onTimeRequest(env, from, m)
	case timeReply:
		a.clocks.took(env, from, m)
		a.tookDelay(env, from, m)
	case store.Decided:
		a.onDecided(env, m)
	case moved:
		a.onMoved(env, from, m)
	}
}

// Expire implements protocol.Node.
func (a *agent) Expire(env *protocol.Env[store.Message], t protocol.Timer) {
	switch t := t.(type) {
	case againTimer:
		if c := a.calls[t.id]; c != nil {
			a.again(env, c)
		}
	case probeTimer:
		a.probe(env)
	case closedTimer:
		a.askClosed(env)
	case delayTimer:
		a.askDelays(env)
	}
}

// onDeclare begins a transaction: its parts are prepared while they are read. A client that is
// still there says it again, and so does the agent to the coordinator.
func (a *agent) onDeclare(env *protocol.Env[store.Message], from protocol.ID, m store.DeclareRequest) {
	c := a.calls[m.ID]
	switch {
	case c == nil && m.Validate() != nil || m.Step > store.MaxSteps:
		return
	case c == nil && len(a.calls) >= a.cfg.MaxTxns:
		env.Send(from, store.Busy{ID: m.ID})
		return
	case c == nil:
		c = &call{id: m.ID, declared: &m, values: map[store.Key]store.Held{},
			steps: map[uint32]*store.DeclareRequest{m.Step: &m}}
		a.calls[c.id] = c
		a.reach(c, m)
		if m.Step == 0 && len(m.Writes) == 0 {
			a.declareView(env, c)
		}
	case c.txn != nil || c.declared == nil || c.view != nil && m.Step > 0:
		return
	case c.ended != nil:
		c.heard = env.Now
		c.answerEnded(env, from, m)
		return
	case c.steps[m.Step] == nil && m.Validate() == nil && m.Step > 0:
		c.steps[m.Step] = &m
		a.reach(c, m)
		a.prepareAll(env, c, func(p callPart) bool { return p.step == m.Step }, a.leaders)
	}
	if !slices.Contains(c.clients, from) {
		c.clients = append(c.clients, from)
	}
	c.heard = env.Now
	if c.tries == 0 {
		a.again(env, c)
	} else if c.view == nil {
		env.Send(a.where.leader(a.coord(c)), c.began())
	}
	if c.view == nil { // else it is answered when it has seen all
		a.answerDeclare(env, c)
	}
}

// reach adds what was declared in a step to a transaction's parts: keys that were not before.
func (a *agent) reach(c *call, m store.DeclareRequest) {
	fresh := a.split(c, c.lacks(m.Reads, func(p callPart) []store.Key { return p.reads }),
		c.lacks(m.Writes, func(p callPart) []store.Key { return p.writes }))
	for _, p := range fresh {
		p.early, p.led, p.step = true, m.Step > 0, m.Step
		c.parts = append(c.parts, p)
	}
}

// lacks returns those of some keys that no part has.
func (c *call) lacks(keys []store.Key, of func(callPart) []store.Key) (out []store.Key) {
	for _, k := range keys {
		if !slices.ContainsFunc(c.parts, func(p callPart) bool { return has(of(p), k) }) {
			out = append(out, k)
		}
	}
	return out
}

// began tells the coordinator of a transaction that still reads, and that its client is there.
func (c *call) began() beginRequest { return beginRequest{c.id, c.shards()} }

func (c *call) shards() (out []uint32) {
	for _, p := range c.parts {
		out = union(out, []uint32{p.ref.Shard})
	}
	return out
}

// onValues takes what a partition holds: from its leader or, on the fast path, from a member that
// is nearer. Of what a transaction's code has reached the leader's word alone counts, as it is to
// confirm a guess that the client has from elsewhere.
func (a *agent) onValues(env *protocol.Env[store.Message], from protocol.ID, m valuesReply) {
	c := a.calls[m.Part.ID]
	if c == nil || c.txn != nil || c.view != nil || !a.where.isMember(m.Shard, from) {
		return
	}
	if m.Leader {
		a.leads(from, m.Shard)
	}
	i := slices.IndexFunc(c.parts, func(p callPart) bool { return p.ref == partRef{m.Shard, m.Part.Step} })
	if i < 0 || len(m.Values) != len(c.parts[i].reads) || c.parts[i].led && !m.Leader {
		return
	}
	before := len(c.values)
	for j, k := range c.parts[i].reads {
		if _, ok := c.values[k]; !ok {
			c.values[k] = m.Values[j]
		}
	}
	if len(c.values) > before {
		a.answerDeclare(env, c)
	}
}

// answerDeclare answers the client for each step of which all values are there.
func (a *agent) answerDeclare(env *protocol.Env[store.Message], c *call) {
	for _, n := range slices.Sorted(maps.Keys(c.steps)) {
		step := c.steps[n]
		if !c.hasAll(step.Reads) {
			continue
		}
		out := store.DeclareReply{ID: c.id, Step: n}
		if v := c.view; v != nil && c.declared.MaxAge > 0 && (v.stage == byClosed || v.stage == bySnapshot) {
			out.At, out.Age = uint64(v.at), max(env.Now-time.Duration(v.at), 0)
		}
		for _, k := range step.Reads {
			out.Values = append(out.Values, c.values[k])
		}
		out.Values = store.FitValues(out.Values, maxValuesBytes)
		for _, to := range c.clients {
			env.Send(to, out)
		}
	}
}

// answerEnded answers a step of a transaction that has ended already. Nothing is prepared for it,
// so what has not come by now is for the client to read.
func (c *call) answerEnded(env *protocol.Env[store.Message], to protocol.ID, m store.DeclareRequest) {
	out := store.DeclareReply{ID: c.id, Step: m.Step}
	for _, k := range m.Reads {
		v, ok := c.values[k]
		if !ok {
			v = store.Held{Large: true}
		}
		out.Values = append(out.Values, v)
	}
	out.Values = store.FitValues(out.Values, maxValuesBytes)
	env.Send(to, out)
}

// hasAll reports whether the values of some keys are there.
func (c *call) hasAll(keys []store.Key) bool {
	return !slices.ContainsFunc(keys, func(k store.Key) bool {
		_, ok := c.values[k]
		return !ok
	})
}

// waits reports whether something that was declared has no value yet.
func (c *call) waits() bool {
	for _, step := range c.steps { //pure:ok whether there is one
		if !c.hasAll(step.Reads) {
			return true
		}
	}
	return false
}

// onAbort ends a transaction that its client has given up while it was reading.
func (a *agent) onAbort(env *protocol.Env[store.Message], m store.AbandonRequest) {
	if c := a.calls[m.ID]; c != nil && c.txn == nil {
		if c.view == nil && c.ended == nil {
			env.Send(a.where.leader(a.coord(c)), abortRequest{c.id, c.shards()})
		}
		delete(a.calls, c.id)
		env.Stop(againTimer{c.id})
	}
}

// onCommit begins to commit a transaction, or goes on with one that was declared. Keys that it has
// not declared are prepared in a step of their own.
func (a *agent) onCommit(env *protocol.Env[store.Message], from protocol.ID, m store.CommitRequest) {
	if m.Txn.Validate() != nil || len(m.Txn.Reads)+len(m.Txn.Writes) == 0 {
		return
	}
	c := a.calls[m.Txn.ID]
	switch {
	case c != nil && c.txn != nil:
		if !slices.Contains(c.clients, from) {
			c.clients = append(c.clients, from)
		}
		return
	case c == nil && len(a.calls) >= a.cfg.MaxTxns:
		env.Send(from, store.Busy{ID: m.Txn.ID})
		return
	case c == nil || c.view != nil: // what has only read has prepared nothing
		c = &call{id: m.Txn.ID}
		a.calls[c.id] = c
	}
	c.clients, c.txn, c.tries = []protocol.ID{from}, &m.Txn, 0
	if c.ended != nil {
		a.end(env, c, *c.ended)
		return
	}
	var reads, writes []store.Key
	for _, r := range m.Txn.Reads {
		reads = append(reads, r.Key)
	}
	for _, w := range m.Txn.Writes {
		writes = append(writes, w.Key)
	}
	fresh := a.split(c, c.lacks(reads, func(p callPart) []store.Key { return p.reads }),
		c.lacks(writes, func(p callPart) []store.Key { return p.writes }))
	early := c.parts
	for _, p := range fresh {
		p.stood = versionsOf(m.Txn.Reads, p.reads)
		c.parts = append(c.parts, p)
	}
	if m.Txn.ReadOnly() && len(early) == 0 {
		c.view = &view{reads: m.Txn.Reads, strict: !m.Serializable}
		a.beginView(env, c)
	}
	a.again(env, c)
}

// versionsOf returns the versions that keys were read with.
func versionsOf(reads []store.Read, keys []store.Key) (out []store.Version) {
	for _, k := range keys {
		i, _ := slices.BinarySearchFunc(reads, k, func(r store.Read, k store.Key) int { return cmp.Compare(r.Key, k) })
		out = append(out, reads[i].Version)
	}
	return out
}

func has(keys []store.Key, key store.Key) bool {
	_, ok := slices.BinarySearch(keys, key)
	return ok
}

// split returns the parts that keys belong to: at each partition the transaction's next one.
func (a *agent) split(c *call, reads, writes []store.Key) (parts []callPart) {
	of := map[uint32]*callPart{}
	at := func(key store.Key) *callPart {
		shard := uint32(a.cfg.Layout.ShardOf(key))
		if of[shard] == nil {
			n := uint32(1)
			for _, p := range c.parts {
				if p.ref.Shard == shard {
					n++
				}
			}
			of[shard] = &callPart{ref: partRef{shard, n}}
		}
		return of[shard]
	}
	for _, k := range reads {
		p := at(k)
		p.reads = append(p.reads, k)
	}
	for _, k := range writes {
		p := at(k)
		p.writes = append(p.writes, k)
	}
	for _, p := range of { //pure:ok they are sorted
		parts = append(parts, *p)
	}
	slices.SortFunc(parts, func(p, q callPart) int { return cmp.Compare(p.ref.Shard, q.ref.Shard) })
	return parts
}

// priority returns the age of a transaction that is tried again, zero for the first try.
func (c *call) priority() store.Priority {
	var p store.Priority
	switch {
	case c.txn != nil:
		p = c.txn.Priority
	case c.declared != nil:
		p = c.declared.Priority
	}
	if p == ageOf(c.id) {
		return store.Priority{}
	}
	return p
}

// onStale takes what a leader holds in place of what a transaction has read.
func (a *agent) onStale(from protocol.ID, m staleReply) {
	c := a.calls[m.ID]
	if c == nil || c.txn == nil || !a.where.isMember(m.Shard, from) {
		return
	}
	for _, now := range m.Current {
		if !slices.ContainsFunc(c.current, func(old store.Current) bool { return old.Key == now.Key }) {
			c.current = append(c.current, now)
		}
	}
}

// onDecided takes a transaction's end. If its client still reads, one of its parts was refused:
// nothing more is prepared for it, and the client is told when it asks for the commit.
func (a *agent) onDecided(env *protocol.Env[store.Message], m store.Decided) {
	switch c := a.calls[m.ID]; {
	case c == nil:
	case c.txn != nil:
		a.end(env, c, m)
	case c.declared != nil && c.view == nil:
		c.ended = &m
	}
}

// end tells clients how a transaction has ended and, if what it has read was old, what there is.
func (a *agent) end(env *protocol.Env[store.Message], c *call, d store.Decided) {
	if d.Verdict == store.Aborted {
		d.Current = store.FitCurrent(c.current, maxValuesBytes)
	}
	d.Held = c.held
	for _, to := range c.clients {
		if c.txn != nil { // else they wait for what they have declared to read, and ask again
			env.Send(to, d)
		}
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

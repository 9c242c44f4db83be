package str

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// progress is how far a transaction is at its coordinator.
type progress uint8

const (
	running    progress = iota // it reads
	certifying                 // its site certifies what it writes
	locally                    // it is committed locally, and is being certified everywhere
	over                       // it is final, or aborted
)

// txn is a transaction that has begun at this coordinator.
type txn struct {
	id     store.TxnID
	client protocol.ID
	at     clock.Stamp // its snapshot [STR: RS]
	stage  progress
	began  time.Duration
	heard  time.Duration // when its client was last heard of
	steps  map[uint32]*step

	// What it has read says which of the coordinator's transactions it depends on, up to which commits
	// none of these may have been overtaken (OLC, the least), and the latest final commit that it has
	// seen (FFC) [STR §6.2].
	on      map[store.TxnID]*txn // not final; to read, to be certified on top of
	by      map[store.TxnID]*txn // depend on it
	unsafe  map[store.TxnID]clock.Stamp
	latest  clock.Stamp
	open    []*reading // not answered; Invariant: coordinator.reads has them, and their refs ascend
	blocked []*reading // answered, and held back while one that it depends on is unsafe at the latest
	commits bool       // the client has asked for the commit

	tallied
	course

	speculation

	certification
	ending
}

// step is what a client has asked to read at once.
type step struct {
	keys   []store.Key
	values []store.Held
	left   int
}

// reading is a read of a transaction.
type reading struct {
	ref   uint64
	t     *txn
	step  *step
	i     int // which of the step's keys
	key   store.Key
	to    protocol.ID // the server that was asked last
	asked time.Duration
	came  time.Duration // when its value did
	tries int
	value store.Value
	by    *txn // who has written it, if that is not final
}

// onDeclare begins a transaction, or has it read further keys, or says again what they hold.
func (c *coordinator) onDeclare(env *protocol.Env[store.Message], from protocol.ID, m store.DeclareRequest) {
	if m.Validate() != nil || m.Step == 0 {
		return
	}
	t := c.txns[m.ID]
	if t == nil {
		if _, ended := c.past.of[m.ID]; ended {
			return // this comes late
		}
		switch {
		case m.Step != 1 || m.At != 0 || clock.Stamp(m.NotBefore) > clock.Stamp(env.Now+c.cfg.MaxAhead):
			env.Send(from, store.DeclareReply{ID: m.ID, Step: m.Step})
			return
		case len(c.txns) >= c.cfg.MaxTxns:
			env.Send(from, store.Busy{ID: m.ID})
			return
		}
		t = c.begin(env, m.ID, from, clock.Stamp(m.NotBefore))
	}
	if t.client != from || m.At > 0 && clock.Stamp(m.At) != t.at {
		return
	}
	t.heard = env.Now
	s := t.steps[m.Step]
	switch {
	case s == nil && t.stage == running:
		s = &step{keys: m.Reads, values: make([]store.Held, len(m.Reads)), left: len(m.Reads)}
		t.steps[m.Step] = s
		for i, key := range m.Reads {
			c.read(env, &reading{t: t, step: s, i: i, key: key})
		}
	case s == nil:
		env.Send(from, store.DeclareReply{ID: m.ID, Step: m.Step})
	case s.left == 0:
		c.reply(env, t, m.Step, s)
	default: // it takes time, and the client need not ask elsewhere
		env.Send(from, store.DeclareReply{ID: m.ID, Step: m.Step, At: uint64(t.at)})
	}
}

// begin gives a transaction its snapshot: the present, and what its session has seen (S12).
func (c *coordinator) begin(
	env *protocol.Env[store.Message], id store.TxnID, client protocol.ID, notBefore clock.Stamp,
) *txn {
	t := &txn{id: id, client: client, at: max(clock.Stamp(env.Now), notBefore, 1), began: env.Now, heard: env.Now,
		steps: map[uint32]*step{},
		on:    map[store.TxnID]*txn{}, by: map[store.TxnID]*txn{}, unsafe: map[store.TxnID]clock.Stamp{}}
	c.txns[id], c.begun = t, max(c.begun, t.at)
	c.saw(event{what: hasBegun, t: t})
	env.After(lookTrips*c.cfg.RoundTrip, txnTimer{id})
	if env.Now-c.pinged > c.cfg.RoundTrip/2 {
		c.pingAll(env)
	}
	c.table.tidy()
	return t
}

// read finds out what a transaction's snapshot has under a key.
func (c *coordinator) read(env *protocol.Env[store.Message], r *reading) {
	if c.mode.speculates {
		if by := c.table.seen(r.key, r.t.at); by != nil && by.shows(r.t.at) {
			by.read = max(by.read, r.t.at)
			r.by = by
			r.value = by.valueOf(r.key)
			c.took(env, r)
			return
		}
	}
	if r.ref == 0 {
		c.last++
		r.ref = c.last
		c.reads[r.ref] = r
		r.t.open = append(r.t.open, r)
	}
	c.askFor(env, r)
}

// shows reports whether a snapshot shows what a transaction that is committed locally has written.
func (t *txn) shows(at clock.Stamp) bool { return t.local <= at && at <= t.bound && !t.agreed }

// valueOf returns what a transaction that is committed locally has written under a key.
func (t *txn) valueOf(key store.Key) store.Value {
	i, _ := slices.BinarySearchFunc(t.writes, key, func(w store.Write, k store.Key) int {
		switch {
		case w.Key < k:
			return -1
		case w.Key > k:
			return 1
		}
		return 0
	})
	w := t.writes[i]
	return store.Value{Version: store.Version{Time: uint64(t.local), Client: t.id.Client}, Present: !w.Delete,
		Bytes: w.Bytes}
}

// askFor asks the nearest server that has the key, or all if it is not known yet which that is, or
// another one after it was silent.
func (c *coordinator) askFor(env *protocol.Env[store.Message], r *reading) {
	shard := c.cfg.Layout.ShardOf(r.key)
	sites := c.cfg.Layout.HoldersOf(shard)
	mute := func(site int) int {
		if id := c.cfg.Layout.Sites[site].Shards[shard]; c.mute[id] || c.isIdle(env, id) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(sites, func(a, b int) int {
		return cmp.Or(mute(a)-mute(b), cmp.Compare(c.distance(a), c.distance(b)))
	})
	nearest := sites[0]
	if mute(nearest) > 0 { // as all are
		nearest = sites[r.tries%len(sites)]
	}
	r.to, r.asked = c.cfg.Layout.Sites[nearest].Shards[shard], env.Now
	if nearest != c.place.Site {
		c.table.readAt(r.key, r.t.at) // (S4)
	}
	for _, site := range sites {
		if site == nearest || r.tries == 0 && c.distance(nearest) == far {
			env.Send(c.cfg.Layout.Sites[site].Shards[shard],
				readAt{Ref: r.ref, Key: r.key, At: r.t.at, Skip: c.table.later(r.key, r.t.at)})
		}
	}
	env.After(time.Duration(min(2*r.tries+2, readTrips))*c.cfg.RoundTrip, readTimer{r.ref})
}

// far is how far a site is that nobody knows.
const far = time.Duration(math.MaxInt32)

// distance is how long a site takes to answer, as far as is known.
func (c *coordinator) distance(site int) time.Duration {
	switch {
	case site == c.place.Site:
		return 0
	case c.away[site] > 0:
		return c.away[site]
	}
	return far
}

const (
	// readTrips is for how many round trips a read waits at most until another server is asked, the
	// first time half as many: it may wait for somebody who writes the key.
	readTrips = 4
	// lookTrips is for how many round trips what a transaction waits for may be on its way.
	lookTrips = 1
	// silentTrips is for how many round trips a client may be silent while its transaction reads.
	silentTrips = 16
)

// readAgain asks again for what was not answered.
func (c *coordinator) readAgain(env *protocol.Env[store.Message], ref uint64) {
	if r := c.reads[ref]; r != nil {
		r.tries++
		c.mute[r.to] = true
		c.read(env, r)
	}
}

// onFound takes what a server says that a snapshot has.
func (c *coordinator) onFound(env *protocol.Env[store.Message], from protocol.ID, m found) {
	r := c.reads[m.Ref]
	if r == nil || c.places[from].Index != c.cfg.Layout.ShardOf(r.key) {
		return
	}
	switch m.Reason {
	case store.NoReason:
	case store.Old, store.Ahead: // nobody else has what it needs
		c.abort(env, r.t, m.Reason)
		return
	default:
		if m.Reason == store.Fenced && c.saidIdle(env, from, r) {
			return
		}
		r.tries++
		env.After(c.cfg.RoundTrip/4, readTimer{m.Ref})
		return
	}
	if c.mode.speculates && c.table.lacks(r.key, r.t.at, m.Value.Version) {
		return // it is asked for again
	}
	r.value, r.by, r.to = m.Value, nil, from
	c.took(env, r)
}

// took takes what a read has found: a version and, if it is not final, whose it is.
func (c *coordinator) took(env *protocol.Env[store.Message], r *reading) {
	t := r.t
	if r.ref != 0 {
		delete(c.reads, r.ref)
		t.open = slices.DeleteFunc(t.open, func(o *reading) bool { return o == r })
		env.Stop(readTimer{r.ref})
	}
	if r.by != nil {
		c.depend(t, r.by)
		c.saw(event{what: readsFrom, t: t, on: r.by})
		t.course.reads(r.key, r.by.id)
		for id, at := range r.by.unsafe { //pure:ok a map is copied
			t.unsafe[id] = at
		}
		t.latest = max(t.latest, r.by.latest)
	} else {
		t.latest = max(t.latest, clock.Stamp(min(r.value.Version.Time, math.MaxInt64)))
	}
	r.came = env.Now
	t.blocked = append(t.blocked, r)
	c.deliver(env, t)
}

// depend has a transaction depend on another one that is not final.
func (c *coordinator) depend(t, on *txn) {
	t.on[on.id] = on
	on.by[t.id] = t
}

// awaitsWord reports whether a shard's word is to come on something that the transaction depends
// on.
func (t *txn) awaitsWord() bool {
	if len(t.on) == 0 {
		return false
	}
	seen := map[store.TxnID]bool{} // there may be many ways from one to another
	var walk func(t *txn) bool
	walk = func(t *txn) bool {
		for id, on := range t.on { //pure:ok any one is enough
			if !seen[id] {
				if seen[id] = true; on.agreed || walk(on) {
					return true
				}
			}
		}
		return false
	}
	return walk(t)
}

// deliver hands out what was read, unless the snapshot may have two transactions that conflict: one
// that may turn out to have been overtaken, and one that is final and later than that one is safe
// for [STR §6.2] (S2). While the first shard of one that the snapshot shows decides, servers
// may know already that it is later than the snapshot, and this coordinator does not.
func (c *coordinator) deliver(env *protocol.Env[store.Message], t *txn) {
	if t.awaitsWord() {
		return
	}
	for _, at := range t.unsafe { //pure:ok any one is enough
		if at < t.latest {
			return
		}
	}
	blocked := t.blocked
	t.blocked = nil
	for _, r := range blocked {
		site := c.place.Site
		if r.to != 0 {
			site = c.places[r.to].Site
		}
		r.step.values[r.i] = store.Held{Value: r.value, Site: uint32(site)}
		r.step.left--
		c.saw(event{what: isDelivered, t: t, read: r})
		if r.step.left == 0 {
			for n, s := range t.steps { //pure:ok it is the one that is equal
				if s == r.step {
					c.reply(env, t, n, s)
				}
			}
		}
	}
	c.maybeEndRead(env, t)
}

// reply tells a client what its step has read.
func (c *coordinator) reply(env *protocol.Env[store.Message], t *txn, n uint32, s *step) {
	env.Send(t.client, store.DeclareReply{ID: t.id, Step: n, At: uint64(t.at),
		Values: store.FitValues(slices.Clone(s.values), store.MaxTxnBytes)})
}

// onCommit certifies a transaction, or tells what became of it. s is nil unless its client goes on
// when it is committed locally.
func (c *coordinator) onCommit(
	env *protocol.Env[store.Message], from protocol.ID, m store.CommitRequest, s *store.SpeculateRequest,
) {
	if m.Txn.Validate() != nil {
		return
	}
	t := c.txns[m.Txn.ID]
	switch {
	case t != nil && t.stage == over && t.decided != nil:
		env.Send(from, asAsked(*t.decided, m))
		return
	case t != nil && t.commits:
		t.heard = env.Now
		t.addClient(from)
		c.speculatesOn(env, t, s)
		return
	case t != nil && m.Recover && !m.Txn.ReadOnly():
		// It was asked for before. If this coordinator was started again since, and has begun it anew,
		// it may be prepared everywhere as of another snapshot.
		c.end(env, t)
		fallthrough
	case t == nil: // each one begins by a declaration
		if d := c.past.of[m.Txn.ID]; !d.ID.IsZero() {
			env.Send(from, asAsked(d, m))
		} else {
			c.askWhatBecame(env, from, m.Txn)
		}
		return
	}
	t.heard = env.Now
	t.addClient(from)
	t.commits, t.submitted, t.explain = true, env.Now, m.Explain
	if !t.gave(m.Txn.Reads) || !c.speculates(env, t, s) {
		c.abort(env, t, store.StaleRead)
		return
	}
	if m.Txn.ReadOnly() {
		c.maybeEndRead(env, t)
		c.tellLocal(env, t)
		return
	}
	c.dropReads(env, t)
	t.writes = m.Txn.Writes
	c.certify(env, t)
}

// gave reports whether everything that the transaction stands on was read here. What was read
// before this coordinator restarted is of another snapshot.
func (t *txn) gave(reads []store.Read) bool {
	given := map[store.Key]store.Version{}
	for _, s := range t.steps { //pure:ok a map is filled, and no key is read at two versions
		for i, key := range s.keys {
			if s.left == 0 {
				given[key] = s.values[i].Value.Version
			}
		}
	}
	return !slices.ContainsFunc(reads, func(r store.Read) bool {
		v, ok := given[r.Key]
		return !ok || v != r.Version
	})
}

// dropReads gives up reads that nobody waits for any more.
func (c *coordinator) dropReads(env *protocol.Env[store.Message], t *txn) {
	for _, r := range t.open {
		delete(c.reads, r.ref)
		env.Stop(readTimer{r.ref})
	}
	t.open, t.blocked = nil, nil
}

// maybeEndRead commits a transaction that only reads once all is final that it has read.
func (c *coordinator) maybeEndRead(env *protocol.Env[store.Message], t *txn) {
	if t.stage == running && t.commits && !t.held && len(t.writes)+len(t.on)+len(t.blocked) == 0 {
		c.saw(event{what: isFinal, t: t})
		c.tell(env, t, store.Decided{ID: t.id, Verdict: store.Committed})
		c.end(env, t)
	}
}

// end forgets a transaction of which nothing is left to do, here or at other nodes.
func (c *coordinator) end(env *protocol.Env[store.Message], t *txn) {
	c.dropReads(env, t)
	for _, on := range t.on { //pure:ok each is another one's
		delete(on.by, t.id)
	}
	if t.stage == running && t.decided == nil {
		c.saw(event{what: isAborted, t: t})
	}
	t.stage = over
	delete(c.txns, t.id)
	env.Stop(txnTimer{t.id})
	c.past.add(t, env.Now, env.Now-pastTrips*c.cfg.RoundTrip)
	c.leaves(env, t)
}

// past is how the latest transactions have ended, so that none begins a second time.
type past struct {
	of    map[store.TxnID]store.Decided // zero: it was given up, and its commit was not asked for here
	order []pastTxn                     // the first one ended first
}

type pastTxn struct {
	id store.TxnID
	at time.Duration
}

// pastTrips is for how many round trips a coordinator remembers how a transaction has ended.
const pastTrips = 20

// add remembers a transaction, and forgets those that have ended before a time.
func (p *past) add(t *txn, now, since time.Duration) {
	var d store.Decided
	if t.decided != nil {
		d = *t.decided
	}
	p.of[t.id], p.order = d, append(p.order, pastTxn{t.id, now})
	for p.order[0].at < since {
		delete(p.of, p.order[0].id)
		p.order = p.order[1:]
	}
}

// look gives up a transaction whose client is silent, and asks again for what is missing.
func (c *coordinator) look(env *protocol.Env[store.Message], t *txn) {
	env.After(lookTrips*c.cfg.RoundTrip, txnTimer{t.id})
	if c.lapsed(env, t) {
		c.abort(env, t, store.Lapsed)
		return
	}
	c.stillLocal(env, t)
	switch t.stage {
	case running:
		if !t.commits && env.Now-t.heard > silentTrips*c.cfg.RoundTrip {
			c.end(env, t)
		}
	case certifying:
		c.certifyAgain(env, t)
	case locally:
		c.wordsAgain(env, t)
	case over:
		if t.decided != nil && t.awaited == 0 {
			c.end(env, t)
		}
	}
}

package str

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// coordinator is the node at which transactions begin, read and are committed [STR Alg. 1]. It
// forgets everything with a crash: what is certified everywhere is finished by others, and the rest
// is gone.
type coordinator struct {
	cfg    store.Config
	place  store.Place
	mode   variant
	places map[protocol.ID]store.Place
	txns   map[store.TxnID]*txn
	table  table
	calls  kit.GroupCalls
	reads  map[uint64]*reading
	last   uint64 // of reads
	// away is how long the servers of each site take to answer; 0: it is not known.
	away   []time.Duration
	pinged time.Duration // when they were asked last
	ping   uint64
	pings  int // how often they were
	// suspected is when somebody asked last whether a transaction's coordinator is there.
	suspected time.Duration
	// unheard is since when the servers of each site have been asked and not heard of; 0: they have
	// been heard. Those of silent sites are asked for nothing if others can be.
	unheard []time.Duration
	silent  []bool
	mute    map[protocol.ID]bool          // servers that have not answered a read since they were heard last
	idle    map[protocol.ID]time.Duration // when servers said last that they serve no reads
	rescue  map[store.TxnID]*rescue
	// finished are transactions that wait for the ends of others, which others have finished too.
	finished []finished
	past     past
	tally    tally
	begun    clock.Stamp // the latest snapshot that it has given
	degree   degree      // how far transactions build on what is not final
	tuning   tuning
}

type (
	// readTimer is when a read is asked for again.
	readTimer struct{ ref uint64 }
	// txnTimer is when somebody looks at what a transaction waits for.
	txnTimer struct{ id store.TxnID }
)

// newCoordinator returns a coordinator. The error names the field of the configuration that is
// wrong.
func newCoordinator(cfg store.Config, mode variant) (*coordinator, error) {
	cfg, p, err := kit.CoordinatorConfig("str", cfg)
	if err != nil {
		return nil, err
	}
	if mode, err = mode.at(cfg.Speculate); err != nil {
		return nil, err
	}
	if err := validReaders(cfg); err != nil {
		return nil, err
	}
	c := &coordinator{cfg: cfg, place: p, mode: mode,
		txns: map[store.TxnID]*txn{}, table: newTable(), reads: map[uint64]*reading{},
		away:    make([]time.Duration, len(cfg.Layout.Sites)),
		unheard: make([]time.Duration, len(cfg.Layout.Sites)), silent: make([]bool, len(cfg.Layout.Sites)),
		mute: map[protocol.ID]bool{}, idle: map[protocol.ID]time.Duration{},
		rescue: map[store.TxnID]*rescue{}, past: past{of: map[store.TxnID]store.Decided{}},
		degree: mode.degree, tuning: newTuning(cfg.Layout, cfg.ID)}
	c.places, _ = cfg.Layout.Places()
	c.calls = kit.NewGroupCalls(cfg, p.Site, kit.Asking(wirefmt.NewFormat("str", 1, commandKinds()...)))
	return c, nil
}

// Start implements protocol.Node.
func (c *coordinator) Start(env *protocol.Env[store.Message], _ []protocol.Record[store.Message]) {
	c.calls.Start(env)
	c.last = env.Rand.Uint64()
	c.pingAll(env)
	if c.mode.tunes {
		c.tuning.heard = env.Now
		env.After(tuneTrips*c.cfg.RoundTrip, tuneTimer{})
	}
}

// pingTimer is when servers are asked how far away they are.
type pingTimer struct{}

// pingTrips is how many round trips there are at most between two pings. The first ones come more
// often: they take longer while connections are made.
const pingTrips = 32

// pingAll asks a server of each other site how far away it is. While there are transactions that is
// often, so that a site which is lost is noticed before they come to need it.
func (c *coordinator) pingAll(env *protocol.Env[store.Message]) {
	c.ping, c.pinged = env.Rand.Uint64(), env.Now
	for i, s := range c.cfg.Layout.Sites {
		all := s.Servers()
		if i == c.place.Site || len(all) == 0 {
			continue
		}
		env.Send(all[0], ping{c.ping})
		switch since := c.unheard[i]; {
		case since == 0:
			c.unheard[i] = env.Now
		case env.Now-since > c.cfg.RoundTrip*3/2 && !c.silent[i]:
			c.isSilent(env, i)
		}
	}
	next := time.Duration(min(pingTrips, 1<<min(c.pings, 8))) * c.cfg.RoundTrip
	if len(c.txns) > 0 || c.suspected > 0 && env.Now-c.suspected < suspectTrips*c.cfg.RoundTrip {
		next = c.cfg.RoundTrip / 2
	}
	env.After(next, pingTimer{})
	c.pings++
}

// isSilent has others be asked than the servers of a site that has not answered.
func (c *coordinator) isSilent(env *protocol.Env[store.Message], site int) {
	c.silent[site] = true
	for _, id := range c.cfg.Layout.Sites[site].Servers() {
		c.mute[id] = true
		c.calls.Silent(env, id)
	}
	for _, ref := range slices.Sorted(maps.Keys(c.reads)) {
		if r := c.reads[ref]; r != nil && c.places[r.to].Site == site {
			c.readAgain(env, ref)
		}
	}
}

// heard takes note that a server has said something.
func (c *coordinator) heard(from protocol.ID) {
	p, ok := c.places[from]
	if !ok {
		return
	}
	delete(c.mute, from)
	if c.unheard[p.Site] = 0; c.silent[p.Site] {
		c.silent[p.Site] = false
		for _, id := range c.cfg.Layout.Sites[p.Site].Servers() {
			delete(c.mute, id)
			c.calls.Heard(id)
		}
	}
}

// onPong learns how far away a site is. A shorter time counts at once, a longer one by and by.
func (c *coordinator) onPong(env *protocol.Env[store.Message], from protocol.ID, m pong) {
	p, ok := c.places[from]
	if !ok || m.Ref != c.ping {
		return
	}
	took := max(env.Now-c.pinged, 1)
	if old := c.away[p.Site]; old == 0 || took < old {
		c.away[p.Site] = took
	} else {
		c.away[p.Site] += (took - old) / 4
	}
}

// Receive implements protocol.Node.
func (c *coordinator) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	c.heard(from)
	switch m := msg.(type) {
	case store.StatusQuery:
		if from == protocol.App {
			c.onStatus(env, m)
		}
	case store.DeclareRequest:
		c.onDeclare(env, from, m)
	case store.AbandonRequest:
		c.onAbandon(env, from, m)
	case store.CommitRequest:
		c.onCommit(env, from, m, nil)
	case store.SpeculateRequest:
		c.onCommit(env, from, m.CommitRequest, &m)
	case found:
		c.onFound(env, from, m)
	case certified:
		c.onCertified(env, from, m)
	case displaced:
		c.onDisplaced(env, from, m)
	case word:
		c.onWord(env, from, m)
	case confirmed:
		c.onConfirmed(env, from, m)
	case pong:
		c.onPong(env, from, m)
	case report:
		c.onReport(from, m)
	case setting:
		c.onSetting(env, from, m)
	case told:
		c.onTold(env, from, m)
	case kit.Elsewhere:
		c.calls.Elsewhere(env, from, m)
	case orphan:
		c.onOrphan(env, from, m)
	case suspect:
		c.onSuspect(env, from, m)
	}
}

// Expire implements protocol.Node.
func (c *coordinator) Expire(env *protocol.Env[store.Message], t protocol.Timer) {
	switch t := t.(type) {
	case kit.GroupCallTimer:
		c.calls.Expire(env, t)
	case pingTimer:
		c.pingAll(env)
	case tuneTimer:
		c.tune(env)
	case readTimer:
		c.readAgain(env, t.ref)
	case txnTimer:
		if x := c.txns[t.id]; x != nil {
			c.look(env, x)
		}
	case rescueTimer:
		if r := c.rescue[t.id]; r != nil {
			c.rescueAgain(env, r)
		}
	}
}

// Broken implements protocol.Linked.
func (c *coordinator) Broken(env *protocol.Env[store.Message], from protocol.ID) {
	c.calls.Broken(env, from)
}

// local returns the site's server of a shard; ok is false if it has none.
func (c *coordinator) local(shard uint32) (id protocol.ID, ok bool) {
	s := c.cfg.Layout.Sites[c.place.Site]
	return s.Shards[shard], s.Has(int(shard))
}

// toShards sends a message to all servers of shards.
func (c *coordinator) toShards(
	env *protocol.Env[store.Message], shards []uint32, msg func(shard uint32) store.Message,
) {
	for _, k := range shards {
		for _, id := range c.cfg.Layout.ServersOf(int(k)) {
			env.Send(id, msg(k))
		}
	}
}

// onTold takes what a group says about a command.
func (c *coordinator) onTold(env *protocol.Env[store.Message], from protocol.ID, m told) {
	if m.Result.State == waiting {
		c.calls.Waits(env, from, m.Ref, longestWait)
		return
	}
	k, ok := c.calls.Answered(env, from, m.Ref)
	if !ok {
		return
	}
	if r := c.rescue[k.ID]; r != nil {
		c.rescueTold(env, r, k, m.Result)
		return
	}
	if t := c.txns[k.ID]; t != nil {
		c.txnTold(env, t, k, m.Result)
	}
}

// longestWait is for how many round trips a part waits for others, as the calls count.
const longestWait = 6

// Check implements protocol.Checked.
func (c *coordinator) Check() error {
	for id, t := range c.txns { //pure:ok any broken one is an error
		if t.id != id || t.stage == locally && t.local <= t.at {
			return fmt.Errorf("str: coordinator %d: %v is kept as %+v", c.cfg.ID, id, *t)
		}
		for _, on := range t.on { //pure:ok likewise
			if on.stage != locally || on.local > t.at {
				return fmt.Errorf("str: coordinator %d: %v of snapshot %v depends on %v, in stage %d at %v", c.cfg.ID, id, t.at,
					on.id, on.stage, on.local)
			}
		}
	}
	for key, e := range c.table.keys { //pure:ok likewise
		sorted := slices.IsSortedFunc(e.local, func(a, b *txn) int { return int(a.local - b.local) })
		if !sorted || slices.ContainsFunc(e.local, func(t *txn) bool { return t.stage != locally }) {
			return fmt.Errorf("str: coordinator %d: %q has versions that are not committed locally", c.cfg.ID, key)
		}
	}
	return nil
}

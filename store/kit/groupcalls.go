package kit

import (
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// GroupCalls are what a coordinator asks of the groups of shards. Each call is made until it is
// answered, of whoever leads the group, so what it asks for has to be safe to carry out twice.
type GroupCalls struct {
	layout    store.Layout
	roundTrip time.Duration
	message   func(ref uint64, call *GroupCall) store.Message
	leaders   []protocol.ID // by shard: who is asked first
	silent    map[protocol.ID]bool
	calls     map[uint64]*GroupCall
	last      uint64
}

// A GroupCall is made for a transaction of the group of one shard.
type GroupCall struct {
	Shard   uint32
	ID      store.TxnID
	Command store.Message // what is asked for

	to        protocol.ID // who was asked last
	answered  bool        // it has, and does not lead
	nobody    bool        // it has said that nobody leads
	waits     bool        // it has said that the answer comes later: it leads
	silent    protocol.ID // who did not answer last
	skipped   int         // how often that one was left out since
	tries     int         // that were not answered
	redirects int         // since the last try
}

// GroupCallTimer is when a call is made again that was not answered.
type GroupCallTimer struct{ Ref uint64 }

const (
	// callPatience is for how many round trips a call waits: one to a leader that is far away, one
	// of the group's, and what the disks take. It doubles callDoublings times.
	callPatience  = 3
	callDoublings = 3
	// maxRedirects is how often a call follows what servers say of each other before it waits.
	maxRedirects = 4
	// maxSkipped is how often a call leaves out who was silent while others say that nobody leads:
	// its patience is longer than they need to elect a leader. It may be back, so it is asked again.
	// maxNamed is how often while others name it, as they do until they miss it.
	maxSkipped = 3
	maxNamed   = 1
)

// NewGroupCalls returns the calls of a coordinator at a site: none. message makes what is sent for
// a call, whose answer names the ref.
func NewGroupCalls(cfg store.Config, site int, message func(ref uint64, call *GroupCall) store.Message) GroupCalls {
	c := GroupCalls{layout: cfg.Layout, roundTrip: cfg.RoundTrip, message: message, silent: map[protocol.ID]bool{},
		calls: map[uint64]*GroupCall{}}
	for k, nearest := range cfg.Layout.Sites[site].Shards {
		if !cfg.Layout.Sites[site].Has(k) {
			nearest = cfg.Layout.Sites[cfg.Layout.FirstOf(k)].Shards[k]
		}
		c.leaders = append(c.leaders, nearest)
	}
	return c
}

// Start makes the calls of this incarnation differ from those of earlier ones, whose answers may
// come late.
func (c *GroupCalls) Start(env *protocol.Env[store.Message]) { c.last = env.Rand.Uint64() }

// Len returns how many calls have no answer.
func (c *GroupCalls) Len() int { return len(c.calls) }

// Ask makes a call.
func (c *GroupCalls) Ask(env *protocol.Env[store.Message], k GroupCall) {
	c.last++
	c.calls[c.last] = &k
	c.send(env, c.last, &k)
}

func (c *GroupCalls) send(env *protocol.Env[store.Message], ref uint64, k *GroupCall) {
	k.to, k.answered, k.nobody, k.waits = c.leaders[k.Shard], false, false, false
	env.Send(k.to, c.message(ref, k))
	env.After(callPatience*c.roundTrip<<min(k.tries, callDoublings), GroupCallTimer{ref})
}

// wasSilent notes who did not answer last.
func (k *GroupCall) wasSilent(id protocol.ID) { k.silent, k.skipped = id, 0 }

// next has another server of a shard be asked than one that did not answer, or does not lead: one
// that is not silent, if there is one.
func (c *GroupCalls) next(shard uint32, than protocol.ID) {
	if c.leaders[shard] != than {
		return
	}
	servers := c.layout.ServersOf(int(shard))
	i := slices.Index(servers, than)
	if i < 0 {
		return
	}
	for j := range servers {
		to := servers[(i+1+j)%len(servers)]
		if j == 0 || !c.silent[to] {
			c.leaders[shard] = to
		}
		if !c.silent[to] {
			return
		}
	}
}

// Silent takes note that a server answers nobody: others are asked until it is Heard.
func (c *GroupCalls) Silent(env *protocol.Env[store.Message], id protocol.ID) {
	c.silent[id] = true
	for k := range c.leaders {
		c.next(uint32(k), id)
	}
	c.Broken(env, id)
}

// Heard takes note that a server is there again.
func (c *GroupCalls) Heard(id protocol.ID) { delete(c.silent, id) }

// Expire asks again.
func (c *GroupCalls) Expire(env *protocol.Env[store.Message], t GroupCallTimer) {
	k := c.calls[t.Ref]
	if k == nil {
		return
	}
	if k.waits { // the answer may be lost, and is no reason to ask anybody else
		k.redirects = 0
		c.send(env, t.Ref, k)
		return
	}
	c.next(k.Shard, k.to)
	switch {
	case !k.answered:
		k.wasSilent(k.to)
		k.tries++
	case c.leaders[k.Shard] == k.silent && (k.skipped < maxNamed || k.nobody && k.skipped < maxSkipped):
		k.skipped++
		c.next(k.Shard, k.silent)
	}
	k.redirects = 0
	c.send(env, t.Ref, k)
}

// Drop gives up what is under way for a transaction.
func (c *GroupCalls) Drop(env *protocol.Env[store.Message], id store.TxnID) {
	for _, ref := range slices.Sorted(maps.Keys(c.calls)) {
		if c.calls[ref].ID == id {
			delete(c.calls, ref)
			env.Stop(GroupCallTimer{ref})
		}
	}
}

// Broken asks other servers than one to which the connection is lost, with what was under way.
func (c *GroupCalls) Broken(env *protocol.Env[store.Message], from protocol.ID) {
	for _, ref := range slices.Sorted(maps.Keys(c.calls)) {
		if k := c.calls[ref]; k.to == from {
			k.wasSilent(from)
			c.next(k.Shard, from)
			c.send(env, ref, k)
		}
	}
}

// Elsewhere asks whom a server takes for the leader, 0 for nobody, unless that one is silent, or
// has just been: until another one leads, followers name one that is gone.
func (c *GroupCalls) Elsewhere(env *protocol.Env[store.Message], from protocol.ID, m Elsewhere) {
	k, ref, leader := c.calls[m.Ref], m.Ref, m.Leader
	if k == nil || k.to != from {
		return
	}
	known := slices.Contains(c.layout.ServersOf(int(k.Shard)), leader)
	k.answered, k.nobody = true, leader == 0
	if from == k.silent {
		k.wasSilent(0)
	}
	if k.redirects++; known && leader != from && leader != k.silent && !c.silent[leader] &&
		k.redirects <= maxRedirects {
		c.leaders[k.Shard] = leader
		c.send(env, ref, k)
		return
	}
	env.After(c.roundTrip/2, GroupCallTimer{ref}) // nobody leads, or not all know it
}

// Waits takes it that the answer comes later, within so many round trips.
func (c *GroupCalls) Waits(env *protocol.Env[store.Message], from protocol.ID, ref uint64, longest int) {
	if k := c.calls[ref]; k != nil && k.to == from {
		k.waits = true
		env.After(time.Duration(callPatience+longest)*c.roundTrip, GroupCallTimer{ref})
	}
}

// Answered takes an answer, once.
func (c *GroupCalls) Answered(env *protocol.Env[store.Message], from protocol.ID, ref uint64) (k *GroupCall, ok bool) {
	k = c.calls[ref]
	if k == nil || !slices.Contains(c.layout.ServersOf(int(k.Shard)), from) {
		return nil, false
	}
	c.leaders[k.Shard] = from
	delete(c.calls, ref)
	env.Stop(GroupCallTimer{ref})
	return k, true
}

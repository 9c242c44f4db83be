package layered

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// calls are the commands that a coordinator has groups carry out. Each is asked for until it is
// answered: a command can be carried out again, and says what the shard knows then.
type calls struct {
	layout    store.Layout
	format    *wirefmt.Format[store.Message]
	roundTrip time.Duration
	leaders   []protocol.ID // by shard: who is asked first
	calls     map[uint64]*call
	last      uint64
}

// call is a command of a transaction that a group is to carry out, or a check that its leader is to
// answer.
type call struct {
	shard   uint32
	id      store.TxnID
	command any

	bytes     []byte      // of a command
	to        protocol.ID // who was asked last
	answered  bool        // it has, and does not lead
	nobody    bool        // it has said that nobody leads
	waits     bool        // it has said that the transaction waits: it leads
	silent    protocol.ID // who did not answer last
	skipped   int         // how often that one was left out since
	tries     int         // that were not answered
	redirects int         // since the last try
}

// againTimer is when a call is made again that was not answered.
type againTimer struct{ ref uint64 }

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

func newCalls(cfg store.Config, site int, format *wirefmt.Format[store.Message]) calls {
	c := calls{layout: cfg.Layout, format: format, roundTrip: cfg.RoundTrip, calls: map[uint64]*call{}}
	for k, nearest := range cfg.Layout.Sites[site].Shards {
		if !cfg.Layout.Sites[site].Has(k) {
			nearest = cfg.Layout.Sites[cfg.Layout.FirstOf(k)].Shards[k]
		}
		c.leaders = append(c.leaders, nearest)
	}
	return c
}

// start makes the calls of this incarnation differ from those of earlier ones, whose answers may
// come late.
func (c *calls) start(env *protocol.Env[store.Message]) { c.last = env.Rand.Uint64() }

// ask has a group carry out a command.
func (c *calls) ask(env *protocol.Env[store.Message], k call) {
	if _, asks := k.command.(check); !asks {
		b, err := c.format.Append(nil, k.command)
		if err != nil {
			panic(fmt.Sprintf("layered: a command cannot be encoded: %v", err)) // it is of the format
		}
		k.bytes = b
	}
	c.last++
	c.calls[c.last] = &k
	c.send(env, c.last, &k)
}

func (c *calls) send(env *protocol.Env[store.Message], ref uint64, k *call) {
	k.to, k.answered, k.nobody, k.waits = c.leaders[k.shard], false, false, false
	if m, asks := k.command.(check); asks {
		m.Ref = ref
		env.Send(k.to, m)
	} else {
		env.Send(k.to, ask{k.shard, ref, k.bytes})
	}
	env.After(callPatience*c.roundTrip<<min(k.tries, callDoublings), againTimer{ref})
}

// wasSilent notes who did not answer last.
func (k *call) wasSilent(id protocol.ID) { k.silent, k.skipped = id, 0 }

// next has another server of a shard be asked than one that did not answer, or does not lead.
func (c *calls) next(shard uint32, than protocol.ID) {
	if c.leaders[shard] != than {
		return
	}
	servers := c.layout.ServersOf(int(shard))
	if i := slices.Index(servers, than); i >= 0 {
		c.leaders[shard] = servers[(i+1)%len(servers)]
	}
}

// onTimer asks again.
func (c *calls) onTimer(env *protocol.Env[store.Message], ref uint64) {
	k := c.calls[ref]
	if k == nil {
		return
	}
	if k.waits { // the answer may be lost, and is no reason to ask anybody else
		k.redirects = 0
		c.send(env, ref, k)
		return
	}
	c.next(k.shard, k.to)
	switch {
	case !k.answered:
		k.wasSilent(k.to)
		k.tries++
	case c.leaders[k.shard] == k.silent && (k.skipped < maxNamed || k.nobody && k.skipped < maxSkipped):
		k.skipped++
		c.next(k.shard, k.silent)
	}
	k.redirects = 0
	c.send(env, ref, k)
}

// drop gives up what is under way for a transaction.
func (c *calls) drop(env *protocol.Env[store.Message], id store.TxnID) {
	for _, ref := range slices.Sorted(maps.Keys(c.calls)) {
		if c.calls[ref].id == id {
			delete(c.calls, ref)
			env.Stop(againTimer{ref})
		}
	}
}

// onBroken asks other servers than one to which the connection is lost, with what was under way.
func (c *calls) onBroken(env *protocol.Env[store.Message], from protocol.ID) {
	for _, ref := range slices.Sorted(maps.Keys(c.calls)) {
		if k := c.calls[ref]; k.to == from {
			k.wasSilent(from)
			c.next(k.shard, from)
			c.send(env, ref, k)
		}
	}
}

// onElsewhere asks whom a server takes for the leader, unless that one has just been silent: until
// another one leads, followers name one that is gone.
func (c *calls) onElsewhere(env *protocol.Env[store.Message], from protocol.ID, m elsewhere) {
	k := c.calls[m.Ref]
	if k == nil || k.to != from {
		return
	}
	known := slices.Contains(c.layout.ServersOf(int(k.shard)), m.Leader)
	k.answered, k.nobody = true, m.Leader == 0
	if from == k.silent {
		k.wasSilent(0)
	}
	if k.redirects++; known && m.Leader != from && m.Leader != k.silent && k.redirects <= maxRedirects {
		c.leaders[k.shard] = m.Leader
		c.send(env, m.Ref, k)
		return
	}
	env.After(c.roundTrip/2, againTimer{m.Ref}) // nobody leads, or not all know it
}

// longestWait is for how many round trips a transaction waits at most, as the leader counts.
const longestWait = waitFor + 2*sweepEvery

// onWaits takes it that the answer comes later.
func (c *calls) onWaits(env *protocol.Env[store.Message], from protocol.ID, m told) {
	if k := c.calls[m.Ref]; k != nil && k.to == from {
		k.waits = true
		env.After((callPatience+longestWait)*c.roundTrip, againTimer{m.Ref})
	}
}

// onTold takes an answer, once.
func (c *calls) onTold(env *protocol.Env[store.Message], from protocol.ID, m told) (k *call, ok bool) {
	k = c.calls[m.Ref]
	if k == nil || !slices.Contains(c.layout.ServersOf(int(k.shard)), from) {
		return nil, false
	}
	c.leaders[k.shard] = from
	delete(c.calls, m.Ref)
	env.Stop(againTimer{m.Ref})
	return k, true
}

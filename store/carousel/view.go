package carousel

import (
	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// view is how an agent has a transaction read that writes nothing: at a timestamp of the agent's,
// from the leaders of its keys, in one round trip. There is nothing that a coordinator would have
// to remember. If clocks are too far apart for that, or somebody is in the way for long, it reads
// what there is and has the partitions' groups say that all of it is so at once.
type view struct {
	stage  stage
	at     clock.Stamp // of the snapshot
	strict bool
	rounds int // how often it has begun again
	// fixed says that the transaction has read before, as of the timestamp.
	fixed bool
	// reads are what it has read, or is to read: without versions, if it was declared.
	reads []store.Read
}

// stage is what a view waits for.
type stage uint8

const (
	bySnapshot stage = iota
	byNewest         // what there is, for byCheck to say whether it is right
	byCheck
	byClosed // what the nearest members have closed
)

// A view takes new timestamps that often, and begins so often in all.
const (
	maxSnapshots = 3
	maxRounds    = 12
)

// beginView begins to read, for the first time or again.
func (a *agent) beginView(env *protocol.Env[store.Message], c *call) {
	v := c.view
	v.rounds++
	switch {
	case v.rounds <= maxSnapshots && !(v.strict && a.clocks.off()):
		v.stage, v.at = bySnapshot, clock.Stamp(max(env.Now, 1))
		if c.declared != nil { // else it has no session
			v.at = max(v.at, clock.Stamp(min(c.declared.NotBefore, maxStamp)))
		}
	case c.declared != nil:
		v.stage = byNewest
	default:
		v.stage = byCheck
	}
	a.waitForAll(c)
}

// declareView begins with a transaction that was declared to read only.
func (a *agent) declareView(env *protocol.Env[store.Message], c *call) {
	c.view = &view{strict: !c.declared.Serializable && c.declared.At == 0}
	for _, k := range c.declared.Reads {
		c.view.reads = append(c.view.reads, store.Read{Key: k})
	}
	if c.declared.MaxAge == 0 || !a.beginStale(env, c) {
		a.beginView(env, c)
	}
}

// waitForAll has a view wait for all its partitions.
func (a *agent) waitForAll(c *call) {
	c.left = map[uint32]bool{}
	for _, p := range c.parts {
		c.left[p.ref.Shard] = true
	}
}

// readsOf returns a view's reads at a partition.
func (a *agent) readsOf(v *view, shard uint32) (out []store.Read) {
	for _, r := range v.reads {
		if uint32(a.cfg.Layout.ShardOf(r.Key)) == shard {
			out = append(out, r)
		}
	}
	return out
}

// askView asks the leaders of partitions that have not answered, or their nearest members.
func (a *agent) askView(env *protocol.Env[store.Message], c *call, whom func(shard uint32) []protocol.ID) {
	v := c.view
	for _, p := range c.parts {
		k := p.ref.Shard
		if !c.left[k] {
			continue
		}
		var m store.Message
		switch reads := a.readsOf(v, k); v.stage {
		case byClosed:
			if id, ok := a.nearest(env, k); ok {
				a.toMember(env, id, closedRequest{ID: c.id, At: v.at, Reads: reads})
				continue
			}
			a.leaveClosed(env, c)
			a.askView(env, c, whom)
			return
		case bySnapshot:
			m = snapshotRequest{ID: c.id, At: v.at, Strict: v.strict, Values: c.declared != nil, Reads: reads}
		case byNewest:
			m = snapshotRequest{ID: c.id, Values: true, Reads: reads}
		case byCheck:
			m = checkRequest{ID: c.id, At: latestOf(v.reads), Reads: reads}
		}
		for _, to := range whom(k) {
			env.Send(to, m)
		}
	}
}

// latestOf returns the latest version of some reads.
func latestOf(reads []store.Read) (at clock.Stamp) {
	for _, r := range reads {
		at = max(at, clock.Stamp(min(r.Version.Time, maxStamp)))
	}
	return at
}

// onSnapshotReply takes what a partition has at a timestamp, or why it does not say.
func (a *agent) onSnapshotReply(env *protocol.Env[store.Message], from protocol.ID, m snapshotReply) {
	c := a.calls[m.ID]
	if c == nil || c.view == nil || !c.left[m.Shard] || !a.where.isMember(m.Shard, from) {
		return
	}
	a.leads(from, m.Shard)
	v := c.view
	keys := a.readsOf(v, m.Shard)
	switch {
	case v.stage == byCheck || v.stage == byClosed || v.stage == bySnapshot && m.At != v.at ||
		v.stage == byNewest && m.At != 0:
		return // to an earlier question
	case m.Reason == store.StaleRead && c.declared == nil:
		a.end(env, c, store.Decided{ID: c.id, Verdict: store.Aborted, Reason: m.Reason})
		return
	case m.Reason != store.NoReason && v.fixed:
		a.refuseView(env, c)
		return
	case m.Reason != store.NoReason:
		if m.Reason != store.StaleRead { // another timestamp is no help
			v.rounds = max(v.rounds, maxSnapshots)
		}
		a.viewAgain(env, c, m.Reason)
		return
	case c.declared != nil && len(m.Values) != len(keys):
		return
	}
	a.keep(c, from, keys, m.Values)
	if len(c.left) > 0 {
		return
	}
	if v.stage == bySnapshot {
		a.viewed(env, c)
		return
	}
	for i := range v.reads {
		v.reads[i].Version = c.values[v.reads[i].Key].Value.Version
	}
	v.stage = byCheck
	a.waitForAll(c)
	a.ask(env, c, a.leaders)
}

// keep keeps what a partition has under its keys: it has answered.
func (a *agent) keep(c *call, from protocol.ID, keys []store.Read, values []store.Value) {
	place := a.places[from]
	for i, value := range values {
		c.values[keys[i].Key] = store.Held{Value: value, Site: uint32(place.Site)}
	}
	delete(c.left, uint32(place.Index))
}

// onCheck takes a partition's word on whether what was read is still so.
func (a *agent) onCheck(env *protocol.Env[store.Message], from protocol.ID, m checkReply) {
	c := a.calls[m.ID]
	if c == nil || c.view == nil || c.view.stage != byCheck || !c.left[m.Shard] || !a.where.isMember(m.Shard, from) {
		return
	}
	switch {
	case m.Reason == store.NoReason:
		if delete(c.left, m.Shard); len(c.left) == 0 {
			a.viewed(env, c)
		}
	case c.declared != nil:
		a.viewAgain(env, c, m.Reason)
	default:
		a.end(env, c, store.Decided{ID: c.id, Verdict: store.Aborted, Reason: m.Reason})
	}
}

// viewAgain begins again with a view that was refused.
func (a *agent) viewAgain(env *protocol.Env[store.Message], c *call, why store.Reason) {
	if c.view.rounds >= maxRounds {
		a.end(env, c, store.Decided{ID: c.id, Verdict: store.Aborted, Reason: why})
		return
	}
	a.beginView(env, c)
	a.ask(env, c, a.leaders)
}

// viewed ends a transaction that has seen what it wants to.
func (a *agent) viewed(env *protocol.Env[store.Message], c *call) {
	if c.declared != nil {
		a.answerDeclare(env, c)
	}
	a.end(env, c, store.Decided{ID: c.id, Verdict: store.Committed})
}

package str

import (
	"slices"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// rescue finishes a transaction whose coordinator may be gone, or finds out what became of it. If
// a shard has not prepared it, it never will, and the transaction is aborted. If all have, and what
// it depends on is final, it is committed at the timestamp that its coordinator may have told.
// That is a function of the words of the readers, which are on their disks and, for those at the
// coordinator's site, were sent along. The transaction's first shard has the last word.
type rescue struct {
	id      store.TxnID
	shards  []uint32
	part    *part // nil: it is not known
	clients []protocol.ID
	states  map[uint32]result // what shards know of it
	on      map[store.TxnID]result
	words   map[uint32]*words
	asked   bool    // its first shard was asked to decide
	over    *result // what that has decided; nil: nothing yet
	left    map[uint32]bool
	looks   int
}

// rescueTimer is when somebody looks at what a rescue waits for.
type rescueTimer struct{ id store.TxnID }

// maxLooks is how often a rescue looks at what it waits for before it gives up. Whoever has the
// transaction asks again.
const maxLooks = 20

// askWhatBecame finds out what became of a transaction that this coordinator does not know.
func (c *coordinator) askWhatBecame(env *protocol.Env[store.Message], from protocol.ID, t store.Txn) {
	if t.ReadOnly() {
		env.Send(from, store.Decided{ID: t.ID, Verdict: store.Aborted, Reason: store.Fenced})
		return
	}
	_, shards := c.cfg.Layout.Split(store.Txn{ID: t.ID, Writes: t.Writes})
	if r := c.beginRescue(env, t.ID, shards); r == nil {
		env.Send(from, store.Busy{ID: t.ID})
	} else if !slices.Contains(r.clients, from) {
		r.clients = append(r.clients, from)
	}
}

// onOrphan finishes a transaction that a server has had for long.
func (c *coordinator) onOrphan(env *protocol.Env[store.Message], from protocol.ID, m orphan) {
	p, server := c.places[from]
	if t := c.txns[m.Part.ID]; t != nil || !server || !c.cfg.Layout.ValidShards(m.Part.Shards) || m.Part.ID.IsZero() {
		if t != nil && t.held && server {
			env.Send(from, kept{uint32(p.Index), m.Part.ID})
		}
		return
	}
	if r := c.beginRescue(env, m.Part.ID, m.Part.Shards); r != nil && r.part == nil {
		r.part = &m.Part
		for _, k := range r.shards {
			c.rescueWords(env, r, k)
		}
		c.rescueStep(env, r)
	}
}

// rescueWords asks for the words of a shard's members.
func (c *coordinator) rescueWords(env *protocol.Env[store.Message], r *rescue, shard uint32) {
	if r.words[shard] == nil {
		r.words[shard] = &words{of: map[protocol.ID]word{}}
	}
	c.askWords(env, r.id, shard, r.words[shard], false)
}

// onSuspect finishes a transaction whose own coordinator is at a silent site. Without transactions
// of its own this coordinator may not know yet, and is asked again.
func (c *coordinator) onSuspect(env *protocol.Env[store.Message], from protocol.ID, m suspect) {
	if site := siteOf(c.cfg.Layout, m.Part.Origin); site >= 0 && c.silent[site] {
		c.onOrphan(env, from, orphan(m))
		return
	}
	if c.suspected = env.Now; env.Now-c.pinged > c.cfg.RoundTrip {
		env.After(0, pingTimer{})
	}
}

// beginRescue returns the rescue of a transaction, or nil if there is no room for one.
func (c *coordinator) beginRescue(env *protocol.Env[store.Message], id store.TxnID, shards []uint32) *rescue {
	if r := c.rescue[id]; r != nil {
		return r
	}
	if len(c.txns)+len(c.rescue) >= c.cfg.MaxTxns {
		return nil
	}
	r := &rescue{id: id, shards: shards, states: map[uint32]result{}, on: map[store.TxnID]result{},
		words: map[uint32]*words{},
		left:  map[uint32]bool{}}
	c.rescue[id] = r
	for _, k := range shards {
		c.rescueAsk(env, r, k, fence{id})
	}
	env.After(lookTrips*c.cfg.RoundTrip, rescueTimer{id})
	return r
}

func (c *coordinator) rescueAsk(env *protocol.Env[store.Message], r *rescue, shard uint32, command store.Message) {
	c.calls.Ask(env, kit.GroupCall{Shard: shard, ID: r.id, Command: command})
}

// rescueTold takes what a shard says.
func (c *coordinator) rescueTold(env *protocol.Env[store.Message], r *rescue, k *kit.GroupCall, res result) {
	switch m := k.Command.(type) {
	case fence:
		if m.ID != r.id {
			r.on[m.ID] = res
		} else {
			r.states[k.Shard] = res
		}
		c.rescueStep(env, r)
	case decide:
		switch {
		case r.over == nil && res.State == prepared: // it was confirmed before
			r.asked, r.states[k.Shard] = false, res
			c.rescueStep(env, r)
			return
		case r.over == nil:
			c.rescued(env, r, k.Shard, res)
			return
		}
		delete(r.left, k.Shard)
		c.maybeRescued(env, r)
	case done:
		c.endRescue(env, r)
	}
}

// rescueStep goes on as far as it can.
func (c *coordinator) rescueStep(env *protocol.Env[store.Message], r *rescue) {
	if r.asked || r.over != nil {
		return
	}
	first := r.shards[0]
	for _, k := range r.shards {
		switch res, ok := r.states[k]; {
		case ok && res.State == committed, ok && res.State == forgotten && k == first:
			c.rescued(env, r, k, res)
			return
		case ok && res.State == aborted:
			c.rescueDecide(env, r, decide{ID: r.id, Reason: res.Reason})
			return
		}
	}
	// The words tell as much as the coordinator knew when it committed, unless its client's was out.
	fenced := len(r.states) == len(r.shards)
	if r.part == nil || r.part.Held && !fenced {
		return
	}
	if fenced && r.states[first].Reason == store.Lapsed { // only its coordinator would know whether its client was wrong
		c.rescueDecide(env, r, decide{ID: r.id, Reason: store.Lapsed, Held: true})
		return
	}
	at, ok, aborts := c.rescueStamp(env, r)
	switch {
	case aborts && fenced:
		c.rescueDecide(env, r, decide{ID: r.id, Reason: store.StaleRead})
	case ok:
		c.rescueDecide(env, r, decide{ID: r.id, Commit: true, At: at, Read: c.readUntil(at)})
	}
}

// rescueStamp returns the timestamp of a transaction's commit; ok is false as long as it is not
// known, and aborts says that it cannot commit, since something that it depends on has not, or is
// later than its snapshot.
func (c *coordinator) rescueStamp(env *protocol.Env[store.Message], r *rescue) (at clock.Stamp, ok, aborts bool) {
	ok, at = true, r.part.Local
	for _, on := range r.part.On {
		switch res, known := r.on[on.ID]; {
		case !known:
			r.on[on.ID] = result{State: waiting}
			c.rescueAsk(env, r, on.Shard, fence{on.ID})
			ok = false
		case res.State == aborted, res.State == committed && res.At > on.Limit && c.mode.speculates:
			return 0, false, true
		case res.State != committed:
			ok = false
		}
	}
	for _, k := range r.shards {
		stamp, all := r.words[k].rescueStamp(r.part.Sure)
		at, ok = max(at, stamp), ok && all
	}
	return at, ok, false
}

// rescueStamp is stamp for a rescuer, which cannot tell whose words the transaction's coordinator
// has: it needs all of them.
func (w *words) rescueStamp(sure []sureWord) (at clock.Stamp, ok bool) {
	if !w.stored() {
		return 0, false
	}
	at = w.leader.Above + 1
	for _, id := range w.leader.Readers {
		m, has := w.of[id]
		i := slices.IndexFunc(sure, func(s sureWord) bool { return s.Server == id })
		switch {
		case has && m.At == w.leader.At:
			at = max(at, m.Stamp)
		case i >= 0:
			at = max(at, sure[i].Stamp)
		default:
			return 0, false
		}
	}
	return at, true
}

// boundOf returns the latest snapshot in which what a transaction has written is read at its
// coordinator, given its snapshot. Its commit, which is later, gives a bound that is safe, too.
func (c *coordinator) boundOf(at clock.Stamp) clock.Stamp {
	return at + clock.Stamp(boundTrips*c.cfg.RoundTrip)
}

// readUntil returns the latest snapshot in which what a rescued transaction has written may have
// been read at its coordinator. Where nobody reads what is not final there is none: clients would
// wait, for nothing, until clocks come up to later commits.
func (c *coordinator) readUntil(at clock.Stamp) clock.Stamp {
	if !c.mode.speculates {
		return 0
	}
	return c.boundOf(at)
}

// rescueDecide has the first shard end the transaction.
func (c *coordinator) rescueDecide(env *protocol.Env[store.Message], r *rescue, d decide) {
	r.asked = true
	d.Anchor = len(r.shards) > 1
	c.rescueAsk(env, r, r.shards[0], d)
}

// rescued takes a transaction's end from a shard that knows it, and has the others carry it out.
func (c *coordinator) rescued(env *protocol.Env[store.Message], r *rescue, by uint32, res result) {
	r.over = &res
	d := store.Decided{ID: r.id, Verdict: store.Aborted, Reason: res.Reason}
	switch res.State {
	case committed:
		d.Verdict, d.Reason = store.Committed, store.NoReason
		d.Version = store.Version{Time: uint64(res.At), Client: r.id.Client}
	case forgotten:
		d.Verdict, d.Reason = store.Unknown, store.Old
	}
	for _, to := range r.clients {
		env.Send(to, d)
	}
	if res.State == forgotten {
		c.endRescue(env, r)
		return
	}
	over := outcome{ID: r.id, Commit: res.State == committed, At: res.At}
	if over.Commit {
		over.Read = c.readUntil(res.At)
	}
	c.toShards(env, r.shards, func(k uint32) store.Message { over.Shard = k; return over })
	for _, k := range r.shards {
		if k != by {
			r.left[k] = true
			c.rescueAsk(env, r, k, decide{ID: r.id, Commit: over.Commit, At: res.At, Reason: res.Reason,
				Anchor: k == r.shards[0], Read: c.readUntil(res.At)})
		}
	}
	c.maybeRescued(env, r)
}

func (c *coordinator) maybeRescued(env *protocol.Env[store.Message], r *rescue) {
	switch {
	case len(r.left) > 0:
	case r.over.State == committed && len(r.shards) > 1:
		c.rescueAsk(env, r, r.shards[0], done{r.id})
	default:
		c.endRescue(env, r)
	}
}

func (c *coordinator) endRescue(env *protocol.Env[store.Message], r *rescue) {
	c.calls.Drop(env, r.id)
	delete(c.rescue, r.id)
	env.Stop(rescueTimer{r.id})
}

// rescueAgain asks again for what is missing.
func (c *coordinator) rescueAgain(env *protocol.Env[store.Message], r *rescue) {
	if r.looks++; r.looks > maxLooks && r.over == nil && !r.asked {
		c.endRescue(env, r)
		return
	}
	env.After(lookTrips*c.cfg.RoundTrip, rescueTimer{r.id})
	if r.asked || r.over != nil || r.part == nil {
		return
	}
	for _, on := range r.part.On {
		if res, ok := r.on[on.ID]; ok && res.State == prepared {
			r.on[on.ID] = result{State: waiting}
			c.rescueAsk(env, r, on.Shard, fence{on.ID})
		}
	}
	for _, k := range r.shards {
		c.rescueWords(env, r, k)
	}
	c.rescueStep(env, r)
}

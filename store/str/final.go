package str

import (
	"maps"
	"slices"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// ending is how a transaction ends.
type ending struct {
	decided *store.Decided // what its clients are told
	final   clock.Stamp    // of a commit [STR: FC]
	reason  store.Reason   // of an abort
	// agreed says that the first shard was asked to decide. It was told in which snapshots the
	// transaction's writes were read, so nobody reads them any more before it is final.
	agreed  bool
	awaited int // shards that have not carried out the decision
	// sought says that somebody else has committed it, and that its first shard is asked when.
	sought bool
	stood  []*txn // what it depended on when it was aborted, which may be in vain
}

// finished is the end of a transaction that somebody else has finished, as a shard has it.
type finished struct {
	t     *txn
	shard uint32
	r     result
}

// maybeFinal commits a transaction once all who served reads of its keys have certified it, and all
// that it depends on is final [STR §6.5]. Its timestamp follows from what is on their disks, so
// whoever has to finish it in place of this coordinator finds the same.
func (c *coordinator) maybeFinal(env *protocol.Env[store.Message], t *txn) {
	if t.stage != locally || t.agreed || t.held || t.staged || len(t.on) > 0 {
		return
	}
	at, certain := t.local, true
	for _, k := range t.shards {
		stamp, sure, ok := t.words[k].stamp()
		if !ok {
			return
		}
		at, certain = max(at, stamp), certain && sure
	}
	if !certain {
		t.agreed = true
		c.saw(event{what: isAgreed, t: t})
		c.decideAt(env, t, t.shards[0], decide{ID: t.id, Commit: true, At: at, Read: t.read})
		return
	}
	c.commit(env, t, at)
	c.carryOut(env, t, nil)
}

// decideAt has a shard end a transaction.
func (c *coordinator) decideAt(env *protocol.Env[store.Message], t *txn, shard uint32, d decide) {
	d.Anchor = len(t.shards) > 1 && shard == t.shards[0]
	c.calls.Ask(env, kit.GroupCall{Shard: shard, ID: t.id, Command: d})
}

// carryOut has all shards carry out a decision, except those that have.
func (c *coordinator) carryOut(env *protocol.Env[store.Message], t *txn, have []uint32) {
	d := decide{ID: t.id, Commit: t.final > 0, At: t.final, Reason: t.reason, Read: t.read}
	c.toShards(env, t.shards, func(k uint32) store.Message { return outcome{k, t.id, d.Commit, d.At, d.Read} })
	for _, k := range t.shards {
		if !slices.Contains(have, k) {
			t.awaited++
			c.decideAt(env, t, k, d)
		}
	}
	c.maybeForget(env, t)
}

// commit makes a transaction final here. Those that depend on it and have an earlier snapshot are
// aborted; the others do not wait for it any longer [STR Alg. 1 l. 39].
func (c *coordinator) commit(env *protocol.Env[store.Message], t *txn, at clock.Stamp) {
	t.stage, t.final = over, at
	c.saw(event{what: isFinal, t: t})
	c.leaveTable(t)
	c.table.wrote(t)
	by := slices.SortedFunc(maps.Values(t.by), func(a, b *txn) int { return a.id.Compare(b.id) })
	for _, d := range by {
		if d.limitOf(t.id) < at && c.mode.speculates { // else it has seen nothing of this one
			c.abortAs(env, d, store.WriterTooLate, store.StaleRead)
		}
	}
	for _, d := range by {
		delete(d.on, t.id)
		d.lastOn, d.lastOnAt = t.id, env.Now
	}
	for _, d := range c.readers(t) {
		delete(d.unsafe, t.id)
		d.latest = max(d.latest, at)
	}
	for _, d := range c.readers(t) {
		if d.stage == running {
			c.deliver(env, d)
		}
		c.maybeLocal(env, d)
		c.maybeFinal(env, d)
	}
	c.tell(env, t, store.Decided{ID: t.id, Verdict: store.Committed,
		Version: store.Version{Time: uint64(at), Client: t.id.Client}})
	c.wake(env, t.writes)
}

// readers returns all that depend on a transaction, by whatever way, in order (S3).
func (c *coordinator) readers(t *txn) []*txn {
	seen := map[store.TxnID]*txn{}
	var walk func(t *txn)
	walk = func(t *txn) {
		for id, d := range t.by { //pure:ok they are sorted
			if seen[id] == nil && d.stage != over {
				seen[id] = d
				walk(d)
			}
		}
	}
	walk(t)
	return slices.SortedFunc(maps.Values(seen), func(a, b *txn) int { return a.id.Compare(b.id) })
}

// leaveTable takes a transaction's versions out of the table.
func (c *coordinator) leaveTable(t *txn) {
	for _, w := range t.writes {
		e := c.table.keys[w.Key]
		if e == nil {
			continue
		}
		e.local = slices.DeleteFunc(e.local, func(x *txn) bool { return x == t })
		if e.certifying == t {
			e.certifying = nil
		}
	}
	for _, e := range t.waitsIn {
		e.queue = slices.DeleteFunc(e.queue, func(x *txn) bool { return x == t })
	}
	t.waitsIn = nil
}

// abort ends a transaction, and before it all that depend on it [STR Alg. 1 l. 51]. One that may
// be prepared somewhere is told to be aborted when its first shard has agreed, as nobody else will
// commit it then; nobody here sees it from now on.
func (c *coordinator) abort(env *protocol.Env[store.Message], t *txn, why store.Reason) {
	if t.stage == over {
		return
	}
	was := t.stage
	t.stage, t.reason = over, why
	c.saw(event{what: isAborted, t: t})
	c.leaveTable(t)
	for _, w := range t.writes {
		c.table.readAt(w.Key, t.read) // who writes it next comes behind those who have read it
	}
	for _, d := range slices.SortedFunc(maps.Values(t.by), func(a, b *txn) int { return a.id.Compare(b.id) }) {
		c.abortAs(env, d, store.Cascade, store.StaleRead)
	}
	for _, on := range t.on { //pure:ok each is another one's, and who goes by them sorts them
		delete(on.by, t.id)
		t.stood = append(t.stood, on)
	}
	clear(t.on)
	c.dropReads(env, t)
	if was == locally {
		t.agreed = true
		c.calls.Drop(env, t.id)
		c.decideAt(env, t, t.shards[0], decide{ID: t.id, Reason: why})
		c.wake(env, t.writes)
		return
	}
	for _, k := range t.shards {
		if id, ok := c.local(k); ok {
			env.Send(id, release{k, t.id})
		}
	}
	c.tell(env, t, store.Decided{ID: t.id, Verdict: store.Aborted, Reason: why})
	c.wake(env, t.writes)
	for n, s := range t.steps { //pure:ok the client takes the first
		if s.left > 0 {
			env.Send(t.client, store.DeclareReply{ID: t.id, Step: n})
		}
	}
}

// txnTold takes what a group says of a transaction.
func (c *coordinator) txnTold(env *protocol.Env[store.Message], t *txn, k *kit.GroupCall, r result) {
	switch k.Command.(type) {
	case prepare:
		if w := t.words[k.Shard]; w != nil {
			w.asks = false
		}
		if r.State == aborted || r.State == forgotten {
			c.abort(env, t, r.Reason)
		} else if r.State == committed { // somebody has finished it
			c.adopt(env, t, k.Shard, r)
		} else if k.Shard == t.shards[0] {
			c.confirm(env, t)
		}
	case confirm:
		switch {
		case t.stage != locally || t.agreed, r.State == forgotten && r.Reason == store.NoReason: // its part comes
		case r.State == prepared:
			t.staged = false
			c.maybeFinal(env, t)
		case r.State == committed:
			c.adopt(env, t, k.Shard, r)
		default:
			c.abort(env, t, r.Reason)
		}
	case decide:
		if t.agreed && t.decided == nil {
			c.adopt(env, t, k.Shard, r)
			return
		}
		t.awaited--
		c.maybeForget(env, t)
	case done:
		c.end(env, t)
	}
}

// adopt takes the end of a transaction from a shard that has it. Somebody else may have committed
// it, and before it what it depends on: this coordinator has to hear of that, too, before it tells
// anybody.
func (c *coordinator) adopt(env *protocol.Env[store.Message], t *txn, shard uint32, r result) {
	if t.decided != nil {
		return
	}
	t.agreed = true
	if r.State == committed && t.dependsStill() {
		c.finished = append(slices.DeleteFunc(c.finished, func(f finished) bool { return f.t == t }),
			finished{t, shard, r})
		c.seek(env, t)
		return
	}
	switch {
	case r.State == committed && t.stage == over: // those that depended on it are aborted in vain
		t.final = r.At
		c.table.wrote(t)
		c.saw(event{what: isFinal, t: t})
		c.tell(env, t, store.Decided{ID: t.id, Verdict: store.Committed,
			Version: store.Version{Time: uint64(r.At), Client: t.id.Client}})
	case r.State == committed:
		c.commit(env, t, r.At)
	default:
		if t.stage != over {
			c.abort(env, t, r.Reason)
		}
		d := store.Decided{ID: t.id, Verdict: store.Aborted, Reason: t.reason}
		if r.State == forgotten {
			d.Verdict, d.Reason = store.Unknown, store.Old
		}
		c.tell(env, t, d)
	}
	c.carryOut(env, t, []uint32{shard})
}

// dependsStill reports whether it is not known here how something has ended that the transaction
// depends on.
func (t *txn) dependsStill() bool {
	return len(t.on) > 0 || slices.ContainsFunc(t.stood, func(on *txn) bool { return on.decided == nil })
}

// seek asks how those have ended that a transaction depends on which somebody else has committed:
// so that one has committed them. Nobody reads what they write until it is known when.
func (c *coordinator) seek(env *protocol.Env[store.Message], t *txn) {
	on := slices.Clone(t.stood)
	for _, x := range t.on { //pure:ok they are sorted
		on = append(on, x)
	}
	slices.SortFunc(on, func(a, b *txn) int { return a.id.Compare(b.id) })
	for _, x := range on {
		if x.stage != locally || x.agreed {
			continue // its first shard is asked already
		}
		x.agreed, x.sought = true, true
		c.saw(event{what: isAgreed, t: x})
		c.seekAgain(env, x)
	}
}

// seekAgain asks the first shard, unless that has to answer still.
func (c *coordinator) seekAgain(env *protocol.Env[store.Message], t *txn) {
	if !t.words[t.shards[0]].asks {
		c.prepareAt(env, t, 0)
	}
}

// endNext goes on with those that somebody else has committed, once it is known how all have
// ended that they depended on.
func (c *coordinator) endNext(env *protocol.Env[store.Message]) {
	for i := 0; i < len(c.finished); i++ {
		if f := c.finished[i]; !f.t.dependsStill() {
			c.finished = slices.Delete(c.finished, i, i+1)
			c.adopt(env, f.t, f.shard, f.r)
			i = -1 // it may have gone on with others
		}
	}
}

// tell tells a transaction's clients how it has ended.
func (c *coordinator) tell(env *protocol.Env[store.Message], t *txn, d store.Decided) {
	if t.explain || !t.commits { // else it may still be asked for
		d.Course = c.course(t)
	}
	t.decided = &d
	c.tuning.counts(env.Now, t, d.Verdict == store.Committed)
	for _, id := range t.clients {
		env.Send(id, d)
	}
	t.clients, t.stood = nil, nil
	c.leaves(env, t)
	c.endNext(env)
}

// maybeForget forgets a transaction whose shards have all carried out the decision. The first one
// is told before, if it remembers a commit until then.
func (c *coordinator) maybeForget(env *protocol.Env[store.Message], t *txn) {
	switch {
	case t.awaited > 0:
	case t.final > 0 && len(t.shards) > 1:
		t.awaited++
		c.calls.Ask(env, kit.GroupCall{Shard: t.shards[0], ID: t.id, Command: done{t.id}})
	default:
		c.end(env, t)
	}
}

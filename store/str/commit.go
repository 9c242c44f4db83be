package str

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// certification is how a transaction that writes is certified: first at its site, then everywhere.
type certification struct {
	writes  []store.Write
	clients []protocol.ID // who wait for the outcome
	parts   []store.Txn
	shards  []uint32
	waitsIn []*entry // keys whose writers it waits for, at this coordinator

	lacks  map[uint32]bool // shards whose server at the site has not certified it
	asked  int             // how often these servers were asked
	waited bool            // one has said that it waits for others since
	apart  bool            // one was silent, so it is not known here what it has served
	sure   []sureWord
	// vouched is up to which commits of others the site's servers would have it give way, by shard;
	// nil: they would not, or not all of them.
	vouched map[uint32]clock.Stamp
	local   clock.Stamp // [STR: LC]
	bound   clock.Stamp // what it has written is not read in later snapshots before it is final
	read    clock.Stamp // the latest snapshot in which it was

	words map[uint32]*words // by shard
}

// words are what the members of a shard's group have said of a transaction.
type words struct {
	of map[protocol.ID]word
	// leader is the word of one that leads.
	leader *word
	asks   bool // the group was asked to prepare it, and has not answered
}

// boundTrips is for how many round trips after a transaction's snapshot its writes are read before
// it is final.
const boundTrips = 16

// addClient has somebody told the outcome.
func (t *txn) addClient(id protocol.ID) {
	if !slices.Contains(t.clients, id) {
		t.clients = append(t.clients, id)
	}
}

// certify certifies a transaction at its site, once no other one of this coordinator's is in its
// way [STR §6.5, local certification].
func (c *coordinator) certify(env *protocol.Env[store.Message], t *txn) {
	t.stage = running
	over := map[store.TxnID]*txn{}
	for _, w := range t.writes {
		if c.table.written(w.Key) > t.at {
			c.abort(env, t, store.StaleWrite)
			return
		}
		e := c.table.of(w.Key)
		if x := e.certifying; x != nil && x != t {
			if x.at >= t.at {
				c.abort(env, t, store.Locked)
				return
			}
			c.queue(t, e)
			return
		}
		for _, x := range e.local {
			switch {
			case x.local > t.at:
				c.abort(env, t, store.Locked)
				return
			case !c.mode.speculates || t.at > x.bound:
				c.queue(t, e)
				return
			}
			over[x.id] = x
		}
	}
	for _, x := range over { //pure:ok a set is added to
		c.depend(t, x) // (S8)
		c.saw(event{what: writesOver, t: t, on: x})
	}
	t.stage = certifying
	for _, w := range t.writes {
		c.table.of(w.Key).certifying = t
	}
	t.parts, t.shards = c.cfg.Layout.Split(store.Txn{ID: t.id, Writes: t.writes})
	t.lacks, t.vouched = map[uint32]bool{}, map[uint32]clock.Stamp{}
	for _, k := range t.shards {
		if _, ok := c.local(k); ok {
			t.lacks[k] = true
		}
	}
	c.askSite(env, t)
	c.maybeLocal(env, t)
}

// queue has a transaction wait until a key is free.
func (c *coordinator) queue(t *txn, e *entry) {
	if !slices.Contains(e.queue, t) {
		e.queue = append(e.queue, t)
		t.waitsIn = append(t.waitsIn, e)
	}
}

// wake tries those again that wait for a key.
func (c *coordinator) wake(env *protocol.Env[store.Message], keys []store.Write) {
	for _, w := range keys {
		e := c.table.keys[w.Key]
		if e == nil {
			continue
		}
		queue := e.queue
		e.queue = nil
		for _, t := range queue {
			if t.stage == running && c.txns[t.id] == t {
				c.certify(env, t)
			}
		}
	}
}

// askSite asks the site's servers that have not certified a transaction.
func (c *coordinator) askSite(env *protocol.Env[store.Message], t *txn) {
	t.asked++
	for _, k := range slices.Sorted(maps.Keys(t.lacks)) {
		c.askCertify(env, t, k)
	}
}

// askCertify asks a server of the site to certify a transaction or, if it has, to vouch for it
// further.
func (c *coordinator) askCertify(env *protocol.Env[store.Message], t *txn, shard uint32) {
	m := certify{Shard: shard, ID: t.id, At: t.at, Over: c.overAt(t, shard)}
	for _, w := range t.part(shard).Writes {
		m.Keys = append(m.Keys, w.Key)
	}
	id, _ := c.local(shard)
	env.Send(id, m)
}

// part returns what a transaction writes at a shard.
func (t *txn) part(shard uint32) store.Txn {
	i, _ := slices.BinarySearch(t.shards, shard)
	return t.parts[i]
}

// overAt returns the transactions that write keys of the shard which this one writes, too.
func (c *coordinator) overAt(t *txn, shard uint32) (out []store.TxnID) {
	for _, w := range t.part(shard).Writes {
		for _, x := range t.on { //pure:ok they are sorted
			if x.writesKey(w.Key) {
				out = append(out, x.id)
			}
		}
	}
	slices.SortFunc(out, store.TxnID.Compare)
	return slices.Compact(out)
}

func (t *txn) writesKey(key store.Key) bool {
	_, ok := slices.BinarySearchFunc(t.writes, key, func(w store.Write, k store.Key) int { return cmp.Compare(w.Key, k) })
	return ok
}

// onCertified takes what a server of the site says.
func (c *coordinator) onCertified(env *protocol.Env[store.Message], from protocol.ID, m certified) {
	t := c.txns[m.ID]
	if id, _ := c.local(min(m.Shard, uint32(len(c.cfg.Layout.Sites[0].Shards)-1))); id != from {
		return
	}
	// One that nobody knows may be prepared everywhere, with the server's word: see onRelease.
	if d := c.past.of[m.ID]; t == nil && d.Verdict == store.Aborted || t != nil && t.stage == over && t.decided != nil {
		env.Send(from, release{m.Shard, m.ID})
		return
	}
	if t == nil {
		return
	}
	c.vouchedFor(env, t, m)
	switch {
	case t.stage != certifying || !t.lacks[m.Shard]:
	case m.Reason == store.Fenced: // it is no reader, so the site is one without a copy
		delete(t.lacks, m.Shard)
		t.apart = true
		c.maybeLocal(env, t)
	case m.Reason != store.NoReason:
		c.abort(env, t, m.Reason)
	case m.Stamp == 0:
		t.waited = true
	default:
		delete(t.lacks, m.Shard)
		t.sure = append(t.sure, sureWord{from, m.Stamp})
		c.maybeLocal(env, t)
	}
}

// vouchedFor takes up to which commits a server of the site would have a transaction give way.
func (c *coordinator) vouchedFor(env *protocol.Env[store.Message], t *txn, m certified) {
	if m.Until == 0 || t.vouched == nil || !slices.Contains(t.shards, m.Shard) {
		return
	}
	t.vouched[m.Shard] = max(t.vouched[m.Shard], m.Until)
	if t.stage != locally {
		return
	}
	c.isSafeUntil(t, t.leastVouched())
	for _, d := range c.readers(t) {
		if d.stage == running {
			c.deliver(env, d)
		}
	}
}

// certifyAgain asks the site's servers again. If one does not answer then, its shard counts as one
// of which the site has no copy.
func (c *coordinator) certifyAgain(env *protocol.Env[store.Message], t *txn) {
	switch {
	case len(t.lacks) == 0: // a word is to come, and meanwhile they keep what they have certified
		for _, w := range t.sure {
			c.askCertify(env, t, uint32(c.places[w.Server].Index))
		}
	case t.asked > 1 && !t.waited:
		clear(t.lacks)
		t.apart = true
		c.maybeLocal(env, t)
	default:
		t.waited = false
		c.askSite(env, t)
	}
}

// maybeLocal commits a transaction locally once its site has certified it: from now on others see
// what it writes. Then it is certified everywhere. While the first shard of something that it
// depends on decides, servers may have shown others here that this one comes too early.
func (c *coordinator) maybeLocal(env *protocol.Env[store.Message], t *txn) {
	if t.stage != certifying || len(t.lacks) > 0 || t.awaitsWord() {
		return
	}
	t.local, t.bound, t.localAt = t.at+1, c.boundOf(t.at), env.Now
	if c.mode.speculates && c.degree == degreeOff {
		t.bound = t.at
	}
	for _, w := range t.sure {
		t.local = max(t.local, w.Stamp)
	}
	for _, x := range t.on { //pure:ok the latest of all
		t.local = max(t.local, x.local+1)
		t.bound = min(t.bound, x.bound)
	}
	for _, w := range t.writes {
		t.local = max(t.local, c.table.above(w.Key)+1)
	}
	if t.apart {
		t.local = max(t.local, c.begun+1)
	}
	t.stage, t.asked = locally, 0
	c.isSafeUntil(t, t.leastVouched())
	for _, w := range t.writes {
		e := c.table.of(w.Key)
		e.certifying = nil
		i := 0
		for i < len(e.local) && e.local[i].local < t.local {
			i++
		}
		e.local = slices.Insert(e.local, i, t)
	}
	c.saw(event{what: isLocal, t: t})
	c.tellLocal(env, t)
	c.readAnew(env, t)
	c.certifyEverywhere(env, t)
	c.wake(env, t.writes)
}

// readAnew makes reads that are on their way again: they show what was just committed locally, or
// tell the server to skip it.
func (c *coordinator) readAnew(env *protocol.Env[store.Message], t *txn) {
	var refs []uint64
	for ref, r := range c.reads { //pure:ok they are sorted
		if t.writesKey(r.key) {
			refs = append(refs, ref)
		}
	}
	slices.Sort(refs)
	for _, ref := range refs {
		if r := c.reads[ref]; r != nil { // an answer to another one may have given it up
			c.read(env, r)
		}
	}
}

// certifyEverywhere has the groups of all shards prepare a transaction [STR §6.5, global
// certification].
func (c *coordinator) certifyEverywhere(env *protocol.Env[store.Message], t *txn) {
	t.words = map[uint32]*words{}
	t.staged = t.held && !t.waits
	for i, k := range t.shards {
		t.words[k] = &words{of: map[protocol.ID]word{}}
		c.prepareAt(env, t, i)
	}
}

// prepareAt has the group of one of a transaction's shards prepare it.
func (c *coordinator) prepareAt(env *protocol.Env[store.Message], t *txn, i int) {
	k := t.shards[i]
	p := part{ID: t.id, At: t.at, Local: t.local, Shards: t.shards, Origin: c.cfg.ID, Sure: t.sure, Held: t.staged,
		Writes: t.parts[i].Writes, Over: c.overAt(t, k)}
	for _, on := range t.on { //pure:ok they are sorted
		p.On = append(p.On, dependency{on.id, on.shards[0], t.limitOf(on.id)})
	}
	slices.SortFunc(p.On, func(a, b dependency) int { return a.ID.Compare(b.ID) })
	t.words[k].asks = true
	c.calls.Ask(env, kit.GroupCall{Shard: k, ID: t.id, Command: prepare{p}})
}

// onWord takes a member's word.
func (c *coordinator) onWord(env *protocol.Env[store.Message], from protocol.ID, m word) {
	p, ok := c.places[from]
	if !ok || uint32(p.Index) != m.Shard {
		return
	}
	if r := c.rescue[m.ID]; r != nil && r.words[m.Shard] != nil {
		r.words[m.Shard].add(from, m)
		c.rescueStep(env, r)
		return
	}
	if t := c.txns[m.ID]; t != nil && t.stage == locally && t.words[m.Shard] != nil {
		t.words[m.Shard].add(from, m)
		t.certifiedBy(from, env.Now)
		if id, ok := c.local(m.Shard); ok && !slices.Contains(m.Readers, id) {
			t.vouched = nil
			c.isSafeUntil(t, t.at)
		}
		c.maybeFinal(env, t)
	}
}

// isSafeUntil takes note that a transaction may be overtaken, by a commit above a timestamp, before
// the site hears of that.
func (c *coordinator) isSafeUntil(t *txn, until clock.Stamp) {
	t.unsafe[t.id] = until
	for _, d := range c.readers(t) {
		d.unsafe[t.id] = until
	}
}

// leastVouched returns up to which commits the site's servers would have a transaction give way:
// its snapshot, if one of its shards has no copy there.
func (t *txn) leastVouched() clock.Stamp {
	if len(t.vouched) < len(t.shards) {
		return t.at
	}
	least := clock.Stamp(math.MaxInt64)
	for _, at := range t.vouched { //pure:ok the least of all
		least = min(least, at)
	}
	return max(least, t.at)
}

// add takes a word. Those of another place in the log do not count with it.
func (w *words) add(from protocol.ID, m word) {
	w.of[from] = m
	if len(m.Members) > 0 {
		w.leader = &m
	}
}

// stored reports whether a majority of the members have the entry on their disks, which makes it
// the group's.
func (w *words) stored() bool {
	return w.leader != nil && isStored(w.leader.Members, w.leader.At, func(id protocol.ID) raft.Position {
		return w.of[id].At
	})
}

// isStored reports whether a majority of a group's members have an entry at the leader's place of
// the log, each as it has said.
func isStored(members []protocol.ID, at raft.Position, of func(protocol.ID) raft.Position) bool {
	n := 0
	for _, id := range members {
		if at.Index > 0 && of(id) == at {
			n++
		}
	}
	return n > len(members)/2
}

// stamp returns the least timestamp of a commit by the words of all readers that the part names; ok
// is false if some are missing. The word of a reader that serves no more is not needed: then the
// commit is above the floor. It is not certain, as others may have that word and find an earlier
// timestamp, so the first shard has to agree.
func (w *words) stamp() (at clock.Stamp, certain, ok bool) {
	if !w.stored() {
		return 0, false, false
	}
	certain, at = true, w.leader.Above+1 // whoever the readers are: there may be none
	for _, id := range w.leader.Readers {
		m, has := w.of[id]
		switch has = has && m.At == w.leader.At; {
		case has:
			at = max(at, m.Stamp)
		case slices.Contains(w.leader.Serving, id):
			return 0, false, false
		default:
			certain, at = false, max(at, w.leader.Past+1)
		}
	}
	return at, certain, true
}

// missing returns those of whom there is no word.
func (w *words) missing(all []protocol.ID) (out []protocol.ID) {
	for _, id := range all {
		if m, ok := w.of[id]; !ok || w.leader != nil && m.At != w.leader.At {
			out = append(out, id)
		}
	}
	return out
}

// finishedLooks is after how many looks at missing words the group is asked what became of a
// transaction.
const finishedLooks = 8

// wordsAgain asks those again of whom there is no word.
func (c *coordinator) wordsAgain(env *protocol.Env[store.Message], t *txn) {
	if t.decided != nil {
		return
	}
	if t.sought {
		c.seekAgain(env, t)
		return
	}
	t.asked++
	for i, k := range t.shards {
		w := t.words[k]
		c.askWords(env, t.id, k, w, t.asked > 2)
		// Members have no word on what somebody else has finished meanwhile. The group knows.
		if _, _, ok := w.stamp(); !ok && !w.asks && t.asked%finishedLooks == 0 {
			c.prepareAt(env, t, i)
		}
	}
	if t.vouched != nil && c.mode.speculates {
		soon := clock.Stamp(env.Now + lookTrips*c.cfg.RoundTrip*5/4) // somebody looks again before
		for _, w := range t.sure {
			if k := uint32(c.places[w.Server].Index); t.vouched[k] < soon {
				c.askCertify(env, t, k)
			}
		}
	}
}

// askWords asks the members of a shard's group whose words are missing. tells lets the leader know
// which they are, so that its group goes on without them.
func (c *coordinator) askWords(env *protocol.Env[store.Message], id store.TxnID, shard uint32, w *words, tells bool) {
	if _, _, ok := w.stamp(); ok {
		return
	}
	all := c.cfg.Layout.ServersOf(int(shard))
	missing := w.missing(all)
	for _, to := range all {
		m := wordWanted{Shard: shard, ID: id}
		if tells && w.leader != nil {
			m.Missing = w.missing(w.leader.Serving)
		}
		// One of those whose words are there leads, and may know more by now.
		if w.leader == nil || tells || slices.Contains(missing, to) {
			env.Send(to, m)
		}
	}
}

// onDisplaced aborts a transaction that has given way to another one at a server of the site.
func (c *coordinator) onDisplaced(env *protocol.Env[store.Message], from protocol.ID, m displaced) {
	if t := c.txns[m.ID]; t != nil && t.stage < over {
		c.abortAs(env, t, store.GaveWay, store.Locked)
	}
	env.Send(from, release(m))
}

package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// An Application is a client's application: it makes one transaction after the other.
type Application struct {
	world   *World
	ID      protocol.ID // of its client node
	n       int
	Busy    bool   // it waits for an answer
	Ref     uint64 // of what it asked for last
	Queries int    // how often it has asked for the outcome

	ops      []op        // of the transaction
	declared uint64      // the Ref of the Declare that has begun it; zero: none has
	known    []store.Key // that it has declared to read
	viewing  bool        // it has declared to write nothing
	general  *general    // nil: it declares nothing as it goes on
	stepKeys []store.Key // that it reads at once, and waits for (Protocol.Steps)
	relaxed  bool        // it asks to be serializable, and no more
	stale    *staleRead  // nil: it sees what there is
	at       int         // the one that is read
	buffer   store.Buffer
	seen     map[store.Key]store.Value
	session  map[store.Key]sessionSaw
	priority store.Priority
	attempt  int
	log      history.TxnLog
	number   int
	begun    time.Duration // when the attempt was submitted
	ahead    []*ahead      // after which it went on
	sent     *ahead        // after which it may go on; nil: it waits for the outcome
}

type op struct {
	key                 store.Key
	read, write, delete bool
}

// Next begins a transaction, of any kind.
func (a *Application) Next() {
	w := a.world
	if w.Stopped || a.Busy {
		return
	}
	a.ops, a.priority, a.attempt = nil, store.Priority{}, 0
	n := 1 + w.Rand.IntN(3)
	readOnly := w.Rand.IntN(4) == 0
	if w.Scenario.Hot {
		n, readOnly = 1, false
	}
	if w.Scenario.Ring {
		a.ops = []op{{key: store.Key(fmt.Sprintf("k%d", a.n)), read: true},
			{key: store.Key(fmt.Sprintf("k%d", (a.n+1)%w.Scenario.Keys)), write: true}}
		a.begin()
		return
	}
	if w.Scenario.Bank {
		a.nextTransfer()
		a.begin()
		return
	}
	for _, k := range w.Rand.Perm(w.Scenario.Keys)[:min(n, w.Scenario.Keys)] {
		o := op{key: store.Key(fmt.Sprintf("k%d", k)), read: true}
		if !readOnly {
			o.read, o.write = w.Scenario.Hot || w.Rand.IntN(3) > 0, w.Scenario.Hot || w.Rand.IntN(3) > 0
			o.delete = o.write && !w.Scenario.Hot && !w.Scenario.Appends && w.Rand.IntN(5) == 0
			o.read = o.read || o.write && w.Scenario.Appends
		}
		a.ops = append(a.ops, o)
	}
	a.begin()
}

// begin begins an attempt, which is a transaction of its own to the history.
func (a *Application) begin() {
	w := a.world
	w.Txns++
	a.Busy, a.at, a.buffer, a.Queries, a.number = true, 0, store.Buffer{}, 0, w.Txns
	a.seen, a.viewing = map[store.Key]store.Value{}, false
	a.attempt++
	w.Attempts = max(w.Attempts, a.attempt)
	if a.relaxed = w.Subject.Protocol.Clocked && a.number%8 == 0; a.relaxed {
		w.relaxed[history.TxnID(a.number)] = true
	}
	session := history.Client(a.n)
	if len(a.ahead) > 0 { // judgeAhead knows what it comes behind
		session = history.Client(10_000 + a.number)
	}
	a.log = w.rec.Begin(history.TxnID(w.Txns), session, w.Sim.Now())
	if a.stale = nil; w.Scenario.Stale && a.onlyReads() && w.Rand.IntN(3) > 0 {
		a.beginStale()
		return
	}
	if a.general = nil; w.Scenario.General && a.number%3 > 0 {
		a.general = &general{asks: a.number%3 == 1, reads: map[store.Key]bool{}, writes: map[store.Key]bool{}}
	}
	a.declared, a.stepKeys = 0, nil
	if a.general == nil && w.Subject.Protocol.Declares && w.Rand.IntN(2) == 0 && a.declare() {
		return
	}
	a.step()
}

// declare begins an attempt by most of its keys, and reports whether there is something to declare.
func (a *Application) declare() bool {
	w := a.world
	a.Ref++
	m := store.Declare{Ref: a.Ref, Serializable: a.relaxed, Priority: a.priority}
	for _, o := range a.ops {
		if w.Rand.IntN(8) == 0 {
			continue // it is one that nobody foresaw
		}
		if o.read {
			m.Reads = append(m.Reads, o.key)
		}
		if o.write {
			m.Writes = append(m.Writes, o.key)
		}
	}
	if len(m.Writes) == 0 && (len(m.Reads) == 0 || slices.ContainsFunc(a.ops, func(o op) bool { return o.write })) {
		return false
	}
	a.viewing = len(m.Writes) == 0
	slices.Sort(m.Reads)
	slices.Sort(m.Writes)
	a.known = m.Reads
	w.Sim.Deliver(a.ID, m)
	return true
}

// onDeclared takes what the declared keys hold. Some who have begun so leave it at that.
func (a *Application) onDeclared(m store.Declared) {
	w := a.world
	switch {
	case !m.OK:
		a.log.Abort(w.Sim.Now())
		a.end()
		return
	case !a.viewing && w.Rand.IntN(10) == 0:
		w.Sim.Deliver(a.ID, store.Abandon{Ref: m.Ref})
		a.log.Abort(w.Sim.Now())
		a.end()
		return
	}
	for i, k := range a.known {
		if v := m.Values[i]; !v.Large {
			a.buffer.Saw(k, v.Value)
			a.seen[k] = v.Value
		}
	}
	switch {
	case !a.viewing:
		a.declared = m.Ref
	case len(a.seen) == len(a.ops): // it has read all that it wants to, and writes nothing
		a.done(store.Done{Ref: a.Ref, Outcome: store.Outcome{Verdict: store.Committed}})
		return
	}
	a.step()
}

// step reads the next key, or commits.
func (a *Application) step() {
	w := a.world
	for ; a.at < len(a.ops); a.at++ {
		o := a.ops[a.at]
		if _, seen := a.seen[o.key]; seen && (a.viewing || a.declared != 0) {
			continue
		}
		if o.read && a.general != nil && a.reach() {
			return
		}
		if w.Subject.Protocol.Steps {
			if a.readStep() {
				return
			}
			continue
		}
		if o.read || !a.priority.IsZero() { // who tries again makes reservations for blind writes too
			a.Ref++
			w.Sim.Deliver(a.ID, store.Get{Ref: a.Ref, Key: o.key, Priority: a.priority, Nearest: w.Scenario.Near})
			return
		}
	}
	for _, o := range a.ops {
		switch {
		case o.delete:
			a.buffer.Delete(o.key)
		case o.write:
			value := fmt.Appendf(nil, "%d.%s", a.number, o.key)
			if w.Scenario.Appends {
				value = fmt.Appendf(slices.Clone(a.seen[o.key].Bytes), " %d", a.number)
			} else if w.Scenario.Bank {
				value = a.moved(o.key)
			}
			a.buffer.Put(o.key, value)
		}
	}
	reads, writes := a.buffer.Accesses()
	a.Ref++
	a.begun = w.Sim.Now()
	m := store.Submit{Ref: a.Ref, Priority: a.priority, Reads: reads, Writes: writes, Begun: a.declared,
		Hold: w.Scenario.Near, Serializable: a.relaxed}
	a.speculate(&m)
	w.Sim.Deliver(a.ID, m)
}

func (a *Application) receive(msg store.Message) {
	w := a.world
	switch m := msg.(type) {
	case store.Got:
		if m.Ref != a.Ref || !a.Busy {
			return
		}
		if !m.OK {
			a.log.Abort(w.Sim.Now())
			a.end()
			return
		}
		if o := a.ops[a.at]; o.read {
			a.buffer.Saw(o.key, m.Value)
			a.seen[o.key] = m.Value
		}
		a.at++
		if o := a.ops[0]; m.Settled && len(a.ops) == 1 && o.read && !o.write {
			a.done(store.Done{Ref: a.Ref, Outcome: store.Outcome{Verdict: store.Committed}})
			return
		}
		a.step()
	case store.Declared:
		switch {
		case m.Ref != a.Ref || !a.Busy:
		case w.Subject.Protocol.Steps:
			a.onReadStep(m)
		case a.stale != nil:
			a.onStale(m)
		case a.general != nil:
			a.onReached(m)
		default:
			a.onDeclared(m)
		}
	case store.Speculates:
		a.onLocal(m)
	case store.Done:
		if !a.onAhead(m) && m.Ref == a.Ref && a.Busy {
			a.done(m)
		}
	}
}

func (a *Application) done(m store.Done) {
	w := a.world
	v := m.Outcome.Verdict
	if a.Queries == 0 { // of a query all is known already
		a.note(m.Txn)
	}
	if (v == store.Unknown || v == store.Blocked) && a.Queries < 3 {
		a.Queries++
		a.Ref++
		w.Sim.Deliver(a.ID, store.Query{Ref: a.Ref, Txn: m.Txn})
		return
	}
	if a.concluded(m); v == store.Aborted && !w.Stopped && (a.attempt < 5 || w.Scenario.Hot) {
		a.priority = m.Txn.Priority
		a.begin()
		return
	}
	a.end()
}

// concluded notes how a transaction has ended.
func (a *Application) concluded(m store.Done) {
	w, now, v := a.world, a.world.Sim.Now(), m.Outcome.Verdict
	w.Verdicts[v]++
	if v == store.Blocked {
		w.Blocked = append(w.Blocked, a.begun)
	}
	switch v {
	case store.Committed:
		a.log.Commit(now)
		a.remember(m.Txn)
		if w.Scenario.Bank && a.onlyReads() && w.Err == nil {
			w.Err = w.audit(a.seen)
		}
		for _, x := range m.Txn.Writes {
			w.told[x.Key] = append(w.told[x.Key], toldWrite{m.Txn.ID, now})
			if w.Scenario.Appends {
				w.Appended[x.Key] = append(w.Appended[x.Key], a.number)
			}
		}
	case store.Aborted:
		a.log.Abort(now)
	case store.Rejected:
		w.Err = fmt.Errorf("client %d: %v was rejected: %s", a.ID, m.Txn, m.Outcome.Detail)
	}
}

// note records what a transaction read and would write.
func (a *Application) note(t store.Txn) {
	for _, o := range a.ops {
		if o.read {
			a.log.Read(string(o.key), Shown(a.world.Subject.Protocol, a.seen[o.key]))
		}
	}
	for _, x := range t.Writes {
		v := store.Value{Version: t.ID, Present: !x.Delete, Bytes: x.Bytes}
		a.log.Write(string(x.Key), Shown(a.world.Subject.Protocol, v))
	}
}

func (a *Application) end() {
	a.Busy = false
	w := a.world
	w.Sim.After(time.Duration(w.Rand.IntN(int(cmp.Or(w.Scenario.Pause, 100*time.Millisecond)/time.Millisecond)))*
		time.Millisecond, a.Next)
}

// Stop ends what an application waits for, as its node is about to stop, and returns the
// transaction whose outcome it has to ask for: the one that the node has submitted, if any.
func (a *Application) Stop(submitted func(protocol.Node[store.Message]) (store.Txn, bool)) (t store.Txn, pending bool) {
	a.Ref++ // nothing that comes is an answer
	if !a.Busy {
		return t, false
	}
	if node := a.world.Sim.Get(a.ID); node != nil {
		if t, pending = submitted(node); pending {
			if a.Queries == 0 {
				a.note(t)
			}
			return t, true
		}
	}
	if a.at < len(a.ops) { // it was still reading
		a.log.Abort(a.world.Sim.Now())
	}
	a.Busy = false
	return t, false
}

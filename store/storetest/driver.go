package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A Driver is a client's application: it makes one transaction after the other.
type Driver struct {
	world   *World
	ID      protocol.ID // of its client node
	n       int
	Busy    bool   // it waits for an answer
	Ref     uint64 // of what it asked for last
	Queries int    // how often it has asked for the outcome

	ops      []op // of the transaction
	at       int  // the one that is read
	buffer   store.Buffer
	seen     map[store.Key]store.Value
	priority store.Priority
	attempt  int
	log      history.TxnLog
	number   int
	begun    time.Duration // when the attempt was submitted
}

type op struct {
	key                 store.Key
	read, write, delete bool
}

// Next begins a transaction, of any kind.
func (d *Driver) Next() {
	w := d.world
	if w.Stopped || d.Busy {
		return
	}
	d.ops, d.priority, d.attempt = nil, store.Priority{}, 0
	n := 1 + w.Rand.IntN(3)
	readOnly := w.Rand.IntN(4) == 0
	if w.Scenario.Hot {
		n, readOnly = 1, false
	}
	if w.Scenario.Ring {
		d.ops = []op{{key: store.Key(fmt.Sprintf("k%d", d.n)), read: true},
			{key: store.Key(fmt.Sprintf("k%d", (d.n+1)%w.Scenario.Keys)), write: true}}
		d.begin()
		return
	}
	for _, k := range w.Rand.Perm(w.Scenario.Keys)[:min(n, w.Scenario.Keys)] {
		o := op{key: store.Key(fmt.Sprintf("k%d", k)), read: true}
		if !readOnly {
			o.read, o.write = w.Scenario.Hot || w.Rand.IntN(3) > 0, w.Scenario.Hot || w.Rand.IntN(3) > 0
			o.delete = o.write && !w.Scenario.Hot && !w.Scenario.Appends && w.Rand.IntN(5) == 0
			o.read = o.read || o.write && w.Scenario.Appends
		}
		d.ops = append(d.ops, o)
	}
	d.begin()
}

// begin begins an attempt, which is a transaction of its own to the history.
func (d *Driver) begin() {
	w := d.world
	w.Txns++
	d.Busy, d.at, d.buffer, d.Queries, d.number = true, 0, store.Buffer{}, 0, w.Txns
	d.seen = map[store.Key]store.Value{}
	d.attempt++
	w.Attempts = max(w.Attempts, d.attempt)
	d.log = w.rec.Begin(history.TxnID(w.Txns), history.Client(d.n), w.Sim.Now())
	d.step()
}

// step reads the next key, or commits.
func (d *Driver) step() {
	w := d.world
	for ; d.at < len(d.ops); d.at++ {
		if o := d.ops[d.at]; o.read || !d.priority.IsZero() { // who tries again makes reservations for blind writes too
			d.Ref++
			w.Sim.Deliver(d.ID, store.Get{Ref: d.Ref, Key: o.key, Priority: d.priority, Nearest: w.Scenario.Near})
			return
		}
	}
	for _, o := range d.ops {
		switch {
		case o.delete:
			d.buffer.Delete(o.key)
		case o.write:
			value := fmt.Appendf(nil, "%d.%s", d.number, o.key)
			if w.Scenario.Appends {
				value = fmt.Appendf(slices.Clone(d.seen[o.key].Bytes), " %d", d.number)
			}
			d.buffer.Put(o.key, value)
		}
	}
	reads, writes := d.buffer.Accesses()
	d.Ref++
	d.begun = w.Sim.Now()
	w.Sim.Deliver(d.ID, store.Submit{Ref: d.Ref, Priority: d.priority, Reads: reads, Writes: writes,
		Hold: w.Scenario.Near})
}

func (d *Driver) receive(msg store.Message) {
	w := d.world
	switch m := msg.(type) {
	case store.Got:
		if m.Ref != d.Ref || !d.Busy {
			return
		}
		if !m.OK {
			d.log.Abort(w.Sim.Now())
			d.end()
			return
		}
		if o := d.ops[d.at]; o.read {
			d.buffer.Saw(o.key, m.Value)
			d.seen[o.key] = m.Value
		}
		d.at++
		if o := d.ops[0]; m.Settled && len(d.ops) == 1 && o.read && !o.write {
			d.done(store.Done{Ref: d.Ref, Outcome: store.Outcome{Verdict: store.Committed}})
			return
		}
		d.step()
	case store.Done:
		if m.Ref == d.Ref && d.Busy {
			d.done(m)
		}
	}
}

func (d *Driver) done(m store.Done) {
	w := d.world
	now := w.Sim.Now()
	v := m.Outcome.Verdict
	if d.Queries == 0 { // of a query all is known already
		d.note(m.Txn)
	}
	if (v == store.Unknown || v == store.Blocked) && d.Queries < 3 {
		d.Queries++
		d.Ref++
		w.Sim.Deliver(d.ID, store.Query{Ref: d.Ref, Txn: m.Txn})
		return
	}
	w.Verdicts[v]++
	if v == store.Blocked {
		w.Blocked = append(w.Blocked, d.begun)
	}
	switch v {
	case store.Committed:
		d.log.Commit(now)
		for _, a := range m.Txn.Writes {
			if w.Scenario.Appends {
				w.Appended[a.Key] = append(w.Appended[a.Key], d.number)
			}
		}
	case store.Aborted:
		d.log.Abort(now)
		if !w.Stopped && (d.attempt < 5 || w.Scenario.Hot) {
			d.priority = m.Txn.Priority
			d.begin()
			return
		}
	case store.Rejected:
		w.Err = fmt.Errorf("client %d: %v was rejected: %s", d.ID, m.Txn, m.Outcome.Detail)
	}
	d.end()
}

// note records what a transaction read and would write.
func (d *Driver) note(t store.Txn) {
	for _, o := range d.ops {
		if o.read {
			d.log.Read(string(o.key), Shown(d.seen[o.key]))
		}
	}
	for _, a := range t.Writes {
		d.log.Write(string(a.Key), Shown(store.Value{Version: t.ID, Present: !a.Delete, Bytes: a.Bytes}))
	}
}

func (d *Driver) end() {
	d.Busy = false
	d.world.Sim.After(time.Duration(d.world.Rand.IntN(100))*time.Millisecond, d.Next)
}

// Stop ends what a driver waits for, as its node is about to stop, and returns the transaction
// whose outcome it has to ask for: the one that the node has submitted, if any.
func (d *Driver) Stop(submitted func(protocol.Node[store.Message]) (store.Txn, bool)) (t store.Txn, pending bool) {
	d.Ref++ // nothing that comes is an answer
	if !d.Busy {
		return t, false
	}
	if node := d.world.Sim.Get(d.ID); node != nil {
		if t, pending = submitted(node); pending {
			if d.Queries == 0 {
				d.note(t)
			}
			return t, true
		}
	}
	if d.at < len(d.ops) { // it was still reading
		d.log.Abort(d.world.Sim.Now())
	}
	d.Busy = false
	return t, false
}

package replicatedcommit

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// driver is a client's application: it makes one transaction after the other.
type driver struct {
	world *world
	id    protocol.ID
	n     int
	busy  bool
	ref   uint64

	ops      []op // of the transaction
	at       int  // the one that is read
	buffer   store.Buffer
	seen     map[store.Key]store.Value
	priority store.Priority
	attempt  int
	log      history.TxnLog
	number   int
	queries  int
	begun    time.Duration // when the attempt was submitted
}

type op struct {
	key                 store.Key
	read, write, delete bool
}

// next begins a transaction, of any kind.
func (d *driver) next() {
	w := d.world
	if w.stopped || d.busy {
		return
	}
	d.ops, d.priority, d.attempt = nil, store.Priority{}, 0
	n := 1 + w.rand.IntN(3)
	readOnly := w.rand.IntN(4) == 0
	if w.sc.hot {
		n, readOnly = 1, false
	}
	if w.sc.ring {
		d.ops = []op{{key: store.Key(fmt.Sprintf("k%d", d.n)), read: true}, {key: store.Key(fmt.Sprintf("k%d", (d.n+1)%w.sc.keys)), write: true}}
		d.begin()
		return
	}
	for _, k := range w.rand.Perm(w.sc.keys)[:min(n, w.sc.keys)] {
		o := op{key: store.Key(fmt.Sprintf("k%d", k)), read: true}
		if !readOnly {
			o.read, o.write = w.sc.hot || w.rand.IntN(3) > 0, w.sc.hot || w.rand.IntN(3) > 0
			o.delete = o.write && !w.sc.hot && !w.sc.appends && w.rand.IntN(5) == 0
			o.read = o.read || o.write && w.sc.appends
		}
		d.ops = append(d.ops, o)
	}
	d.begin()
}

// begin begins an attempt, which is a transaction of its own to the history.
func (d *driver) begin() {
	w := d.world
	w.txns++
	d.busy, d.at, d.buffer, d.queries, d.number = true, 0, store.Buffer{}, 0, w.txns
	d.seen = map[store.Key]store.Value{}
	d.attempt++
	w.attempts = max(w.attempts, d.attempt)
	d.log = w.rec.Begin(history.TxnID(w.txns), history.Client(d.n), w.sim.Now())
	d.step()
}

// step reads the next key, or commits.
func (d *driver) step() {
	w := d.world
	for ; d.at < len(d.ops); d.at++ {
		if o := d.ops[d.at]; o.read || !d.priority.IsZero() { // who tries again makes reservations for blind writes too
			d.ref++
			w.sim.Deliver(d.id, store.Get{Ref: d.ref, Key: o.key, Priority: d.priority, Nearest: w.sc.near})
			return
		}
	}
	for _, o := range d.ops {
		switch {
		case o.delete:
			d.buffer.Delete(o.key)
		case o.write:
			value := fmt.Appendf(nil, "%d.%s", d.number, o.key)
			if w.sc.appends {
				value = fmt.Appendf(slices.Clone(d.seen[o.key].Bytes), " %d", d.number)
			}
			d.buffer.Put(o.key, value)
		}
	}
	reads, writes := d.buffer.Accesses()
	d.ref++
	d.begun = w.sim.Now()
	w.sim.Deliver(d.id, store.Submit{Ref: d.ref, Priority: d.priority, Reads: reads, Writes: writes, Hold: w.sc.near})
}

func (d *driver) receive(msg Message) {
	w := d.world
	switch m := msg.(type) {
	case store.Got:
		if m.Ref != d.ref || !d.busy {
			return
		}
		if !m.OK {
			d.log.Abort(w.sim.Now())
			d.end()
			return
		}
		if o := d.ops[d.at]; o.read {
			d.buffer.Saw(o.key, m.Value)
			d.seen[o.key] = m.Value
		}
		d.at++
		if o := d.ops[0]; m.Settled && len(d.ops) == 1 && o.read && !o.write {
			d.done(store.Done{Ref: d.ref, Outcome: store.Outcome{Verdict: store.Committed}})
			return
		}
		d.step()
	case store.Done:
		if m.Ref == d.ref && d.busy {
			d.done(m)
		}
	}
}

func (d *driver) done(m store.Done) {
	w := d.world
	now := w.sim.Now()
	v := m.Outcome.Verdict
	if d.queries == 0 { // of a query all is known already
		d.note(m.Txn)
	}
	if (v == store.Unknown || v == store.Blocked) && d.queries < 3 {
		d.queries++
		d.ref++
		w.sim.Deliver(d.id, store.Query{Ref: d.ref, Txn: m.Txn})
		return
	}
	w.verdicts[v]++
	if v == store.Blocked {
		w.blocked = append(w.blocked, d.begun)
	}
	switch v {
	case store.Committed:
		d.log.Commit(now)
		for _, a := range m.Txn.Writes {
			if w.sc.appends {
				w.appended[a.Key] = append(w.appended[a.Key], d.number)
			}
		}
	case store.Aborted:
		d.log.Abort(now)
		if !w.stopped && (d.attempt < 5 || w.sc.hot) {
			d.priority = m.Txn.Priority
			d.begin()
			return
		}
	case store.Rejected:
		w.err = fmt.Errorf("client %d: %v was rejected: %s", d.id, m.Txn, m.Outcome.Detail)
	}
	d.end()
}

// note records what a transaction read and would write.
func (d *driver) note(t store.Txn) {
	for _, o := range d.ops {
		if o.read {
			d.log.Read(string(o.key), shown(d.seen[o.key]))
		}
	}
	for _, a := range t.Writes {
		d.log.Write(string(a.Key), shown(store.Value{Version: t.ID, Present: !a.Delete, Bytes: a.Bytes}))
	}
}

func (d *driver) end() {
	d.busy = false
	d.world.sim.After(time.Duration(d.world.rand.IntN(100))*time.Millisecond, d.next)
}

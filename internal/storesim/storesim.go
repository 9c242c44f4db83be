// Package storesim has stores run in the simulator as store/plan models them, and measures what
// their clients get: one transaction at a time, over links and disks that add nothing to the
// network's delays.
package storesim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/foresay/foresay/internal/plansim"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/sim/deploy"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
)

// Config says what is measured.
type Config struct {
	System  plan.System // see ProtocolOf
	Setting plan.Setting
	Txns    int // of each client; 0 is DefaultTxns
	Seed    uint64
}

// restsAfter is after how many transactions all partitions are read, so that none comes to rest:
// the model is of a store in use.
const restsAfter = 8

// DefaultTxns is how many transactions of each client are measured.
const DefaultTxns = 40

// A Measurement is one transaction.
type Measurement struct {
	Client  wan.Site
	Class   plan.Class
	Txn     plan.Txn
	Took    time.Duration
	Modeled time.Duration
	// Hops is how many messages from one site to another it has waited for, one after the other, from
	// its first call to the last answer: see sim.Chain. Two are a round trip.
	Hops int
}

// Measure has each client make its first transactions, all of them alone. Of links it takes the
// delays only.
func Measure(c Config) ([]Measurement, error) {
	c.Setting.WAN = plansim.Quiet(c.Setting.WAN)
	if c.Setting.Load.Txns = c.Txns; c.Txns == 0 {
		c.Setting.Load.Txns = DefaultTxns
	}
	if err := c.Setting.Validate(); err != nil {
		return nil, err
	}
	if c.Setting.Lost != "" {
		return nil, fmt.Errorf("storesim: Setting.Lost is %q: who leads then is up to elections", c.Setting.Lost)
	}
	w, err := newWorld(c)
	if err != nil {
		return nil, err
	}
	var out []Measurement
	for i, client := range c.Setting.Clients {
		all := plan.Txn{} // by which the client finds out who is near, and servers that they are in use
		for k := range c.Setting.Placement {
			all.Reads = append(all.Reads, k)
		}
		for n, t := range c.Setting.Txns(i) {
			if n%restsAfter == 0 {
				if err := w.warm(i, all); err != nil {
					return nil, fmt.Errorf("storesim: %s: client at %s, a read of all partitions: %w", c.System, client.Site, err)
				}
			}
			took, err := w.play(i, t, true)
			if err != nil {
				return nil, fmt.Errorf("storesim: %s: client at %s, transaction %d of %+v: %w", c.System, client.Site, n, t, err)
			}
			modeled, ok := plan.Latency(c.Setting, c.System, i, t)
			if !ok {
				return nil, fmt.Errorf("storesim: %s: the model has a transaction of %+v end never", c.System, t)
			}
			out = append(out, Measurement{client.Site, c.Setting.ClassOf(i, t), t, took, modeled, w.hops})
		}
	}
	return out, nil
}

// warm has a client read all partitions, also as transactions do that may see what is old: leaders
// close timestamps from then on.
func (w *world) warm(client int, all plan.Txn) error {
	_, err := w.play(client, all, false)
	if err == nil && w.Setting.Load.Stale {
		_, err = w.play(client, all, true)
	}
	return err
}

// world is a store and its clients.
type world struct {
	*Nodes
	Config
	trip  time.Duration // the longest round trip
	keys  int           // that were used
	chain sim.Chain     // of the last answer
	hops  int           // of the transaction
}

func newWorld(c Config) (*world, error) {
	sites := c.Setting.WAN.Sites()
	w := &world{Config: c, trip: max(c.Setting.WAN.MaxRTT(sites), 10*time.Millisecond)}
	nodes := NodesConfig{System: c.System, Placement: c.Setting.Placement, RoundTrip: w.trip,
		Sim: sim.Config[store.Message]{Seed: c.Seed, WAN: c.Setting.WAN, CheckEvery: 1 << 20, TraceKeep: -1}}
	for _, client := range c.Setting.Clients {
		nodes.Clients = append(nodes.Clients, client.Site)
	}
	var err error
	if w.Nodes, err = NewNodes(nodes); err != nil {
		return nil, err
	}
	return w, w.Settle()
}

// call has a client make a call, and returns where the answer will be.
func (w *world) call(client int, message func(ref uint64) store.Message) *store.Message {
	answer := new(store.Message)
	w.Call(w.Clients[client], message, func(a deploy.Answer[store.Message]) {
		*answer, w.chain = a.Msg, w.Chain()
	})
	return answer
}

// key returns a key of a partition that nobody has used.
func (w *world) key(partition int) store.Key {
	for {
		w.keys++
		if k := store.Key("k" + strconv.Itoa(w.keys)); w.Layout.ShardOf(k) == partition {
			return k
		}
	}
}

// play has a client make a transaction, which may declare its keys, and returns how long it took.
// Then it lets the store carry it out.
func (w *world) play(client int, t plan.Txn, declares bool) (time.Duration, error) {
	began := w.Now()
	w.hops = 0
	if declares && w.Setting.Load.Stale && w.Protocol.Stale && len(t.Writes) == 0 {
		if err := w.stale(client, t); err != nil {
			return 0, err
		}
		took := w.Now() - began
		return took, w.Pass(4 * w.trip)
	}
	if w.Protocol.Steps {
		if err := w.stepped(client, t); err != nil {
			return 0, err
		}
		took := w.Now() - began
		return took, w.Pass(4 * w.trip)
	}
	if declares && w.Setting.Load.Declared && w.Protocol.Declares && (len(t.Writes) > 0 || w.Protocol.Clocked) {
		if err := w.declared(client, t); err != nil {
			return 0, err
		}
		took := w.Now() - began
		return took, w.Pass(4 * w.trip)
	}
	reads, err := w.read(client, t)
	if err != nil {
		return 0, err
	}
	var buffer store.Buffer
	settled := len(reads) == 1 && len(t.Writes) == 0
	for _, r := range reads {
		buffer.Saw(r.key, r.got.Value)
		settled = settled && r.got.Settled
	}
	if !settled {
		for i, k := range t.Writes {
			// What is written has been read, as far as it goes: workload's transactions are so.
			key := w.written(i, k, reads)
			buffer.Put(key, []byte("value"))
		}
		if err := w.commit(client, 0, &buffer); err != nil {
			return 0, err
		}
	}
	took := w.Now() - began
	return took, w.Pass(4 * w.trip)
}

// written returns the key of a transaction's ith write, to a partition.
func (w *world) written(i, partition int, reads []read) store.Key {
	if i < len(reads) && w.Layout.ShardOf(reads[i].key) == partition {
		return reads[i].key
	}
	return w.key(partition)
}

// read is a key and what it has.
type read struct {
	key store.Key
	got store.Got
}

// read makes a transaction's reads, one after the other if its keys are not declared.
func (w *world) read(client int, t plan.Txn) ([]read, error) {
	var all []read
	var answers []*store.Message
	for _, k := range t.Reads {
		key := w.key(k)
		all = append(all, read{key: key})
		answers = append(answers, w.call(client, func(ref uint64) store.Message { return store.Get{Ref: ref, Key: key} }))
		if !w.Setting.Load.Declared {
			if err := w.await(answers...); err != nil {
				return nil, err
			}
		}
	}
	if err := w.await(answers...); err != nil {
		return nil, err
	}
	for i, a := range answers {
		if all[i].got = (*a).(store.Got); !all[i].got.OK {
			return nil, fmt.Errorf("a read of %q got no answer", all[i].key)
		}
	}
	return all, nil
}

// staleFor is how old what is read may be of transactions that may see what is old.
const staleFor = time.Minute

// stale makes a transaction that only reads, and may see what is old.
func (w *world) stale(client int, t plan.Txn) error {
	var keys []store.Key
	for _, k := range t.Reads {
		keys = append(keys, w.key(k))
	}
	slices.Sort(keys)
	step := 1
	if w.Setting.Load.Declared {
		step = len(keys)
	}
	at := uint64(0)
	for some := range slices.Chunk(keys, step) {
		answer := w.call(client, func(ref uint64) store.Message {
			return store.Declare{Ref: ref, Reads: some, MaxAge: staleFor, At: at}
		})
		if err := w.await(answer); err != nil {
			return err
		}
		d := (*answer).(store.Declared)
		if !d.OK || d.At == 0 || at > 0 && d.At != at {
			return fmt.Errorf("its reads, as of %d, are answered as of %d: %v", at, d.At, d.OK)
		}
		at = d.At
	}
	return nil
}

// declared makes a transaction whose keys are declared.
func (w *world) declared(client int, t plan.Txn) error {
	m := store.Declare{}
	for i, k := range t.Writes {
		if m.Writes = append(m.Writes, w.key(k)); i < len(t.Reads) {
			m.Reads = append(m.Reads, m.Writes[i])
		}
	}
	for _, k := range t.Reads[min(len(t.Reads), len(t.Writes)):] {
		m.Reads = append(m.Reads, w.key(k))
	}
	slices.Sort(m.Reads)
	slices.Sort(m.Writes)
	answer := w.call(client, func(ref uint64) store.Message {
		m.Ref = ref
		return m
	})
	if err := w.await(answer); err != nil {
		return err
	}
	d := (*answer).(store.Declared)
	if !d.OK {
		return errors.New("its declared reads got no answer")
	}
	var buffer store.Buffer
	for i, k := range m.Reads {
		buffer.Saw(k, d.Values[i].Value)
	}
	if len(m.Writes) == 0 {
		return nil // it is over
	}
	for _, k := range m.Writes {
		buffer.Put(k, []byte("value"))
	}
	return w.commit(client, d.Ref, &buffer)
}

// stepped makes a transaction that reads a snapshot, of a protocol whose transactions do.
func (w *world) stepped(client int, t plan.Txn) error {
	var buffer store.Buffer
	var reads []read
	var keys []store.Key
	for _, k := range t.Reads {
		keys = append(keys, w.key(k))
	}
	slices.Sort(keys)
	step := 1
	if w.Setting.Load.Declared {
		step = max(len(keys), 1)
	}
	begun := uint64(0)
	for some := range slices.Chunk(keys, step) {
		answer := w.call(client, func(ref uint64) store.Message {
			m := store.Declare{Ref: ref, Reads: some, Begun: begun, General: begun == 0}
			begun = cmp.Or(begun, ref)
			return m
		})
		if err := w.await(answer); err != nil {
			return err
		}
		d := (*answer).(store.Declared)
		if !d.OK {
			return errors.New("its reads got no answer")
		}
		for i, k := range some {
			buffer.Saw(k, d.Values[i].Value)
			reads = append(reads, read{key: k})
		}
	}
	for i, k := range t.Writes {
		buffer.Put(w.written(i, k, reads), []byte("value"))
	}
	return w.commit(client, begun, &buffer)
}

// commit commits what a transaction has read and writes, which has begun as what was declared, or
// not yet.
func (w *world) commit(client int, begun uint64, b *store.Buffer) error {
	reads, writes := b.Accesses()
	answer := w.call(client, func(ref uint64) store.Message {
		return store.Submit{Ref: ref, Reads: reads, Writes: writes, Begun: begun}
	})
	if err := w.await(answer); err != nil {
		return err
	}
	d := (*answer).(store.Done)
	if d.Outcome.Verdict != store.Committed {
		return fmt.Errorf("it was %v: %s", d.Outcome.Verdict, d.Outcome.Detail)
	}
	return nil
}

// await waits for an answer, or several: it has waited for what the last of them has.
func (w *world) await(answers ...*store.Message) error {
	missing := func(a *store.Message) bool { return *a == nil }
	err := w.Await(10*time.Second+20*w.trip, func() bool { return !slices.ContainsFunc(answers, missing) })
	w.hops += w.chain.Hops
	w.chain = sim.Chain{} // or else it counts again where all is there already
	return err
}

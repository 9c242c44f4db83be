// Package storesim has stores run in the simulator as store/plan models them, and measures what
// their clients get: one transaction at a time, over links and disks that add nothing to the
// network's delays.
package storesim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/plansim"
	"github.com/foresay/foresay/protocol"
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

// ProtocolOf returns what runs as a system of the model: a protocol, or one of its modes; false if
// there is none.
func ProtocolOf(s plan.System) (store.Protocol, bool) {
	name, mode, _ := strings.Cut(string(s), "-")
	p, err := catalog.Store(name)
	if err == nil {
		p, err = p.In(mode)
	}
	return p, err == nil
}

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
	p, ok := ProtocolOf(c.System)
	if !ok {
		return nil, fmt.Errorf("storesim: %q is a model only", c.System)
	}
	w, err := newWorld(c, p)
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
	*deploy.Deployment[store.Message]
	Config
	protocol store.Protocol
	layout   store.Layout
	clients  []protocol.ID
	trip     time.Duration // the longest round trip
	ref      uint64        // of the last call
	got      map[uint64]store.Got
	done     map[uint64]store.Done
	begun    map[uint64]store.Declared
	keys     int       // that were used
	chain    sim.Chain // of the last answer
	hops     int       // of the transaction
}

// layoutOf has a coordinator at each site, and the shards where the setting has partitions.
func layoutOf(c Config, p store.Protocol) store.Layout {
	var l store.Layout
	sites := c.Setting.WAN.Sites()
	for i, name := range sites {
		s := store.Site{Name: string(name), Coordinators: []protocol.ID{protocol.ID(1 + i)}}
		for k, copies := range c.Setting.Placement {
			id := protocol.ID(100 + k*len(sites) + i)
			if !c.System.Whole() && !slices.Contains(copies, name) {
				id = 0
			}
			s.Shards = append(s.Shards, id)
		}
		l.Sites = append(l.Sites, s)
	}
	if !c.System.Whole() {
		for _, copies := range c.Setting.Placement {
			l.First = append(l.First, slices.Index(sites, copies[0]))
		}
	}
	if p.Coordinating {
		groups := store.Coordinating(len(sites), func(a, b int) time.Duration {
			return c.Setting.WAN.RTT(sites[a], sites[b])
		})
		return l.Coordinated(groups, func(site, group int) protocol.ID {
			return protocol.ID(100 + (len(c.Setting.Placement)+group)*len(sites) + site)
		})
	}
	return l
}

func newWorld(c Config, p store.Protocol) (*world, error) {
	sites := c.Setting.WAN.Sites()
	w := &world{Config: c, protocol: p, layout: layoutOf(c, p),
		trip: max(c.Setting.WAN.MaxRTT(sites), 10*time.Millisecond),
		got:  map[uint64]store.Got{}, done: map[uint64]store.Done{}, begun: map[uint64]store.Declared{}}
	var err error
	w.Deployment, err = deploy.New(deploy.Config[store.Message]{Sim: sim.Config[store.Message]{
		Seed: c.Seed, WAN: c.Setting.WAN, Codec: p.Codec, CheckEvery: 1 << 20, TraceKeep: -1, App: w.app,
	}})
	if err != nil {
		return nil, err
	}
	config := func(id protocol.ID) store.Config {
		return store.Config{ID: id, Layout: w.layout, RoundTrip: w.trip}
	}
	shards, coordinators := w.layout.Places()
	for i, s := range w.layout.Sites {
		for _, id := range slices.Concat(s.Coordinators, s.Servers()) {
			if _, ok := coordinators[id]; ok && p.NewCoordinator == nil {
				continue
			}
			if err := w.Add(id, sites[i], func() (protocol.Node[store.Message], error) {
				if _, ok := shards[id]; ok {
					return p.NewServer(config(id))
				}
				return p.NewCoordinator(config(id))
			}); err != nil {
				return nil, err
			}
		}
	}
	for i, client := range c.Setting.Clients {
		id := protocol.ID(1<<20 + i)
		w.clients = append(w.clients, id)
		if err := w.Add(id, client.Site, func() (protocol.Node[store.Message], error) {
			return p.NewClient(config(id))
		}); err != nil {
			return nil, err
		}
	}
	return w, w.Pass(5*time.Second + 20*w.trip) // until leaders are elected, and have measured
}

func (w *world) app(_ protocol.ID, msg store.Message) {
	w.chain = w.Chain()
	switch m := msg.(type) {
	case store.Got:
		w.got[m.Ref] = m
	case store.Done:
		w.done[m.Ref] = m
	case store.Declared:
		w.begun[m.Ref] = m
	case store.Refused:
		w.Fail("a server is refused: %s", m.Reason)
	}
}

// key returns a key of a partition that nobody has used.
func (w *world) key(partition int) store.Key {
	for {
		w.keys++
		if k := store.Key("k" + strconv.Itoa(w.keys)); w.layout.ShardOf(k) == partition {
			return k
		}
	}
}

// play has a client make a transaction, which may declare its keys, and returns how long it took.
// Then it lets the store carry it out.
func (w *world) play(client int, t plan.Txn, declares bool) (time.Duration, error) {
	began := w.Now()
	w.hops = 0
	if declares && w.Setting.Load.Stale && w.protocol.Stale && len(t.Writes) == 0 {
		if err := w.stale(client, t); err != nil {
			return 0, err
		}
		took := w.Now() - began
		return took, w.Pass(4 * w.trip)
	}
	if declares && w.Setting.Load.Declared && w.protocol.Declares && (len(t.Writes) > 0 || w.protocol.Clocked) {
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
	if i < len(reads) && w.layout.ShardOf(reads[i].key) == partition {
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
	var refs []uint64
	for _, k := range t.Reads {
		all = append(all, read{key: w.key(k)})
		w.ref++
		refs = append(refs, w.ref)
		w.Deliver(w.clients[client], store.Get{Ref: w.ref, Key: all[len(all)-1].key})
		if !w.Setting.Load.Declared {
			if err := w.await(func() bool { _, ok := w.got[w.ref]; return ok }); err != nil {
				return nil, err
			}
		}
	}
	if err := w.await(func() bool { return w.all(refs) }); err != nil {
		return nil, err
	}
	for i, ref := range refs {
		if all[i].got = w.got[ref]; !all[i].got.OK {
			return nil, fmt.Errorf("a read of %q got no answer", all[i].key)
		}
		delete(w.got, ref)
	}
	return all, nil
}

func (w *world) all(refs []uint64) bool {
	return !slices.ContainsFunc(refs, func(ref uint64) bool { _, ok := w.got[ref]; return !ok })
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
		w.ref++
		w.Deliver(w.clients[client], store.Declare{Ref: w.ref, Reads: some, MaxAge: staleFor, At: at})
		if err := w.await(func() bool { _, ok := w.begun[w.ref]; return ok }); err != nil {
			return err
		}
		d := w.begun[w.ref]
		delete(w.begun, w.ref)
		if !d.OK || d.At == 0 || at > 0 && d.At != at {
			return fmt.Errorf("its reads, as of %d, are answered as of %d: %v", at, d.At, d.OK)
		}
		at = d.At
	}
	return nil
}

// declared makes a transaction whose keys are declared.
func (w *world) declared(client int, t plan.Txn) error {
	w.ref++
	m := store.Declare{Ref: w.ref}
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
	w.Deliver(w.clients[client], m)
	if err := w.await(func() bool { _, ok := w.begun[m.Ref]; return ok }); err != nil {
		return err
	}
	d := w.begun[m.Ref]
	delete(w.begun, m.Ref)
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

// commit commits what a transaction has read and writes, which has begun as what was declared, or
// not yet.
func (w *world) commit(client int, begun uint64, b *store.Buffer) error {
	w.ref++
	reads, writes := b.Accesses()
	w.Deliver(w.clients[client], store.Submit{Ref: w.ref, Reads: reads, Writes: writes, Begun: begun})
	if err := w.await(func() bool { _, ok := w.done[w.ref]; return ok }); err != nil {
		return err
	}
	d := w.done[w.ref]
	delete(w.done, w.ref)
	if d.Outcome.Verdict != store.Committed {
		return fmt.Errorf("it was %v: %s", d.Outcome.Verdict, d.Outcome.Detail)
	}
	return nil
}

// await waits for an answer, or several: it has waited for what the last of them has.
func (w *world) await(cond func() bool) error {
	err := w.Await(10*time.Second+20*w.trip, cond)
	w.hops += w.chain.Hops
	w.chain = sim.Chain{} // or else it counts again where all is there already
	return err
}

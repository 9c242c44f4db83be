package storetest

import (
	"encoding/binary"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/gate"
	"github.com/foresay/foresay/store/storedeploy"
)

// Hostile is a protocol whose nodes get messages that nobody should send.
type Hostile struct {
	Subject Subject
	// Messages are of all kinds of the protocol's own, many of them about the transaction of Requests.
	Messages []store.Message
	// Admit has a server take part that no other one has admitted. nil: it needs nobody to.
	Admit func(server protocol.Node[store.Message])
	// Forgive is called before a node is checked, which may say of others that they contradict each
	// other, and reports whether it still is. nil: all are.
	Forgive func(protocol.Node[store.Message]) bool
}

// messages are of all kinds that are encoded.
func (h Hostile) messages() []store.Message {
	return append(Requests(h.Subject.Protocol.Snapshots, h.Subject.Protocol.Speculates), h.Messages...)
}

// lone are the nodes that get messages one at a time, liars those that send them: members, whom
// nobody else should speak for, clients and strangers.
func lone() []protocol.ID  { return []protocol.ID{10, 11, 12, 99, 110, 200} }
func liars() []protocol.ID { return []protocol.ID{10, 11, 20, 21, 22, 120, 200, 999} }

// Fuzz gives nodes of each kind messages from anybody, in pairs: none may panic, or come to a state
// that it finds wrong.
func (h Hostile) Fuzz(f *testing.F) {
	codec, all := h.Subject.Protocol.Codec, h.messages()
	for i, m := range all {
		a, err := codec.Append(nil, m)
		if err != nil {
			f.Fatal(err)
		}
		for j, from := range liars() {
			b, err := codec.Append(nil, all[(i*7+j)%len(all)])
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint16(from), a, b)
			f.Add(uint16(from), b, a)
		}
	}
	f.Fuzz(func(t *testing.T, from uint16, a, b []byte) {
		var msgs []store.Message
		for _, b := range [][]byte{a, b} {
			if m, err := codec.Decode(b); err == nil {
				msgs = append(msgs, m)
			}
		}
		for _, id := range lone() {
			h.feed(t, id, max(1, protocol.ID(from)), msgs)
		}
	})
}

// Pairs gives each node each pair of messages, each from one sender, or from all of them in a run
// that names a seed.
func (h Hostile) Pairs(t *testing.T) {
	all := h.messages()
	for i, a := range all {
		for j, b := range all {
			from := liars()
			if !seed.Named() {
				from = from[(i*5+j)%len(from):][:1]
			}
			for _, from := range from {
				for _, id := range lone() {
					h.feed(t, id, from, []store.Message{a, b})
				}
			}
		}
	}
}

// node makes a node, nil if the layout has none of that name.
func (h Hostile) node(cfg store.Config) (n protocol.Node[store.Message], err error) {
	shards, _ := cfg.Layout.Places()
	_, serves := shards[cfg.ID]
	switch p := h.Subject.Protocol; {
	case cfg.ID == 10:
		return p.NewCoordinator(cfg)
	case cfg.ID == 99:
		return gate.New(cfg, 0)
	case cfg.ID == 200:
		return p.NewClient(cfg)
	case serves:
		if cfg.ID == 12 && !p.FixedSites { // a newcomer
			cfg.Epoch, cfg.Layout.Sites[0].Since = 1, 1
		}
		if n, err = p.NewServer(cfg); err == nil && h.Admit != nil {
			h.Admit(n)
		}
	}
	return n, err
}

// feed makes a node that takes part, gives it messages, and lets its timers run out.
func (h Hostile) feed(t *testing.T, id, from protocol.ID, msgs []store.Message) {
	n, err := h.node(store.Config{ID: id, Layout: Coordinated(storedeploy.Layout(3, 2), h.Subject.Protocol), MaxTxns: 4,
		MaxWaiting: 4})
	if err != nil {
		t.Fatal(err)
	}
	if n == nil {
		return
	}
	disk := KeySpace{}
	env := protocol.NewEnv[store.Message](disk, 1, rand.New(rand.NewPCG(1, 1)))
	var timers []protocol.Timer
	var own []store.Message
	now := time.Hour
	step := func(call func()) {
		env.Begin(now)
		call()
		for _, e := range env.Out {
			switch {
			case e.Kind == protocol.KindAfter && len(timers) < 20:
				timers = append(timers, e.Timer)
			case (e.Kind == protocol.KindSend || e.Kind == protocol.KindSendAhead) && e.To == id && len(own) < 20:
				own = append(own, e.Msg)
			case e.Kind == protocol.KindPut:
				disk[string(e.Key)] = e.Value
			case e.Kind == protocol.KindDelete:
				delete(disk, string(e.Key))
			}
		}
		if err := h.check(n); err != nil {
			t.Fatalf("node %d, after %#v from %d: %v", id, msgs, from, err)
		}
	}
	step(func() { n.Start(env, nil) })
	for _, m := range asked(id) {
		step(func() { n.Receive(env, protocol.App, m) })
	}
	for _, m := range msgs {
		step(func() { n.Receive(env, from, m) })
	}
	for i := 0; i < len(timers); i++ {
		step(func() { n.Expire(env, timers[i]) })
		now += time.Second
	}
	for i := 0; i < len(own); i++ {
		step(func() { n.Receive(env, id, own[i]) })
	}
	if g, ok := n.(*gate.Gate); ok && g.Open() > 0 {
		t.Fatalf("after %#v from %d %d calls wait for ever", msgs, from, g.Open())
	}
}

func (h Hostile) check(n protocol.Node[store.Message]) error {
	if c, ok := n.(protocol.Checked); ok && (h.Forgive == nil || h.Forgive(n)) {
		return c.Check()
	}
	return nil
}

// asked is what a node's application has asked for before.
func asked(id protocol.ID) []store.Message {
	switch id {
	case 99:
		// the name that messages have
		txn := store.Txn{ID: store.TxnID{Time: 1 << 42, Client: 7}, Writes: []store.Write{{Key: "k0"}}}
		return []store.Message{gate.Read{Ref: 1, Key: "k0"}, gate.Commit{Ref: 2, Txn: txn},
			gate.Commit{Ref: 3, Txn: txn, Recover: true}}
	case 200:
		return []store.Message{store.Get{Ref: 1, Key: "k0"}, store.Submit{Writes: []store.Write{{Key: "k0"}}}}
	}
	return nil
}

// KeySpace is what a node that is called by a test has on disk.
type KeySpace map[string][]byte

// Get is part of protocol.Keys, as is Scan.
func (k KeySpace) Get(key []byte) ([]byte, bool) { v, ok := k[string(key)]; return v, ok }

// Scan yields the keys in order.
func (k KeySpace) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		for _, key := range slices.Sorted(maps.Keys(k)) {
			if key >= string(lo) && (hi == nil || key < string(hi)) && !yield([]byte(key), k[key]) {
				return
			}
		}
	}
}

// Liars plays so many seeds, or a fifth of them, of a store that works, with leaders, clients and
// all: members, clients and a stranger send messages that they have heard or might have, to
// anybody, as they are or with bytes changed, while some of those crash and begin with what is on
// their disks. No node may panic or come to a state that it finds wrong. That transactions are in
// order nobody can say who hears that a member has prepared what it has not.
func (h Hostile) Liars(t *testing.T, all int) {
	first, seeds := seed.First(t, 1), seed.Count(t, all)
	for n := first; n < first+uint64(seeds); n++ {
		if err := h.play(t.Name(), n); err != nil {
			t.Fatalf("seed %d: %v", n, err)
		}
	}
}

// say has a speaker send a message.
type say struct {
	to  protocol.ID
	msg store.Message
}

// A speaker is a node that says what it is told to, and a stranger if it is none. It remembers what
// it heard.
type speaker struct {
	protocol.Node[store.Message]
	heard *[]store.Message
	check func(protocol.Node[store.Message]) error
}

func (s *speaker) Start(env *protocol.Env[store.Message], log []protocol.Record[store.Message]) {
	if s.Node != nil {
		s.Node.Start(env, log)
	}
}

func (s *speaker) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	switch m, ok := msg.(say); {
	case ok:
		env.Send(m.to, m.msg)
		return
	case from != protocol.App && len(*s.heard) < 1<<14:
		*s.heard = append(*s.heard, msg)
	}
	if s.Node != nil {
		s.Node.Receive(env, from, msg)
	}
}

func (s *speaker) Check() error { return s.check(s.Node) }

// Patience and ReadPatience are a client's.
func (s *speaker) Patience() time.Duration     { return s.Node.(store.ClientNode).Patience() }
func (s *speaker) ReadPatience() time.Duration { return s.Node.(store.ClientNode).ReadPatience() }

func (h Hostile) play(test string, seed uint64) error {
	const stranger = 999
	heard := h.messages()
	speaking := h.Subject
	p := &speaking.Protocol
	speak := func(n protocol.Node[store.Message], err error) (protocol.Node[store.Message], error) {
		return &speaker{n, &heard, h.check}, err
	}
	p.NewServer = func(c store.Config) (protocol.Node[store.Message], error) {
		return speak(h.Subject.Protocol.NewServer(c))
	}
	p.NewCoordinator = func(c store.Config) (protocol.Node[store.Message], error) {
		return speak(h.Subject.Protocol.NewCoordinator(c))
	}
	p.NewClient = func(c store.Config) (store.ClientNode, error) {
		n, err := h.Subject.Protocol.NewClient(c)
		return &speaker{n, &heard, h.check}, err
	}
	w, err := New(speaking, Scenario{Seed: seed, Clients: 3, Keys: 4, CheckEvery: 1, Test: test,
		Configure: func(c *store.Config) { c.MaxTxns, c.MaxWaiting = 1000, 100 }})
	if err != nil {
		return err
	}
	ids := append(w.Nodes(), 200, 201, stranger)
	if err := w.Sim.Add(stranger, w.Places[0], func() (protocol.Node[store.Message], error) {
		return speak(nil, nil)
	}); err != nil {
		return err
	}
	var lie func()
	lie = func() {
		m := heard[w.Rand.IntN(len(heard))]
		if b, err := p.Codec.Append(nil, m); err == nil && w.Rand.IntN(4) > 0 {
			if changed, err := p.Codec.Decode(corrupt(w.Rand, b)); err == nil {
				m = changed
			}
		}
		w.Sim.Deliver(ids[w.Rand.IntN(len(ids))], say{ids[w.Rand.IntN(len(ids))], m})
		w.Sim.After(time.Duration(w.Rand.IntN(int(4*time.Millisecond))), lie)
	}
	w.Sim.After(time.Second/2, lie)
	for at := time.Second; at < 3*time.Second; at += time.Second / 2 {
		id := w.Nodes()[w.Rand.IntN(len(w.Nodes()))]
		w.Sim.At(at, func() { w.Sim.Crash(id, sim.Keep(w.Rand.IntN(3))) })
		w.Sim.At(at+RoundTrip, func() { w.Sim.Restart(id) })
	}
	return w.Sim.Run(3 * time.Second)
}

// corrupt changes some bytes, or puts a number in their place that is as large as it can be.
func corrupt(r *rand.Rand, b []byte) []byte {
	b = slices.Clone(b)
	for range 1 + r.IntN(3) {
		i := r.IntN(len(b))
		switch r.IntN(5) {
		case 0:
			b[i] ^= 1 << r.IntN(8)
		case 1:
			b[i] = byte(r.IntN(4))
		case 2:
			b = slices.Replace(b, i, i+1, binary.AppendUvarint(nil, math.MaxUint64-uint64(r.IntN(3)))...)
		case 3:
			b = slices.Replace(b, i, i+1, binary.AppendUvarint(nil, uint64(1)<<r.IntN(64))...)
		default:
			b = slices.Delete(b, i, min(len(b), i+1+r.IntN(3)))
		}
		if len(b) == 0 {
			return b
		}
	}
	return b
}

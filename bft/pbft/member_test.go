package pbft

import (
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
)

type noService struct{}

func (noService) Apply(keyspace.Space, time.Duration, []byte) []byte { return nil }
func (noService) Read(keyspace.Reader, []byte) []byte                { return nil }

// group is four members with IDs from 1 on, and the client 9.
type group struct {
	dir    bft.Directory
	scheme *bft.Scheme
	sign   func(protocol.ID) *bft.Signer
}

func newGroup() *group {
	secrets := &bft.Secrets{}
	g := &group{scheme: bft.NewScheme("test", secrets),
		sign: func(id protocol.ID) *bft.Signer { return secrets.Signer(uint64(id)) }}
	for id := protocol.ID(1); id <= 4; id++ {
		g.dir.Members = append(g.dir.Members, bft.Party{ID: id, Key: g.sign(id).Key()})
	}
	g.dir.Clients = map[protocol.ID]bft.Key{9: g.sign(9).Key()}
	return g
}

// member returns a replica that was started with an empty key space, and its world.
func (g *group) member(t *testing.T, id protocol.ID, log ...bft.Message) (*replica, *protocol.Env[bft.Message]) {
	t.Helper()
	r, err := newReplica(bft.ReplicaConfig{ID: id, Directory: &g.dir, Scheme: g.scheme, Signer: g.sign(id),
		Service: noService{}})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[bft.Message](nil, uint64(len(log))+1, nil)
	var records []protocol.Record[bft.Message]
	for i, m := range log {
		records = append(records, protocol.Record[bft.Message]{Index: uint64(i) + 1, Msg: m})
	}
	r.Start(env, records)
	return r, env
}

func member(t *testing.T) *replica {
	t.Helper()
	r, _ := newGroup().member(t, 1)
	return r
}

// order returns the first primary's order of a batch for the first place.
func (g *group) order(r *replica, b kit.Batch) proposal {
	o := orderBody{Seq: 1}
	if len(b.Entries) > 0 {
		o.Batch = r.st.DigestOf(b)
	}
	return proposal{Order: r.st.orders.Sign(g.scheme, g.sign(1), o), Batch: b}
}

func (g *group) vote(r *replica, by protocol.ID) prepare {
	return prepare{r.st.votes.Sign(g.scheme, g.sign(by), voteBody{Seq: 1})}
}

// disk is a key space of keys in memory.
type disk map[string][]byte

func (d disk) Get(key []byte) ([]byte, bool) { b, ok := d[string(key)]; return b, ok }

func (d disk) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(_, _ []byte) bool) {
		for _, k := range slices.Sorted(maps.Keys(d)) {
			if k >= string(lo) && (hi == nil || k < string(hi)) && !yield([]byte(k), d[k]) {
				return
			}
		}
	}
}

// TestLooksAtItsDisk: a replica compares its state with the digests before it does anything else.
func TestLooksAtItsDisk(t *testing.T) {
	g := newGroup()
	r, env := g.member(t, 2)
	r.Store.Enter(env)
	r.Store.Push().Put([]byte("k"), []byte("v"))
	r.Store.Merge()
	r.Store.Checkpoint(uint64(r.Config.CheckpointEvery))
	r.Store.Leave()
	d := disk{}
	for _, e := range env.Out {
		if e.Kind == protocol.KindPut {
			d[string(e.Key)] = e.Value
		}
	}
	for _, value := range []string{"v", "w"} {
		d["s/vk"] = []byte(value) // as a State below "s/" has it
		r, err := newReplica(r.Config)
		if err != nil {
			t.Fatal(err)
		}
		env := protocol.NewEnv[bft.Message](d, 1, nil)
		r.Start(env, nil)
		if n := len(effects[bft.Repairing](env)); n != 0 != (value == "w") {
			t.Errorf("with the value %q it repairs its disk %d times", value, n)
		}
	}
}

// TestDiffersFromStable: a replica that came to a stable checkpoint with another state than the
// others fetches theirs, and says so.
func TestDiffersFromStable(t *testing.T) {
	for _, differs := range []bool{false, true} {
		g := newGroup()
		r, env := g.member(t, 2)
		r.Store.Enter(env)
		r.Store.Push().Put([]byte("k"), []byte("v"))
		r.Store.Merge()
		every := bft.Seq(r.Config.CheckpointEvery)
		at := kit.Checkpoint{Seq: every, State: r.Store.Checkpoint(uint64(every)), Members: r.Dir.Digest()}
		r.Store.Leave()
		r.Committed, r.Executed, r.Top = at.Seq, at.Seq, at.Seq
		if differs {
			at.State = bft.Digest{1}
		}
		for _, id := range []protocol.ID{1, 3, 4} {
			r.Receive(env, id, kit.Reached{Checkpoint: r.st.Checkpoints.Sign(g.scheme, g.sign(id), at)})
		}
		if r.Low() != at.Seq || (len(effects[bft.Repairing](env)) > 0) != differs || r.Standing().Repairs > 0 != differs {
			t.Errorf("differs: %v: %+v", differs, r.Standing())
		}
	}
}

// TestRefusesItsDisk: a replica whose disk has nonsense says so, and nothing else.
func TestRefusesItsDisk(t *testing.T) {
	g := newGroup()
	r, env := g.member(t, 2)
	whole := disk{}
	for _, e := range env.Out {
		if e.Kind == protocol.KindPut {
			whole[string(e.Key)] = e.Value
		}
	}
	r.Put(env, viewKey, viewRecord{View: 3})
	whole[viewKey] = env.Out[len(env.Out)-1].Value
	start := func(d disk) *protocol.Env[bft.Message] {
		r, err := newReplica(r.Config)
		if err != nil {
			t.Fatal(err)
		}
		env := protocol.NewEnv[bft.Message](d, 1, nil)
		r.Start(env, nil)
		r.Receive(env, 9, kit.ReadAsk{ID: 1})
		return env
	}
	if env := start(whole); len(effects[bft.Refused](env)) > 0 || len(effects[kit.ReadReply](env)) != 1 {
		t.Error("it refuses a disk that is whole")
	}
	for key := range whole {
		damaged := maps.Clone(whole)
		damaged[key] = []byte("nonsense")
		if env := start(damaged); len(effects[bft.Refused](env)) != 1 || len(env.Out) != 1 {
			t.Errorf("with nonsense under %q: %v", key, env.Out)
		}
	}
}

// effects returns what a node wants done that is of a type.
func effects[T any](env *protocol.Env[bft.Message]) (out []protocol.Effect[bft.Message]) {
	for _, e := range env.Out {
		if _, ok := e.Msg.(T); ok {
			out = append(out, e)
		}
	}
	return out
}

// TestSaidWhenDurable: what others rely on after a crash is on disk before they hear of it.
func TestSaidWhenDurable(t *testing.T) {
	g := newGroup()
	r, env := g.member(t, 2)
	r.Receive(env, 1, g.order(r, kit.Batch{}))
	r.Receive(env, 3, g.vote(r, 3))
	r.giveUp(env, 1)
	for _, said := range [][]protocol.Effect[bft.Message]{
		effects[prepare](env), effects[commit](env), effects[viewChange](env),
	} {
		if len(said) != 3 {
			t.Fatalf("it says something %d times", len(said))
		}
		for _, e := range said {
			if e.Kind != protocol.KindSend {
				t.Errorf("%T is said before it is durable", e.Msg)
			}
		}
	}
	written := 0
	for _, e := range env.Out {
		switch e.Msg.(type) {
		case prepare, commit:
			if written == 0 {
				t.Errorf("%T is said and then written", e.Msg)
			}
		case proposal, preparedRecord:
			written++
		}
	}
	if written != 2 {
		t.Errorf("%d records, want what was accepted and what was prepared", written)
	}
}

// TestReadsWait: an optimised read waits for what is prepared, whose client may know its result.
func TestReadsWait(t *testing.T) {
	g := newGroup()
	r, env := g.member(t, 2)
	r.Receive(env, 1, g.order(r, kit.Batch{}))
	r.Receive(env, 3, g.vote(r, 3))
	r.Receive(env, 9, kit.ReadAsk{ID: 1})
	if len(effects[kit.ReadReply](env)) > 0 {
		t.Error("a read is answered before what was prepared is committed")
	}
	for _, id := range []protocol.ID{3, 4} {
		r.Receive(env, id, commit{Order: orderBody{Seq: 1}})
	}
	if len(effects[kit.ReadReply](env)) != 1 {
		t.Error("a read is not answered")
	}
}

// TestTimes: a backup accepts a time that is in order, and near its clock or not beyond the
// group's. What is proposed again needs to be neither.
func TestTimes(t *testing.T) {
	g := newGroup()
	at := func(times ...time.Duration) (b kit.Batch) {
		for _, t := range times {
			b.Entries = append(b.Entries, kit.BatchEntry{Time: t})
		}
		return b
	}
	for _, c := range []struct {
		name      string
		b         kit.Batch
		latest    time.Duration
		again, ok bool
	}{
		{"now", at(time.Hour, time.Hour), 0, false, true},
		{"far from the clock", at(2 * time.Hour), 0, false, false},
		{"out of order", at(time.Hour, time.Hour-1), 0, false, false},
		{"the group is there", at(2 * time.Hour), 2 * time.Hour, false, true},
		{"proposed again", at(2*time.Hour, time.Hour), 0, true, true},
	} {
		r, env := g.member(t, 2)
		env.Now, r.Latest = time.Hour, c.latest
		m := g.order(r, c.b)
		if c.again {
			r.place(1).offer = &m.Order
		}
		r.Receive(env, 1, m)
		if _, ok := r.Requests.Batch(m.Order.Body().Batch); ok != c.ok {
			t.Errorf("%s: it is taken: %v", c.name, ok)
		}
	}
}

// TestPulledAlong: f+1 that have left a view pull the others along, f do not.
func TestPulledAlong(t *testing.T) {
	g := newGroup()
	r, env := g.member(t, 2)
	for i, want := range []bft.View{0, 3} {
		c := r.st.changes.Sign(g.scheme, g.sign(protocol.ID(3+i)), changeBody{View: 3})
		if r.Receive(env, 1, viewChange{c}); r.View != want {
			t.Errorf("after %d have left for view 3 it is in %d", i+1, r.View)
		}
	}
}

// TestPrimaryAfterCrash: a primary that comes back gives up its view.
func TestPrimaryAfterCrash(t *testing.T) {
	g := newGroup()
	for id := protocol.ID(1); id <= 2; id++ {
		r, _ := g.member(t, id, g.order(member(t), kit.Batch{}))
		if r.Active == (id == 1) {
			t.Errorf("member %d is in view %d, active: %v", id, r.View, r.Active)
		}
	}
}

// TestAViewChangeIsSentAgainSeldom: checking one takes as many signatures as it has, and members
// that go on without this one say how they are all the time.
func TestAViewChangeIsSentAgainSeldom(t *testing.T) {
	r, env := newGroup().member(t, 2)
	r.giveUp(env, 3)
	sent := 0
	for range 4 * changeEvery {
		env.Begin(0)
		r.Receive(env, 1, status{View: 1, Active: true})
		r.Receive(env, 1, status{View: 1, Active: true})
		r.Expire(env, kit.BeatTimer{})
		for _, e := range env.Out {
			if _, ok := e.Msg.(viewChange); ok && e.To == 1 {
				sent++
			}
		}
	}
	if sent < 2 || sent > 4 {
		t.Errorf("it was sent again %d times in %d ticks", sent, 4*changeEvery)
	}
}

// TestOvertaken: a backup replaces a primary that orders many requests of one client, within all
// timeouts, while another one's waits, of which it was told. It is not replaced if it orders that
// one now and then, nor for what it did before it was told.
func TestOvertaken(t *testing.T) {
	g := newGroup()
	g.dir.Clients[10] = g.sign(10).Key()
	for _, c := range []struct {
		name string
		fair bool
		told bool // once
	}{{"unfair", false, true}, {"fair", true, false}} {
		r, env := g.member(t, 2)
		request := func(client protocol.ID, n int) bft.Signed[bft.Request] {
			return r.st.Requests.Sign(g.scheme, g.sign(client), bft.Request{Client: client, Session: 1, First: bft.Number(n),
				Operations: []bft.Operation{{}}})
		}
		for n := 1; n <= 200; n++ {
			r.Receive(env, 9, kit.Submitted{Request: request(9, n)})
		}
		gaveUp, told, before := 0, 0, 0
		for seq, other := bft.Seq(1), 0; seq < 48 && r.Active; seq++ {
			m := proposal{}
			for range r.Config.MaxBatch - 1 {
				other++
				m.Requests = append(m.Requests, request(10, other))
			}
			if c.fair && seq%8 == 0 {
				m.Requests = append(m.Requests, request(9, int(seq/8)))
			}
			for i := range m.Requests {
				m.Batch.Entries = append(m.Batch.Entries, kit.BatchEntry{Request: r.st.DigestOfRequest(m.Requests[i].Body())})
			}
			o := orderBody{Seq: seq, Batch: r.st.DigestOf(m.Batch)}
			m.Order = r.st.orders.Sign(g.scheme, g.sign(1), o)
			r.Receive(env, 1, m)
			if r.Tick == 0 || seq%12 == 0 {
				r.Expire(env, kit.BeatTimer{})
			}
			if n := len(effects[kit.Submitted](env)); n > told {
				told, before = n, other
			}
			if !r.Active {
				gaveUp = other
			}
		}
		if gaveUp > 0 == c.fair || told > 0 != c.told || !c.fair && gaveUp-before < 16*r.Config.MaxBatch {
			t.Errorf("%s: it is told after %d requests, %d times, and replaced after %d", c.name, before, told, gaveUp)
		}
	}
}

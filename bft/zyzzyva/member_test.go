package zyzzyva

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
func (g *group) member(t *testing.T, id protocol.ID) (*replica, *protocol.Env[bft.Message]) {
	t.Helper()
	r, err := newReplica(bft.ReplicaConfig{ID: id, Directory: &g.dir, Scheme: g.scheme, Signer: g.sign(id),
		Service: noService{}})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[bft.Message](nil, 1, nil)
	r.Start(env, nil)
	return r, env
}

// order returns the first primary's order of a batch without requests in a place, with the history
// that its name has: one letter for each batch so far, of which only "-" is one without requests.
func (g *group) order(r *replica, seq bft.Seq, before bft.Digest, batch bft.Digest) proposal {
	o := orderBody{Seq: seq, Batch: batch, History: chain(before, batch)}
	return proposal{Order: r.st.orders.Sign(g.scheme, g.sign(1), o)}
}

// empty is the history of so many batches without requests.
func empty(n int) (h bft.Digest) {
	for range n {
		h = chain(h, bft.Digest{})
	}
	return h
}

func (g *group) stamp(r *replica, by protocol.ID, b stampBody) stamped {
	return stamped{r.st.stamps.Sign(g.scheme, g.sign(by), b)}
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

// TestSaidWhenDurable: what others rely on after a crash is on disk before they hear of it.
func TestSaidWhenDurable(t *testing.T) {
	g := newGroup()
	r, env := g.member(t, 2)
	b := stampBody{Seq: 1, History: empty(1)}
	r.Receive(env, 3, g.stamp(r, 3, b)) // so that it says its own
	r.Receive(env, 1, g.order(r, 1, bft.Digest{}, bft.Digest{}))
	r.Receive(env, 4, g.stamp(r, 4, b))
	r.Expire(env, kit.BeatTimer{})
	r.giveUp(env, 1)
	logged, kept := -1, -1
	for i, e := range env.Out {
		switch m := e.Msg.(type) {
		case proposal:
			if e.Kind == protocol.KindAppend {
				logged = i
			}
		case stamped:
			if logged < 0 {
				t.Error("a stamp is said and then the order is written")
			}
		case status:
			if m.Held == b && kept < 0 {
				t.Error("a certificate is said to be held and then written")
			}
		}
		if e.Kind == protocol.KindPut && string(e.Key) == heldKey {
			kept = i
		}
	}
	if logged < 0 || kept < 0 {
		t.Error("nothing is written")
	}
	for _, said := range [][]protocol.Effect[bft.Message]{effects[stamped](env), effects[status](env),
		effects[viewChange](env)} {
		if len(said) == 0 {
			t.Fatal("it does not say all")
		}
		for _, e := range said {
			if e.Kind != protocol.KindSend {
				t.Errorf("%T is said before it is durable", e.Msg)
			}
		}
	}
}

// TestMisdeeds: two orders of one primary that cannot both be end its view, whoever shows them, and
// nothing else does.
func TestMisdeeds(t *testing.T) {
	g := newGroup()
	first := bft.Digest{}
	for _, c := range []struct {
		name     string
		one, two func(r *replica) proposal
		forged   bool
		ends     bool
	}{
		{"two orders of one place", func(r *replica) proposal { return g.order(r, 1, first, bft.Digest{}) },
			func(r *replica) proposal { return g.order(r, 1, first, bft.Digest{1}) }, false, true},
		{"one that does not follow", func(r *replica) proposal { return g.order(r, 1, first, bft.Digest{}) },
			func(r *replica) proposal { return g.order(r, 2, bft.Digest{7}, bft.Digest{}) }, false, true},
		{"one that follows", func(r *replica) proposal { return g.order(r, 1, first, bft.Digest{}) },
			func(r *replica) proposal { return g.order(r, 2, empty(1), bft.Digest{}) }, false, false},
		{"one order twice", func(r *replica) proposal { return g.order(r, 1, first, bft.Digest{}) },
			func(r *replica) proposal { return g.order(r, 1, first, bft.Digest{}) }, false, false},
		{"a forged one", func(r *replica) proposal { return g.order(r, 1, first, bft.Digest{}) },
			func(r *replica) proposal { return g.order(r, 1, first, bft.Digest{1}) }, true, false},
	} {
		for _, shown := range []bool{false, true} {
			r, env := g.member(t, 2)
			one, two := c.one(r), c.two(r)
			if c.forged {
				two.Order = r.st.orders.Forge(g.sign(1).Key(), []byte("trust me"), *two.Order.Body())
			}
			if shown {
				r.Receive(env, 9, misdeed{one.Order, two.Order})
			} else {
				r.Receive(env, 1, one)
				r.Receive(env, 3, two)
			}
			if r.Active == c.ends {
				t.Errorf("%s, shown by a client: %v: in view %d, active: %v", c.name, shown, r.View, r.Active)
			}
			if told := len(effects[misdeed](env)); c.ends && !shown && told != 3 {
				t.Errorf("%s: %d are told", c.name, told)
			}
		}
	}
}

// TestHoles: a member asks for what is missing before an order, and is given it.
func TestHoles(t *testing.T) {
	g := newGroup()
	r, env := g.member(t, 2)
	other, theirs := g.member(t, 3)
	for n := range 3 {
		other.Receive(theirs, 1, g.order(r, bft.Seq(n+1), empty(n), bft.Digest{}))
	}
	r.Tick = 1
	r.Receive(env, 1, g.order(r, 3, empty(2), bft.Digest{}))
	asked := effects[fillHole](env)
	if r.last != 0 || len(asked) != 1 || asked[0].Msg != (fillHole{0, 1, 2}) {
		t.Fatalf("its log ends at %d, and it asks for %v", r.last, asked)
	}
	theirs.Begin(0)
	other.Receive(theirs, 2, asked[0].Msg)
	for _, e := range effects[proposal](theirs) {
		r.Receive(env, 3, e.Msg)
	}
	if r.last != 3 || r.Executed != 3 {
		t.Errorf("its log ends at %d, and it has executed %d", r.last, r.Executed)
	}
}

// TestCommits: a replica commits what a quorum holds certificates of, itself among it or not, and
// not what it has one of alone: no view change need keep that.
func TestCommits(t *testing.T) {
	g := newGroup()
	r, env := g.member(t, 2)
	b := stampBody{Seq: 1, History: empty(1)}
	r.Receive(env, 1, g.order(r, 1, bft.Digest{}, bft.Digest{}))
	w := &chooseWorld{g, r.st}
	r.Receive(env, 9, certified{Proof: bft.Join([]bft.Signed[stampBody]{g.stamp(r, 3, b).Stamp, g.stamp(r, 4, b).Stamp})})
	if r.holds() != 0 {
		t.Error("two stamps of four are a certificate")
	}
	r.Receive(env, 9, certified{Proof: w.certificate(2, b)})
	if r.holds() != 1 || r.Committed != 0 {
		t.Errorf("with a certificate it holds %d and has committed %d", r.holds(), r.Committed)
	}
	r.Receive(env, 3, status{Active: true, Last: 1, Held: stampBody{Seq: 1, History: bft.Digest{1}}})
	r.Receive(env, 4, status{Active: true, Last: 1, Held: b})
	if r.Committed != 0 {
		t.Error("two of four hold a certificate of this history, and it is committed")
	}
	r.Receive(env, 3, status{Active: true, Last: 1, Held: b})
	if r.Committed != 1 {
		t.Error("three hold a certificate, and it is not committed")
	}
}

// TestHoldsNothingAfterItsChange: what a replica did not tell the next view it does not promise.
func TestHoldsNothingAfterItsChange(t *testing.T) {
	g := newGroup()
	r, env := g.member(t, 2)
	r.Receive(env, 1, g.order(r, 1, bft.Digest{}, bft.Digest{}))
	r.giveUp(env, 1)
	w := &chooseWorld{g, r.st}
	if r.Receive(env, 9, certified{Proof: w.certificate(2, stampBody{Seq: 1, History: empty(1)})}); r.holds() != 0 {
		t.Error("it holds a certificate of which its change says nothing")
	}
}

// TestConfirmsOneBeginning: a member stamps one beginning of a view, and the view begins with a
// quorum's stamps, not with the primary's word.
func TestConfirmsOneBeginning(t *testing.T) {
	g := newGroup()
	r, env := g.member(t, 4)
	w := &chooseWorld{g, r.st}
	start := func(without protocol.ID, log []bft.Digest) newView {
		s := startBody{View: 1}
		for id := protocol.ID(1); id <= 4; id++ {
			if id != without {
				s.Changes = append(s.Changes, r.st.changes.Sign(g.scheme, g.sign(id), changeBody{View: 1, Batches: log}))
			}
		}
		return newView{Start: r.st.starts.Sign(g.scheme, g.sign(2), s)}
	}
	r.Receive(env, 2, start(1, nil))
	r.Receive(env, 2, start(1, []bft.Digest{{}}))
	own := effects[stamped](env)
	if len(own) != 3 || r.Active {
		t.Fatalf("it says %d stamps, and the view has begun: %v", len(own), r.Active)
	}
	for _, id := range []protocol.ID{1, 3} {
		r.Receive(env, id, g.stamp(r, id, stampBody{1, 1, empty(1)}))
	}
	if r.Active {
		t.Fatal("the view begins with stamps of another beginning")
	}
	r.Receive(env, 1, g.stamp(r, 1, stampBody{View: 1}))
	r.Receive(env, 3, g.stamp(r, 3, stampBody{View: 1}))
	if !r.Active || r.View != 1 || r.held.Body() != (stampBody{View: 1}) {
		t.Errorf("in view %d, active: %v, with the certificate %+v", r.View, r.Active, r.held.Body())
	}
	_ = w
}

// TestStampsNothingBelow: what a view began with is certified, and a replica stamps none of its
// parts: else a certificate of the view could stand for less than what it began with.
func TestStampsNothingBelow(t *testing.T) {
	g := newGroup()
	r, env := g.member(t, 4)
	w := &chooseWorld{g, r.st}
	s := startBody{View: 1}
	for id := protocol.ID(1); id <= 3; id++ {
		c := changeBody{View: 1, Batches: make([]bft.Digest, 2)}
		s.Changes = append(s.Changes, r.st.changes.Sign(g.scheme, g.sign(id), c))
	}
	m := newView{r.st.starts.Sign(g.scheme, g.sign(2), s), w.certificate(4, stampBody{1, 2, empty(2)})}
	r.Receive(env, 2, m)
	env.Begin(0)
	r.Receive(env, 2, g.stamp(r, 2, stampBody{1, 1, empty(1)}))
	if said := effects[stamped](env); r.Executed != 2 || len(said) > 0 {
		t.Errorf("it has executed %d, and says %v", r.Executed, said)
	}
}

// TestConcluded: who has given its view up alone commits what f+1 have committed, not what f say.
func TestConcluded(t *testing.T) {
	g := newGroup()
	r, env := g.member(t, 2)
	r.Receive(env, 1, g.order(r, 1, bft.Digest{}, bft.Digest{7})) // it lacks the batch
	r.giveUp(env, 1)
	r.Receive(env, 3, concluded{0, 0, make([]bft.Digest, 2)})
	if r.Committed != 0 {
		t.Fatal("one member's word is believed")
	}
	if r.Receive(env, 4, concluded{0, 0, make([]bft.Digest, 1)}); r.Committed != 1 {
		t.Errorf("it has committed %d", r.Committed)
	}
}

// TestDoubt: what a log has on the way to a stable checkpoint is not committed because others hold
// certificates of that, unless it leads there: it may be of a view that is over.
func TestDoubt(t *testing.T) {
	g := newGroup()
	for _, leads := range []bool{true, false} {
		r, env := g.member(t, 2)
		r.Receive(env, 1, g.order(r, 1, bft.Digest{}, bft.Digest{}))
		r.Receive(env, 1, g.order(r, 2, empty(1), bft.Digest{}))
		at := kit.Checkpoint{Seq: 2, History: empty(2), Members: r.Dir.Digest()}
		if !leads {
			at = kit.Checkpoint{Seq: 3, History: bft.Digest{7}, Members: r.Dir.Digest()}
		}
		var signed []bft.Signed[kit.Checkpoint]
		for _, id := range []protocol.ID{1, 3, 4} {
			signed = append(signed, r.st.Checkpoints.Sign(g.scheme, g.sign(id), at))
		}
		r.Receive(env, 1, kit.StableProof{Proof: bft.Join(signed)})
		for _, id := range []protocol.ID{1, 3, 4} {
			r.Receive(env, id, status{Held: stampBody{View: 1, Seq: at.Seq, History: at.History}})
		}
		if r.Committed > 0 != leads {
			t.Errorf("leads there: %v, committed %d", leads, r.Committed)
		}
	}
}

// TestVoid: a log that is contradicted by what f+1 have committed is of an earlier view. The
// replica commits that, and tells nobody of its log any more, also after a crash.
func TestVoid(t *testing.T) {
	g := newGroup()
	r, env := g.member(t, 4)
	w := &chooseWorld{g, r.st}
	s := startBody{View: 1}
	for id := protocol.ID(1); id <= 3; id++ {
		c := changeBody{View: 1, Batches: []bft.Digest{{7}, {8}}}
		s.Changes = append(s.Changes, r.st.changes.Sign(g.scheme, g.sign(id), c))
	}
	begun := stampBody{1, 2, chain(chain(bft.Digest{}, bft.Digest{7}), bft.Digest{8})}
	r.Receive(env, 2, newView{r.st.starts.Sign(g.scheme, g.sign(2), s), w.certificate(4, begun)})
	if r.holds() != 2 {
		t.Fatalf("it holds %d", r.holds())
	}
	r.giveUp(env, 2)
	for _, id := range []protocol.ID{1, 3} {
		r.Receive(env, id, concluded{0, 0, make([]bft.Digest, 1)})
	}
	r.giveUp(env, 3)
	told := r.own.Body()
	if r.Committed != 1 || r.Active || r.View != 3 || told.LogView != 0 || len(told.Batches) > 1 ||
		!certifiedNothing(&told.Proof) || !lawfulChange(kit.Genesis(&g.dir), told, 128) {
		t.Errorf("it has committed %d, is in view %d, active: %v, and says %+v", r.Committed, r.View, r.Active, told)
	}
	keys := disk{}
	var log []protocol.Record[bft.Message]
	for _, e := range env.Out {
		switch e.Kind {
		case protocol.KindPut:
			keys[string(e.Key)] = e.Value
		case protocol.KindAppend:
			log = append(log, protocol.Record[bft.Message]{Index: e.Index, Msg: e.Msg})
		}
	}
	again, err := newReplica(r.Config)
	if err != nil {
		t.Fatal(err)
	}
	again.Start(protocol.NewEnv[bft.Message](keys, uint64(len(log))+1, nil), log)
	if again.last != 1 || again.places[1].history != empty(1) || !again.entered.Void || again.holds() != 1 {
		t.Errorf("after a crash its log ends at %d with %+v, and it holds %d", again.last, again.places[1], again.holds())
	}
}

// TestReadsWait: an optimised read waits for what was executed, whose client may know its result.
func TestReadsWait(t *testing.T) {
	g := newGroup()
	r, env := g.member(t, 2)
	r.Receive(env, 1, g.order(r, 1, bft.Digest{}, bft.Digest{}))
	r.Receive(env, 9, kit.ReadAsk{ID: 1})
	if len(effects[kit.ReadReply](env)) > 0 {
		t.Error("a read is answered before what was executed is committed")
	}
	for _, id := range []protocol.ID{1, 3, 4} {
		r.Receive(env, id, status{Active: true, Last: 1, Held: stampBody{Seq: 1, History: empty(1)}})
	}
	if len(effects[kit.ReadReply](env)) != 1 {
		t.Error("a read is not answered")
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

// TestRefusesItsDisk: a replica whose disk has nonsense says so, and nothing else.
func TestRefusesItsDisk(t *testing.T) {
	g := newGroup()
	r, env := g.member(t, 2)
	whole := disk{}
	r.giveUp(env, 3)
	for _, e := range env.Out {
		if e.Kind == protocol.KindPut {
			whole[string(e.Key)] = e.Value
		}
	}
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

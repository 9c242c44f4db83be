package str

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
	"github.com/foresay/foresay/store/storetest"
)

// aheadPlants have clients go on with what does not last.
func aheadPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "what is held is committed before its client's word", Test: "TestAheadNotices/1",
			Old: "t.agreed || t.held ||", New: "t.agreed || t.held && !MUTANT ||",
			Also: []plant.Edit{{Old: "\tt.staged = t.held && !t.waits\n",
				New: "\tt.staged = t.held && !t.waits && !MUTANT\n"}},
		},
		{
			Name: "who finishes it commits what is held", Test: "TestAheadNotices/109",
			Old: "\tif fenced && r.states[first].Reason == store.Lapsed {",
			New: "\tif fenced && r.states[first].Reason == store.Lapsed && !MUTANT {",
		},
		{
			Name: "who finishes it aborts what was held, and is confirmed since", Test: "TestConfirmed",
			Old: "\tif m.Held && !h.part.Held {\n", New: "\tif m.Held && !h.part.Held && !MUTANT {\n",
		},
		{
			Name: "what follows another one does not depend on it", Test: "TestAheadNotices/1",
			Old: "\t\tc.depend(t, x)\n\t\tc.saw(event{what: follows,",
			New: "\t\tif !MUTANT {\n\t\t\tc.depend(t, x)\n\t\t}\n\t\tc.saw(event{what: follows,",
		},
		{
			Name: "what has only read stands for nothing", Test: "TestFollowsReader",
			Old: "\tfor id, on := range x.on { //pure:ok sets are added to\n",
			New: "\tfor id, on := range x.on { //pure:ok sets are added to\n\t\tif MUTANT {\n\t\t\tbreak\n\t\t}\n",
		},
		{
			Name: "what follows one that only read may be later than what that saw", Test: "TestFollowsReader",
			Old: "\t\tt.limits[id] = min(t.limitOf(id), x.limitOf(id))\n",
			New: "\t\tif !MUTANT {\n\t\t\tt.limits[id] = min(t.limitOf(id), x.limitOf(id))\n\t\t}\n",
		},
		{
			Name: "a local commit is not above what was read of one that is aborted since", Test: "TestAbortedReads",
			Old: "\t\tc.table.readAt(w.Key, t.read)", New: "\t\tif !MUTANT {\n\t\t\tc.table.readAt(w.Key, t.read)\n\t\t}",
		},
		{
			Name: "an outcome that is not known is told before what becomes of those that follow",
			Test: "TestFollowedOutcome",
			Old:  "\tif !sure && !s.right && c.followed(env, s) {\n",
			New:  "\tif !sure && !s.right && c.followed(env, s) && !MUTANT {\n",
		},
		{
			Name: "what begins may follow what its application was told is refused", Test: "TestFollowsDenied",
			Old: "|| slices.ContainsFunc(m.After, c.isDenied) {",
			New: "|| slices.ContainsFunc(m.After, c.isDenied) && !MUTANT {",
		},
		{
			Name: "a commit whose timestamp is not known is in each snapshot", Test: "TestCommittedUnknownWhen",
			Old: "\tif at == 0 && !s.Txn.ReadOnly() {", New: "\tif at == 0 && !s.Txn.ReadOnly() && !MUTANT {",
		},
		{
			Name: "what begins at a silent site waits for that", Test: "TestQuietSite",
			Old: "\t\tcase o.at == 0 && len(", New: "\t\tcase o.at == 0 && !MUTANT && len(",
		},
		{
			Name: "a silent site is forgotten", Test: "TestQuietSite",
			Old: "\tc.Silent(site, quietTrips*c.cfg.RoundTrip)\n",
			New: "\tif !MUTANT {\n\t\tc.Silent(site, quietTrips*c.cfg.RoundTrip)\n\t}\n",
		},
		{
			Name: "a read outside of a transaction may lack what was told", Test: "TestGetSees",
			Old: "\tif m.Verdict == store.Committed && o.lacks() {",
			New: "\tif m.Verdict == store.Committed && o.lacks() && !MUTANT {",
		},
	}
}

// TestAheadNotices plays the seeds that notice a bug, with clients that go on at local commits.
func TestAheadNotices(t *testing.T) {
	plant.Seeds(t, plants(), func(seed uint64) error {
		sc := storetest.Swarm(seed)
		if seed%5 == 3 {
			sc.Sites, sc.Shards, sc.Replicas = 5, 5, 3
		}
		sc.Replaces, sc.Moves, sc.Ahead = seed%5 == 4, seed%5 == 1, true
		_, err := storetest.PlayOnce(subject(untuned()), sc)
		return err
	})
}

// speculates has a transaction ask for word of its local commit, behind others.
func (c *soloCoordinator) speculates(at uint64, txn store.Txn, after ...store.TxnID) []store.Message {
	txn.ID = txnID(at)
	c.Receive(c.env, protocol.ID(200+at),
		store.SpeculateRequest{CommitRequest: store.CommitRequest{Txn: txn}, After: after})
	return c.said()
}

// TestFollowsReader has a transaction follow one that has only read what is not final: it is
// aborted with that, if what was read turns out to be later than that one's snapshot, though not
// than its own.
func TestFollowsReader(t *testing.T) {
	for _, tt := range []struct {
		final clock.Stamp
		goes  bool
	}{{6, true}, {9, false}} {
		c := newSoloCoordinator(t)
		a, b := c.key(0, "a"), c.key(0, "b")
		c.begins(5, b)
		c.commits(5, 6, a)
		expectValues(t, c.begins(7, a), "5")
		version := c.txns[txnID(7)].steps[1].values[0].Value.Version
		said := c.speculates(7, store.Txn{Reads: []store.Read{{Key: a, Version: version}}})
		if len(only[store.Speculated](said)) != 1 {
			t.Fatalf("what has read is told %+v", said)
		}
		c.begins(30, b)
		c.speculates(30, store.Txn{Writes: []store.Write{{Key: c.key(0, "w")}}}, txnID(7))
		x := c.txns[txnID(30)]
		if x == nil || len(x.on) != 1 {
			t.Fatalf("what follows it depends on nothing: %+v", x)
		}
		c.commit(c.env, c.txns[txnID(5)], tt.final)
		if goes := x.stage < over; goes != tt.goes {
			t.Errorf("final at %v: it goes on: %v", tt.final, goes)
		}
	}
}

// TestAbortedReads has who writes a key come behind those who have read what was aborted since.
func TestAbortedReads(t *testing.T) {
	c := newSoloCoordinator(t)
	a, b := c.key(0, "a"), c.key(0, "b")
	c.begins(5, b)
	c.begins(10, b)
	c.commits(5, 6, a)
	expectValues(t, c.begins(20, a), "5")
	c.abort(c.env, c.txns[txnID(5)], store.Locked)
	c.said()
	c.commits(10, 11, a)
	if at := c.local(t, 10); at <= 20 {
		t.Errorf("it is committed locally at %v", at)
	}
}

// TestConfirmed has a group abort what is held for who finishes it, and not once it is confirmed.
func TestConfirmed(t *testing.T) {
	for _, confirms := range []bool{false, true} {
		s := newSoloServer(t)
		p := s.part(2000, s.key(0, "a"))
		p.Held = true
		commands := []store.Message{prepare{p}, decide{ID: p.ID, Reason: store.Lapsed, Held: true}}
		want := []result{{State: prepared, Reason: store.Lapsed}, {State: aborted, Reason: store.Lapsed}}
		if confirms {
			commands = slices.Insert(commands, 1, store.Message(confirm{p.ID}))
			want = []result{want[0], {State: prepared}, {State: prepared}}
		}
		for i, m := range commands {
			command, err := s.state.format.Append(nil, m)
			if err != nil {
				t.Fatal(err)
			}
			s.state.Apply(s.env, raft.Position{Index: uint64(i + 2), Term: 1}, command)
			if r := s.state.results[i]; r != want[i] {
				t.Errorf("confirmed %v, %T: %+v, want %+v", confirms, m, r, want[i])
			}
		}
	}
}

// TestFollowedOutcome has a client tell the outcome of a transaction that nobody knows once those
// are over that follow it: if one of them is committed, it is, too.
func TestFollowedOutcome(t *testing.T) {
	for _, follower := range []store.Verdict{store.Committed, store.Aborted} {
		a := newAlone(t)
		c, err := newClient(store.Config{ID: 200, Layout: a.l, RoundTrip: 100 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		c.Start(a.env, nil)
		ids := make([]store.TxnID, 2)
		for i := range ids {
			ref, k := uint64(10*i+1), a.key(0, fmt.Sprint("k", i))
			c.take(a.env, store.Declare{Ref: ref, Reads: []store.Key{k}})
			ids[i] = only[store.DeclareRequest](a.said())[0].ID
			c.Receive(a.env, 10, store.DeclareReply{ID: ids[i], Step: 1, At: 50, Values: make([]store.Held, 1)})
			m := store.Submit{Ref: ref + 1, Begun: ref, Reads: []store.Read{{Key: k}}, Speculate: true}
			if i > 0 {
				m.After = ids[:1]
			}
			c.take(a.env, m)
			c.Receive(a.env, 10, store.Speculated{ID: ids[i], At: 50})
		}
		a.said()
		// its coordinator has forgotten it, and says so
		c.Receive(a.env, 10, store.Decided{ID: ids[0], Verdict: store.Aborted, Reason: store.Fenced})
		if said := a.said(); len(only[store.Done](said)) > 0 || len(only[store.AbandonRequest](said)) != 1 {
			t.Errorf("what follows it is not over: %+v", said)
		}
		c.Receive(a.env, 10, store.Decided{ID: ids[1], Verdict: follower, Reason: store.Lapsed})
		for _, d := range only[store.Done](a.said()) {
			if d.Outcome.Verdict != follower {
				t.Errorf("what follows is %v, and %v is said to be %v", follower, d.Txn.ID, d.Outcome.Verdict)
			}
		}
		if c.Waiting() > 0 {
			t.Errorf("%d transactions have no end", c.Waiting())
		}
	}
}

// aloneClient is client 200, which has been told of the local commit of a transaction that writes
// a key, and of one that follows it.
func aloneClient(t *testing.T) (a *alone, c *client, k store.Key, ids []store.TxnID) {
	t.Helper()
	a = newAlone(t)
	c, err := newClient(store.Config{ID: 200, Layout: a.l, RoundTrip: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	c.Start(a.env, nil)
	k = a.key(0, "k")
	for i := range uint64(2) {
		c.take(a.env, store.Submit{Ref: i + 1, Writes: []store.Write{{Key: k}}, Speculate: true, After: slices.Clone(ids)})
		id := only[store.DeclareRequest](a.said())[0].ID
		c.Receive(a.env, 10, store.DeclareReply{ID: id, Step: 1, At: 40 + i, Values: make([]store.Held, 1)})
		by := c.cfg.Layout.Coordinator(c.Submit(id).Site, id)
		c.Receive(a.env, by, store.Speculated{ID: id, At: 50 + i})
		a.said()
		ids = append(ids, id)
	}
	return a, c, k, ids
}

// TestCommittedUnknownWhen: a transaction that is known to be committed only by another one that
// follows it may be later than the snapshot of whatever has begun meanwhile.
func TestCommittedUnknownWhen(t *testing.T) {
	for _, known := range []bool{false, true} {
		a, c, k, ids := aloneClient(t)
		c.take(a.env, store.Declare{Ref: 3, Reads: []store.Key{k}})
		id := only[store.DeclareRequest](a.said())[0].ID
		c.Receive(a.env, 10, store.DeclareReply{ID: id, Step: 1, At: 100, Values: make([]store.Held, 1)})
		first := store.Decided{ID: ids[0], Verdict: store.Unknown, Reason: store.Old}
		if known {
			first = store.Decided{ID: ids[0], Verdict: store.Committed, Version: store.Version{Time: 60, Client: 1}}
		}
		c.Receive(a.env, 10, first)
		c.Receive(a.env, 10, store.Decided{ID: ids[1], Verdict: store.Committed,
			Version: store.Version{Time: 70, Client: 1}})
		ended := only[store.Done](a.said())
		if len(ended) != 2 || ended[0].Outcome.Verdict != store.Committed || ended[1].Outcome.Verdict != store.Committed {
			t.Fatalf("they end so: %+v", ended)
		}
		c.take(a.env, store.Submit{Ref: 4, Begun: 3, Reads: []store.Read{{Key: k}}})
		said := a.said()
		if refused := len(only[store.Done](said)) > 0; refused == known || len(only[store.CommitRequest](said)) > 0 != known {
			t.Errorf("the timestamp is known: %t; it says %+v", known, said)
		}
	}
}

// TestGetSees: a read outside of a transaction that began before something was final is made again
// if its snapshot lacks that.
func TestGetSees(t *testing.T) {
	for _, at := range []uint64{55, 60} {
		a, c, k, ids := aloneClient(t)
		c.take(a.env, store.Get{Ref: 3, Key: k})
		id := only[store.DeclareRequest](a.said())[0].ID
		c.Receive(a.env, 10, store.Decided{ID: ids[0], Verdict: store.Committed,
			Version: store.Version{Time: 60, Client: 1}})
		c.Receive(a.env, 10, store.DeclareReply{ID: id, Step: 1, At: at, Values: make([]store.Held, 1)})
		a.said()
		c.Receive(a.env, 10, store.Decided{ID: id, Verdict: store.Committed})
		said := a.said()
		got, again := only[store.Got](said), only[store.DeclareRequest](said)
		if at >= 60 {
			if len(got) != 1 || !got[0].OK || len(again) > 0 {
				t.Errorf("what a snapshot of %d has is told so: %+v", at, said)
			}
			continue
		}
		if len(got) > 0 || len(again) != 1 || again[0].ID == id || again[0].NotBefore < 60 {
			t.Fatalf("with a snapshot of %d it says %+v", at, said)
		}
		c.Receive(a.env, 10, store.DeclareReply{ID: again[0].ID, Step: 1, At: 61, Values: make([]store.Held, 1)})
		c.Receive(a.env, 10, store.Decided{ID: again[0].ID, Verdict: store.Committed})
		if got := only[store.Got](a.said()); len(got) != 1 || !got[0].OK || got[0].Ref != 3 {
			t.Errorf("then it says %+v", got)
		}
	}
}

// TestFollowsDenied has a client not send what follows a transaction that has only read, and was
// refused while the other one began: its coordinator may know that it was committed (seed 43351).
func TestFollowsDenied(t *testing.T) {
	a := newAlone(t)
	c, err := newClient(store.Config{ID: 200, Layout: a.l, RoundTrip: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	c.Start(a.env, nil)
	k := a.key(0, "k")
	c.take(a.env, store.Declare{Ref: 1, Reads: []store.Key{k}})
	id := only[store.DeclareRequest](a.said())[0].ID
	c.Receive(a.env, 10, store.DeclareReply{ID: id, Step: 1, At: 50, Values: make([]store.Held, 1)})
	c.take(a.env, store.Submit{Ref: 2, Begun: 1, Reads: []store.Read{{Key: k}}, Speculate: true})
	c.Receive(a.env, 10, store.Speculated{ID: id, At: 50})
	a.said()
	c.take(a.env, store.Submit{Ref: 3, Writes: []store.Write{{Key: k}}, Speculate: true, After: []store.TxnID{id}})
	next := only[store.DeclareRequest](a.said())[0].ID
	c.Receive(a.env, 10, store.Decided{ID: id, Verdict: store.Aborted, Reason: store.Fenced})
	a.said()
	c.Receive(a.env, 10, store.DeclareReply{ID: next, Step: 1, At: 60, Values: make([]store.Held, 1)})
	said := a.said()
	if d := only[store.Done](said); len(only[store.SpeculateRequest](said)) > 0 || len(d) != 1 ||
		d[0].Outcome.Verdict != store.Aborted {
		t.Errorf("it says %+v", said)
	}
}

// TestQuietSite has a client begin transactions elsewhere than at its own site, when coordinators
// there answer none: one that has begun there, too, if its application was told nothing.
func TestQuietSite(t *testing.T) {
	a := newAlone(t)
	const trip = 200 * time.Millisecond
	c, err := newClient(store.Config{ID: 200, Layout: a.l, RoundTrip: trip})
	if err != nil {
		t.Fatal(err)
	}
	c.Start(a.env, nil)
	for site := range a.l.Sites {
		c.Silent(site, time.Duration(site+1)) // by which it knows which is near
	}
	at := func(ref uint64) int {
		_, o := c.begun.By(ref)
		if o == nil {
			t.Fatalf("call %d has begun nothing", ref)
		}
		return o.Site
	}
	declares := func(ref uint64) store.TxnID {
		c.take(a.env, store.Declare{Ref: ref, Reads: []store.Key{a.key(0, "k")}})
		id, _ := c.begun.By(ref)
		return id
	}
	beats := func(id store.TxnID, n int) {
		for range n {
			a.env.Now += trip
			c.Expire(a.env, kit.BeatTimer{ID: id})
		}
	}
	a.env.Now = 100 * trip
	first, second := declares(1), declares(2)
	if at(1) != 0 || at(2) != 0 {
		t.Fatalf("they begin at sites %d and %d", at(1), at(2))
	}
	beats(first, quietTries-1)
	c.Receive(a.env, 10, store.DeclareReply{ID: first, Step: 1, At: 50}) // it is at it
	beats(first, quietTries-1)
	if at(1) != 0 {
		t.Fatal("it does not wait for a coordinator that is at it")
	}
	c.Receive(a.env, 10, store.DeclareReply{ID: second, Step: 1, At: 50, Values: make([]store.Held, 1)})
	a.said()
	beats(first, quietTries)
	if at(1) != 1 || at(2) != 0 {
		t.Errorf("they are at sites %d and %d", at(1), at(2))
	}
	if got := only[store.Declared](a.said()); len(got) > 0 {
		t.Errorf("applications are told %+v", got)
	}
	if declares(3); at(3) != 1 {
		t.Errorf("the next one begins at site %d", at(3))
	}
}

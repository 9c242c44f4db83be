package carousel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storedeploy"
	"github.com/foresay/foresay/store/storetest"
)

// TestStaleNotices plays seeds in which many transactions may see what is old.
func TestStaleNotices(t *testing.T) {
	plant.Seeds(t, plants(), func(seed uint64) error {
		sc := storetest.Swarm(seed)
		sc.Stale, sc.Appends = true, seed%4 == 0
		_, err := storetest.PlayOnce(subject(basicMode), sc)
		return err
	})
}

// TestMembersServeWhatIsClosed: any member says what was there as of a timestamp that it has
// closed, and nothing else. What was recovered may have been told as of another time than it has.
func TestMembersServeWhatIsClosed(t *testing.T) {
	a := newAlone(t)
	at := func(at clock.Stamp) (out closedReply) {
		for _, m := range a.call(func(env *protocol.Env[store.Message]) {
			a.Receive(env, 10, closedRequest{ID: txnID(1), At: at, Reads: []store.Read{{Key: "k"}}})
		}) {
			if r, ok := m.(closedReply); ok {
				out = r
			}
		}
		return out
	}
	a.put("k", 100)
	a.put("k", 250)
	a.carryOut(t, closed{At: 300})
	for when, want := range map[clock.Stamp]uint64{99: 0, 100: 100, 249: 100, 250: 250, 300: 250} {
		r := at(when)
		if r.Reason != store.NoReason || r.Closed != 300 || len(r.Values) != 1 || r.Values[0].Version.Time != want {
			t.Errorf("300 is closed: as of %d it says %+v", when, r)
		}
	}
	expect(t, "what is not closed", at(301).Reason, store.Locked)

	part := partID{txnID(2), 1}
	a.carryOut(t, prepared{Part: part, Recovered: true,
		Ballot: ballot{Yes: true, Stamp: 400, footprint: footprint{Writes: []store.Read{{Key: "k"}}}}})
	expect(t, "while something may end at any time", at(300).Reason, store.NoReason)
	a.carryOut(t, ended{finish{ID: part.ID, Commit: true, Version: store.Version{Time: 420, Client: 1},
		Writes: []store.Write{{Key: "k"}}}})
	a.carryOut(t, closed{At: 500})
	check := func(what string) {
		expect(t, what+", before what was recovered", at(419).Reason, store.StaleRead)
		expect(t, what+", with it", at(420).Reason, store.NoReason)
	}
	check("it has ended at 420")
	a.call(func(env *protocol.Env[store.Message]) { a.state.Load(a.written(env)) })
	check("after a restart")
	a.carryOut(t, closed{At: 500, Horizon: 450})
	expect(t, "what is gone", at(440).Reason, store.Old)
}

// TestLeaderHearsOfReadersNowAndThen: a member does not tell its leader with each read that
// somebody reads as of closed timestamps.
func TestLeaderHearsOfReadersNowAndThen(t *testing.T) {
	w := wanting{told: 11, at: 10 * time.Second}
	expect(t, "soon", w.isDue(11, 11*time.Second, 2*time.Second), false)
	expect(t, "when the clock was set back", w.isDue(11, 9*time.Second, 2*time.Second), true)
	expect(t, "another leader", w.isDue(21, 11*time.Second, 2*time.Second), true)
	expect(t, "later", w.isDue(11, 12*time.Second, 2*time.Second), true)
}

// TestStaleAt: as of when an agent has the nearest members read.
func TestStaleAt(t *testing.T) {
	layout := storedeploy.Layout(3, 2)
	const now = 100 * time.Second
	at := func(seconds float64) clock.Stamp { return clock.Stamp(seconds * float64(time.Second)) }
	for _, tc := range []struct {
		what   string
		before func(a *agent)
		ask    store.DeclareRequest
		want   clock.Stamp
		from   int // the site whose member is asked for the first partition; -1: none
	}{
		{"nothing is known", func(*agent) {}, store.DeclareRequest{MaxAge: 5 * time.Second}, at(100), -1},
		{"what is known is of long ago", func(a *agent) {
			a.near.asks = false
			a.near.members[21], a.near.members[22] = nearMember{closed: at(99)}, nearMember{closed: at(98)}
		}, store.DeclareRequest{MaxAge: 5 * time.Second}, at(100), -1},
		{"the latest that both have closed", func(a *agent) {
			a.near.members[21], a.near.members[22] = nearMember{closed: at(99)}, nearMember{closed: at(98)}
		}, store.DeclareRequest{MaxAge: 5 * time.Second}, at(98), 1},
		{"one is too far behind", func(a *agent) {
			a.near.members[21], a.near.members[22] = nearMember{closed: at(99)}, nearMember{closed: at(90)}
		}, store.DeclareRequest{MaxAge: 5 * time.Second}, at(99), 1},
		{"both are", func(a *agent) {
			a.near.members[21], a.near.members[22] = nearMember{closed: at(99)}, nearMember{closed: at(98)}
		}, store.DeclareRequest{MaxAge: 500 * time.Millisecond}, at(100), -1},
		{"the session has seen more", func(a *agent) {
			a.near.members[21], a.near.members[22] = nearMember{closed: at(99)}, nearMember{closed: at(98)}
		}, store.DeclareRequest{MaxAge: 5 * time.Second, NotBefore: uint64(at(99.5))}, at(100), -1},
		{"it has read before", func(a *agent) {
			a.near.members[21], a.near.members[22] = nearMember{closed: at(99)}, nearMember{closed: at(98)}
		}, store.DeclareRequest{MaxAge: 5 * time.Second, At: uint64(at(80))}, at(80), 1},
		{"the nearest member is silent", func(a *agent) {
			a.near.members[21] = nearMember{closed: at(99), asked: now - time.Second}
			a.near.members[31], a.near.members[22] = nearMember{closed: at(98)}, nearMember{closed: at(99)}
			a.clocks.seen[10] = offset{within: 50 * time.Millisecond}
			a.clocks.seen[30] = offset{within: 40 * time.Millisecond}
		}, store.DeclareRequest{MaxAge: 5 * time.Second}, at(98), 2},
		{"another site is nearer", func(a *agent) {
			a.near.members[21] = nearMember{closed: at(99), asked: now - time.Second}
			a.near.members[11], a.near.members[22] = nearMember{closed: at(97)}, nearMember{closed: at(99)}
			a.clocks.seen[10] = offset{within: 30 * time.Millisecond}
			a.clocks.seen[30] = offset{within: 40 * time.Millisecond}
		}, store.DeclareRequest{MaxAge: 5 * time.Second}, at(97), 0},
		{"all are silent", func(a *agent) {
			for _, id := range []protocol.ID{11, 21, 31} {
				a.near.members[id] = nearMember{closed: at(99), asked: now - time.Second}
			}
		}, store.DeclareRequest{MaxAge: 5 * time.Second}, at(100), -1},
		{"the clock is off", func(a *agent) {
			a.near.members[21], a.near.members[22] = nearMember{closed: at(99)}, nearMember{closed: at(98)}
			a.clocks.seen[10] = offset{ahead: time.Second, within: 40 * time.Millisecond}
			a.clocks.seen[30] = offset{ahead: time.Second, within: 40 * time.Millisecond}
		}, store.DeclareRequest{MaxAge: 5 * time.Second}, 0, -1},
		{"the clock is off, and it has read before", func(a *agent) {
			a.clocks.seen[10] = offset{ahead: time.Second, within: 40 * time.Millisecond}
			a.clocks.seen[30] = offset{ahead: time.Second, within: 40 * time.Millisecond}
		}, store.DeclareRequest{MaxAge: 5 * time.Second, At: uint64(at(80))}, at(80), 1},
	} {
		a, err := newAgent(store.Config{ID: 20, Layout: layout, RoundTrip: 100 * time.Millisecond}, basicMode)
		if err != nil {
			t.Fatal(err)
		}
		a.near.asks = true
		tc.before(a)
		key := store.Key("a")
		for layout.ShardOf(key) != 0 {
			key += "a"
		}
		tc.ask.ID, tc.ask.Reads = txnID(1), []store.Key{key}
		env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
		env.Now = now
		a.Receive(env, 200, tc.ask)
		got, from := clock.Stamp(0), -1
		for _, e := range env.Out {
			switch m := e.Msg.(type) {
			case closedRequest:
				if len(m.Reads) > 0 {
					got, from = m.At, slices.IndexFunc(layout.Sites, func(s store.Site) bool { return s.Shards[0] == e.To })
				}
			case snapshotRequest:
				if got = m.At; m.At > 0 && !m.Strict {
					t.Errorf("%s: the leader is not asked for the present", tc.what)
				}
			}
		}
		if got != tc.want || from != tc.from {
			t.Errorf("%s: it asks for %v of site %d, want %v of %d", tc.what, got, from, tc.want, tc.from)
		}
	}
}

// TestStaleGoesOnElsewhere: what the nearest member has not closed its leader reads, as of the
// present; or as of the same timestamp, if the transaction has read before. If that cannot be, it
// says so.
func TestStaleGoesOnElsewhere(t *testing.T) {
	layout := storedeploy.Layout(3, 1)
	const now = 100 * time.Second
	for _, at := range []clock.Stamp{0, 80 * second} {
		a, err := newAgent(store.Config{ID: 20, Layout: layout, RoundTrip: 100 * time.Millisecond}, basicMode)
		if err != nil {
			t.Fatal(err)
		}
		call := func(from protocol.ID, m store.Message) (said []store.Message) {
			env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
			env.Now = now
			a.Receive(env, from, m)
			for _, e := range env.Out {
				if e.Kind == protocol.KindSend {
					said = append(said, e.Msg)
				}
			}
			return said
		}
		bound, known := uint64(now+5*time.Millisecond), clock.Stamp(now+6*time.Millisecond)
		a.near.asks, a.near.members[21] = true, nearMember{closed: known}
		call(200, store.DeclareRequest{ID: txnID(1), Reads: []store.Key{"k"}, MaxAge: time.Second, At: uint64(at),
			NotBefore: bound})
		asked, near := at, at
		if at == 0 {
			asked, near = clock.Stamp(bound), known
		}
		said := call(21, closedReply{ID: txnID(1), At: near, Closed: 70 * second, Reason: store.Locked})
		if m, ok := said[0].(snapshotRequest); !ok || m.At != asked || m.Strict != (at == 0) || !m.Values {
			t.Fatalf("as of %v: when the nearest member has refused, it says %+v", at, said)
		}
		said = call(11, snapshotReply{ID: txnID(1), At: asked, Reason: store.Old})
		if at == 0 {
			if m, ok := said[0].(snapshotRequest); !ok || m.At != 0 {
				t.Errorf("when the leader has refused, it says %+v", said)
			}
			continue
		}
		if m, ok := said[0].(store.DeclareReply); !ok || len(m.Values) > 0 || len(a.calls) > 0 {
			t.Errorf("as of %v: when the leader has refused, it says %+v", at, said)
		}
	}
}

// TestSession: what a client wants to see that may be old is not from before what it has
// written and read, and what it reads further is as of the same timestamp.
func TestSession(t *testing.T) {
	layout := storedeploy.Layout(3, 1)
	c, err := newClient(store.Config{ID: 200, Layout: layout}, basicMode)
	if err != nil {
		t.Fatal(err)
	}
	call := func(from protocol.ID, m store.Message) (out []store.Message) {
		env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
		c.Receive(env, from, m)
		for _, e := range env.Out {
			if e.Kind == protocol.KindSend {
				out = append(out, e.Msg)
			}
		}
		return out
	}
	env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	c.Start(env, nil)
	leader := layout.Sites[0].Shards[0]
	coordinator := layout.Sites[0].Coordinators[0]
	ref := uint64(0)
	declare := func(at uint64, keys ...store.Key) store.DeclareRequest {
		ref++
		out := call(protocol.App, store.Declare{Ref: ref, Reads: keys, MaxAge: time.Second, At: at})
		m, ok := out[0].(store.DeclareRequest)
		if !ok || m.At != at || m.MaxAge != time.Second {
			t.Fatalf("it asks for %+v", m)
		}
		return m
	}
	call(protocol.App, store.Get{Ref: 100, Key: "k"})
	call(leader, store.ReadReply{Ref: 1, Value: store.Value{Version: store.Version{Time: 5}}})
	expect(t, "the bound, when it has read", declare(0, "k").NotBefore, uint64(5))

	sent := call(protocol.App, store.Submit{Ref: 101, Writes: []store.Write{{Key: "k"}}})[0].(store.CommitRequest)
	call(coordinator, store.Decided{ID: txnID(99), Verdict: store.Committed, Version: store.Version{Time: 99}})
	expect(t, "the bound, when it has heard of another's commit", declare(0, "k").NotBefore, uint64(5))
	expect(t, "the bound of another key", declare(0, "l").NotBefore, uint64(0))
	call(coordinator, store.Decided{ID: sent.Txn.ID, Verdict: store.Committed, Version: store.Version{Time: 20}})
	m := declare(0, "k")
	expect(t, "the bound, when it has committed", m.NotBefore, uint64(20))

	held := []store.Held{{Value: store.Value{Version: store.Version{Time: 7}}}}
	out := call(coordinator, store.DeclareReply{ID: m.ID, Values: held, At: 30, Age: 4})
	if d, ok := out[0].(store.Declared); !ok || !d.OK || d.At != 30 || d.Age != 4 {
		t.Errorf("it is told %+v", out)
	}
	expect(t, "the bound, when it has read as of a time", declare(0, "l").NotBefore, uint64(30))
	before := store.Declare{Ref: 102, Reads: []store.Key{"k"}, MaxAge: time.Second, At: 19}
	if d, ok := call(protocol.App, before)[0].(store.Declared); !ok || d.OK {
		t.Errorf("as of before what it has written it reads %+v", d)
	}

	m = declare(30, "k")
	if out := call(coordinator, store.DeclareReply{ID: m.ID, Values: held, At: 31}); len(out) > 0 {
		t.Errorf("of an answer as of another time it is told %+v", out)
	}
	out = call(coordinator, store.DeclareReply{ID: m.ID})
	if d, ok := out[0].(store.Declared); !ok || d.OK {
		t.Errorf("of what cannot be read as of that time it is told %+v", out)
	}
}

// TestRecordThatComesLate: a leader looks after a transaction whose record took so long that it had
// forgotten it.
func TestRecordThatComesLate(t *testing.T) {
	a := leader(t, 0)
	entry := begun{beginRequest{txnID(1), []uint32{0}}}
	a.carryOut(t, entry)
	a.call(func(env *protocol.Env[store.Message]) {
		b, err := a.state.format.Append(nil, entry)
		if err != nil {
			t.Fatal(err)
		}
		a.committed(env, raft.Position{Index: 1, Term: 3}, b)
	})
	if a.txns[txnID(1)] == nil {
		t.Error("nobody gives up a transaction whose client is gone")
	}
}

// TestSessionForgets: what a session does not remember any more counts as seen of all keys.
func TestSessionForgets(t *testing.T) {
	s := session{newest: map[store.Key]uint64{}}
	key := func(n int) store.Key { return store.Key(fmt.Sprint("k", n)) }
	most := 0
	for n := 1; n <= 3*seenKeys; n++ {
		s.saw(key(n), store.Version{Time: uint64(n)})
		most = max(most, len(s.newest))
		for _, back := range []int{0, 1, seenKeys / 2, seenKeys, n - 1} {
			if old := max(n-back, 1); s.of([]store.Key{key(old)}) < uint64(old) {
				t.Fatalf("%d keys after it has seen version %d it may read before", back, old)
			}
		}
	}
	if most > seenKeys+1 {
		t.Errorf("it remembers %d keys", most)
	}
	s.saw("k", store.Version{Time: maxStamp + 1})
	s.sawAt(maxStamp + 1)
	expect(t, "a version that no clock has", s.of([]store.Key{"k"}) <= uint64(3*seenKeys), true)
}

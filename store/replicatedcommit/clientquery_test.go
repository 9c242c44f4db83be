package replicatedcommit

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// Committed by a and c; b said no and has not heard. c is fenced; who asks then must not be told
// "aborted".
func TestQueryAfterFence(t *testing.T) {
	s := newScript(t, nil)
	s.Sim.Cut(201, 10)
	s.Sim.Cut(201, 30)
	s.submit(201, "b", "k") // b alone hears of it and votes for it
	s.run(20 * time.Millisecond)
	for _, b := range s.SiteNodes(1) {
		for _, o := range append(s.SiteNodes(0), s.SiteNodes(2)...) {
			s.Sim.Cut(b, o)
			s.Sim.Cut(o, b)
		}
	}
	d, _ := s.done(200, s.submit(200, "a", "k"))
	want(t, d, store.Committed)
	s.run(200 * time.Millisecond)
	s.Sim.Heal()
	for _, b := range s.SiteNodes(1) {
		for _, o := range s.SiteNodes(0) {
			s.Sim.Cut(b, o)
			s.Sim.Cut(o, b)
		}
	}
	for i := range 3 {
		s.crashSite(i)
	}
	for _, c := range []protocol.ID{200, 201, 202} {
		s.Sim.Crash(c, sim.KeepNone)
	}
	s.Layout.Sites = slices.Clone(s.Layout.Sites)
	s.Layout.Sites[2].Fenced = true
	s.restartSite(0)
	s.restartSite(1)
	s.Sim.Restart(201)
	s.run(10 * time.Millisecond)
	s.ref++
	s.Sim.Deliver(201, store.Query{Ref: s.ref, Txn: d.Txn})
	again, _ := s.done(201, s.ref)
	g, _ := s.read(201, "k")
	t.Logf("asked again: %+v; k is %+v", again.Outcome, g)
	if again.Outcome.Verdict == store.Aborted {
		t.Errorf("a committed transaction is told to be aborted")
	}
}

// A second question about a transaction is answered "rejected", which says that it was never sent.
func TestQueryTwice(t *testing.T) {
	s := newScript(t, nil)
	for _, id := range s.Nodes() {
		s.Sim.Cut(id, 200)
	}
	d, _ := s.done(200, s.submit(200, "a", "k"))
	want(t, d, store.Unknown)
	s.Sim.Deliver(200, store.Query{Ref: 1000, Txn: d.Txn})
	s.Sim.Deliver(200, store.Query{Ref: 1001, Txn: d.Txn})
	s.Sim.Heal()
	d1, _ := s.done(200, 1001)
	d0, _ := s.done(200, 1000)
	t.Logf("%+v; %+v", d0.Outcome, d1.Outcome)
	if d1.Outcome.Verdict == store.Rejected {
		t.Errorf("rejected, though it was %v", d0.Outcome.Verdict)
	}
}

// A read-only transaction that was tried again has been committed; nobody wants the key any more.
func TestReadOnlyReservation(t *testing.T) {
	s := newScript(t, nil)
	s.ref++
	p := store.Priority{Began: 1, Client: 1}
	s.Sim.Deliver(200, store.Get{Ref: s.ref, Key: "k", Priority: p})
	s.run(120 * time.Millisecond)
	s.ref++
	s.Sim.Deliver(200, store.Submit{Ref: s.ref, Priority: p, Reads: []store.Read{{Key: "k"}}})
	d, _ := s.done(200, s.ref)
	want(t, d, store.Committed)
	s.ref++
	s.Sim.Deliver(201, store.Submit{Ref: s.ref, Writes: []store.Write{{Key: "k", Bytes: []byte("b")}}})
	d, _ = s.done(201, s.ref)
	t.Logf("%+v", d.Outcome)
	want(t, d, store.Committed)
}

// The nearest site is asked alone, once all have been heard of.
func TestNear(t *testing.T) {
	c, err := newClient(store.Config{ID: 99, Layout: layout(3, 1)})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[message](nil, 99, rand.New(rand.NewPCG(1, 1)))
	now := time.Hour
	sends := func() (n int) {
		for _, e := range env.Out {
			if (e.Kind == protocol.KindSend || e.Kind == protocol.KindSendAhead) && e.To != protocol.App {
				n++
			}
		}
		return n
	}
	env.Begin(now)
	c.Start(env, nil)
	for i := uint64(1); i <= 50; i++ {
		env.Begin(now)
		c.Receive(env, protocol.App, store.Get{Ref: i, Key: "k", Nearest: true})
		if n := sends(); i == 50 && n != 1 {
			t.Errorf("read %d asks %d sites; near is %v", i, n, c.near)
		}
		for j, d := range []time.Duration{1, 100, 110} {
			env.Begin(now + d*time.Millisecond)
			c.Receive(env, protocol.ID(10*(j+1)+1), store.ReadReply{Ref: i})
		}
		now += time.Second
		env.Begin(now)
		c.Receive(env, protocol.App, store.Submit{Ref: i, Writes: []store.Write{{Key: "k"}}})
		var id store.TxnID
		for _, e := range env.Out {
			if m, ok := e.Msg.(store.CommitRequest); ok {
				id = m.Txn.ID
			}
		}
		for j, d := range []time.Duration{1, 100, 110} {
			env.Begin(now + d*time.Millisecond)
			c.Receive(env, protocol.ID(10*(j+1)), store.SiteVote{ID: id, Yes: true})
		}
		now += time.Second
	}
}

// A read of a key that is blocked, while a site is down, is refused for that key: it is not that
// nobody answered.
func TestReadOfABlockedKey(t *testing.T) {
	c, err := newClient(store.Config{ID: 99, Layout: layout(3, 1), RoundTrip: roundTrip})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[message](nil, 99, rand.New(rand.NewPCG(1, 1)))
	env.Begin(time.Second)
	c.Start(env, nil)
	c.Receive(env, protocol.App, store.Submit{Ref: 1, Reads: []store.Read{{Key: "k"}}})
	var id store.TxnID
	for s := range c.Submits() {
		id = s.Txn.ID
	}
	c.Receive(env, 10, store.SiteVote{ID: id, Yes: true})
	c.Receive(env, 20, store.SiteVote{ID: id, Reason: store.Locked})
	for i := range kit.Tries {
		env.Begin(time.Second + time.Duration(i)*silentFor/(kit.Tries-1))
		c.Expire(env, kit.SubmitTimer{ID: id})
	}
	for _, e := range env.Out {
		if m, ok := e.Msg.(store.Done); ok && m.Outcome.Verdict == store.Aborted && m.Outcome.Reason == store.Locked {
			return
		}
	}
	t.Errorf("the application was told %v", env.Out)
}

// TestSlowSiteIsWaitedFor: two sites vote differently, and the third one is slow, however often it
// is asked in a short time: its vote decides, in place of an error that says it is away.
func TestSlowSiteIsWaitedFor(t *testing.T) {
	c, err := newClient(store.Config{ID: 99, Layout: layout(3, 1), RoundTrip: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[message](nil, 99, rand.New(rand.NewPCG(1, 1)))
	done := func(at time.Duration, step func(id store.TxnID)) (out []store.Verdict) {
		var id store.TxnID
		for s := range c.Submits() {
			id = s.Txn.ID
		}
		env.Begin(time.Hour + at)
		step(id)
		for _, e := range env.Out {
			if m, ok := e.Msg.(store.Done); ok {
				out = append(out, m.Outcome.Verdict)
			}
		}
		return out
	}
	env.Begin(time.Hour)
	c.Start(env, nil)
	c.Receive(env, protocol.App, store.Submit{Ref: 1, Writes: []store.Write{{Key: "k"}}})
	done(0, func(id store.TxnID) {
		c.Receive(env, 10, store.SiteVote{ID: id, Yes: true})
		c.Receive(env, 20, store.SiteVote{ID: id, Reason: store.Locked})
	})
	for i := range time.Duration(2 * kit.Tries) {
		if v := done((i+1)*10*time.Millisecond, func(id store.TxnID) { c.Expire(env, kit.SubmitTimer{ID: id}) }); v != nil {
			t.Fatalf("after it was asked %d times: %v", i+1, v)
		}
	}
	if v := done(200*time.Millisecond, func(id store.TxnID) {
		c.Receive(env, 30, store.SiteVote{ID: id, Yes: true})
	}); !slices.Equal(v, []store.Verdict{store.Committed}) {
		t.Errorf("when it has voted: %v", v)
	}
}

// TestFencedSiteIsNotWaitedFor: the votes of the sites that are left are split. A fenced one, which
// is asked nothing, says nothing.
func TestFencedSiteIsNotWaitedFor(t *testing.T) {
	l := layout(3, 1)
	l.Sites[2].Fenced = true
	c, err := newClient(store.Config{ID: 99, Layout: l, RoundTrip: roundTrip})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[message](nil, 99, rand.New(rand.NewPCG(1, 1)))
	env.Begin(time.Second)
	id := store.TxnID{Time: 1, Client: 1}
	if !c.stuck(env, &submit{votes: []store.SiteVote{{ID: id, Yes: true}, {ID: id}, {}}}) {
		t.Error("the client goes on to ask")
	}
}

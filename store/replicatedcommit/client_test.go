package replicatedcommit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/gate"
	"github.com/foresay/foresay/store/kit"
)

// The nearest site is a newcomer that copies: it says no to what only reads at once, and nothing to
// reads.
func TestNewcomerNear(t *testing.T) {
	c, err := newClient(store.Config{ID: 99, Layout: layout(3, 1), RoundTrip: roundTrip})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[message](nil, 99, rand.New(rand.NewPCG(1, 1)))
	now := time.Second
	env.Begin(now)
	c.Start(env, nil)
	c.near = [][]time.Duration{{time.Millisecond}, {100 * time.Millisecond}, {110 * time.Millisecond}}
	late := 0
	for i := uint64(1); i <= 20; i++ {
		env.Begin(now)
		c.Receive(env, protocol.App, store.Get{Ref: i, Key: "k", Nearest: true})
		for _, e := range env.Out {
			if e.Kind == protocol.KindSend && e.To == 11 {
				late++ // no answer; the timer ends it
			}
			t, ok := e.Timer.(kit.GetTimer)
			if ok && e.Kind == protocol.KindAfter && slices.Equal(c.Get(t.Number).few, []int{0}) {
				now += e.Delay
				env.Begin(now)
				c.Expire(env, e.Timer)
				break
			}
		}
		now += 100 * time.Millisecond
		env.Begin(now)
		c.Receive(env, 21, store.ReadReply{Ref: i})
		now += time.Millisecond
		env.Begin(now)
		c.Receive(env, protocol.App, store.Submit{Ref: 100 + i, Reads: []store.Read{{Key: "k"}}})
		var id store.TxnID
		for _, e := range env.Out {
			if m, ok := e.Msg.(store.CommitRequest); ok {
				id = m.Txn.ID
			}
		}
		env.Begin(now + time.Millisecond)
		c.Receive(env, 10, store.SiteVote{ID: id, Reason: store.Fenced})
		now += 110 * time.Millisecond
		env.Begin(now)
		c.Receive(env, 20, store.SiteVote{ID: id, Yes: true})
		c.Receive(env, 30, store.SiteVote{ID: id, Yes: true})
	}
	if late > 2 {
		t.Errorf("%d of 20 reads waited for the newcomer; near is %v", late, c.near)
	}
}

// TestReadsAskTheNearestMajority: once distances are known a read asks two of three sites, and the
// third when one of them is late, which is farther than it from then on; one read in so many asks
// all.
func TestReadsAskTheNearestMajority(t *testing.T) {
	c, err := newClient(store.Config{ID: 99, Layout: layout(3, 1), RoundTrip: roundTrip})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[message](nil, 99, rand.New(rand.NewPCG(1, 1)))
	now := time.Second
	env.Begin(now)
	c.Start(env, nil)
	n := uint64(0) // of reads
	asked := func() (sites []int, timer protocol.Timer, wait time.Duration) {
		for _, e := range env.Out {
			switch m, ok := e.Msg.(store.ReadRequest); {
			case ok && m.Ref == n:
				sites = append(sites, int(e.To)/10-1)
			case e.Kind == protocol.KindAfter:
				timer, wait = e.Timer, e.Delay
			}
		}
		return sites, timer, wait
	}
	took := []time.Duration{time.Millisecond, 2 * time.Millisecond, 9 * time.Millisecond}
	answer := func(sites ...int) {
		at := now
		for _, i := range sites {
			env.Begin(at + took[i])
			c.Receive(env, protocol.ID(10*i+11), store.ReadReply{Ref: n})
		}
		now = at + time.Second
	}
	read := func(p store.Priority) []int {
		n++
		env.Begin(now)
		c.Receive(env, protocol.App, store.Get{Ref: n, Key: "k", Priority: p})
		sites, _, _ := asked()
		return sites
	}
	want := func(what string, got []int, want ...int) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s asks sites %v, want %v", what, got, want)
		}
	}
	want("the first read", read(store.Priority{}), 0, 1, 2)
	answer(0, 1, 2)
	all := 0
	for range probeEvery {
		switch sites := read(store.Priority{}); len(sites) {
		case 3:
			all++
			answer(0, 1, 2)
		default:
			want("a read", sites, 0, 1)
			answer(0, 1)
		}
	}
	if all != 1 {
		t.Errorf("%d of %d reads ask all sites", all, probeEvery)
	}
	want("a read of a transaction that was refused", read(store.Priority{Began: 1, Client: 1}), 0, 1, 2)
	answer(0, 1)

	read(store.Priority{})
	_, timer, wait := asked()
	if wait < 2*took[1] || wait > roundTrip {
		t.Errorf("a read waits %v for sites that answer within %v", wait, took[1])
	}
	env.Begin(now + took[0])
	c.Receive(env, 11, store.ReadReply{Ref: n})
	now += max(wait, 2*took[2])
	env.Begin(now)
	c.Expire(env, timer)
	sites, _, _ := asked()
	want("a read of which one answer is late", sites, 2)
	answer(2)
	want("the next read", read(store.Priority{}), 0, 2)
}

// A new transaction of a client whose clock is behind was never sent before: refused by all it is
// aborted.
func TestSlowClock(t *testing.T) {
	c, err := newClient(store.Config{ID: 99, Layout: layout(3, 1)})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[message](nil, 99, rand.New(rand.NewPCG(1, 1)))
	env.Begin(time.Second)
	c.Start(env, nil)
	c.Receive(env, protocol.App, store.Submit{Ref: 1, Writes: []store.Write{{Key: "k"}}})
	var id store.TxnID
	for _, e := range env.Out {
		if m, ok := e.Msg.(store.CommitRequest); ok {
			id = m.Txn.ID
		}
	}
	env.Begin(time.Second)
	for _, from := range []protocol.ID{10, 20} {
		c.Receive(env, from, store.SiteVote{ID: id, Reason: store.Old, Hint: uint64(time.Hour)})
	}
	for _, e := range env.Out {
		if m, ok := e.Msg.(store.Done); ok && m.Outcome.Verdict != store.Aborted {
			t.Errorf("%+v", m.Outcome)
		}
	}
}

// The nearest site holds a read of a locked key back for a round trip, as it should; it is the
// nearest one still.
func TestLockedNearest(t *testing.T) {
	c, err := newClient(store.Config{ID: 99, Layout: layout(3, 1), RoundTrip: roundTrip})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[message](nil, 99, rand.New(rand.NewPCG(1, 1)))
	env.Begin(time.Second)
	c.Start(env, nil)
	c.near = [][]time.Duration{{time.Millisecond}, {100 * time.Millisecond}, {110 * time.Millisecond}}
	env.Begin(time.Second)
	c.Receive(env, protocol.App, store.Get{Ref: 1, Key: "k", Nearest: true})
	for _, e := range env.Out {
		if e.Kind == protocol.KindAfter {
			t.Logf("it waits %v; the answer comes after %v and some processing", e.Delay, roundTrip+time.Millisecond)
			if e.Delay <= roundTrip+time.Millisecond+roundTrip/4 {
				t.Errorf("it waits %v", e.Delay)
			}
			env.Begin(time.Second + roundTrip + time.Millisecond)
			c.Receive(env, 11, store.ReadReply{Ref: 1})
			break
		}
	}
	if n := c.nearest(0, c.near, 1); !slices.Equal(n, []int{0}) {
		t.Errorf("the nearest site is %v; near is %v", n, c.near)
	}
}

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

// TestOneSiteHolds: a client has the nearest site wait, the first time that it asks, and only if it
// was told to. Who has read nothing does not know which one that is.
func TestOneSiteHolds(t *testing.T) {
	c, err := newClient(store.Config{ID: 99, Layout: layout(3, 2), RoundTrip: roundTrip})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[message](nil, 99, rand.New(rand.NewPCG(1, 1)))
	now := time.Second
	var id store.TxnID // of what was sent last
	sent := func(call func()) string {
		t.Helper()
		env.Begin(now)
		call()
		text := ""
		for _, e := range env.Out {
			if m, ok := e.Msg.(store.CommitRequest); ok && e.Kind == protocol.KindSend {
				text += fmt.Sprintf("%d:%v ", e.To, m.Hold)
				id = m.Txn.ID
			}
		}
		return text
	}
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: the sites are asked %q, want %q", what, got, want)
		}
	}
	submit := func(ref uint64, hold bool) func() {
		return func() {
			c.Receive(env, protocol.App, store.Submit{Ref: ref, Writes: []store.Write{{Key: "k"}}, Hold: hold})
		}
	}
	const nobody = "10:false 20:false 30:false "
	sent(func() { c.Start(env, nil) })
	expect("nothing was read", sent(submit(1, true)), nobody)
	c.near = [][]time.Duration{{100 * time.Millisecond, 0}, {0, time.Millisecond},
		{90 * time.Millisecond, 90 * time.Millisecond}}
	expect("it is not told to", sent(submit(2, false)), nobody)
	expect("it is", sent(submit(3, true)), "10:false 20:true 30:false ")
	third, silent := id, c.silent
	c.silent = []time.Duration{0, 0, 1}
	expect("a site is down", sent(submit(5, true)), "10:false ")
	first := store.SiteVote{ID: id, Shards: []uint32{0}, Yes: true}
	expect("the first one has voted", sent(func() { c.Receive(env, 10, first) }), "20:false 30:false ")
	c.silent, id = silent, third
	now += 2 * roundTrip
	expect("it asks again", sent(func() { c.Expire(env, kit.SubmitTimer{ID: id}) }), nobody)
	txn := c.Submit(id).Txn
	expect("it gives up", sent(func() { c.Receive(env, protocol.App, store.Cancel{Ref: 3}) }), "")
	expect("it asks what became of it", sent(func() {
		c.Receive(env, protocol.App, store.Query{Ref: 4, Txn: txn})
	}), nobody)
}

// TestHoldIsPassedOn: the mark goes from the client to each shard of the site, also through a gate.
func TestHoldIsPassedOn(t *testing.T) {
	for _, hold := range []bool{true, false} {
		g, err := gate.New(store.Config{ID: 99, Layout: layout(3, 2)}, 0)
		if err != nil {
			t.Fatal(err)
		}
		env := protocol.NewEnv[message](nil, 1, rand.New(rand.NewPCG(1, 2)))
		g.Start(env, nil)
		env.Begin(0)
		txn := store.Txn{ID: store.TxnID{Time: uint64(time.Hour), Client: 1}, Writes: []store.Write{{Key: "k0"}, {Key: "k1"}}}
		g.Receive(env, protocol.App, gate.Commit{Ref: 1, Txn: txn, Hold: hold})
		var out []protocol.Effect[message]
		for _, e := range env.Out {
			if e.Kind == protocol.KindSend {
				out = append(out, e)
			}
		}
		if len(out) != 1 || out[0].To != 10 {
			t.Fatalf("the gate sends %v", out)
		}
		co, err := newCoordinator(store.Config{ID: 10, Layout: layout(3, 2)})
		if err != nil {
			t.Fatal(err)
		}
		env = protocol.NewEnv[message](nil, 10, rand.New(rand.NewPCG(1, 1)))
		env.Begin(time.Hour)
		co.Receive(env, 99, out[0].Msg)
		n := 0
		for _, e := range env.Out {
			if m, ok := e.Msg.(prepare); ok && m.Hold == hold {
				n++
			}
		}
		if n != 2 {
			t.Errorf("%d of 2 shards are asked with hold %v", n, hold)
		}
	}
}

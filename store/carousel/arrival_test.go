package carousel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
	"github.com/foresay/foresay/store/storedeploy"
	"github.com/foresay/foresay/store/storetest"
)

// TestPreparesAreHandledByArrival: a member holds requests until they should have arrived
// everywhere, and prepares the first of two that conflict, whichever comes first here. What is read
// is answered at once, unless somebody is about to change it.
func TestPreparesAreHandledByArrival(t *testing.T) {
	const msec = time.Millisecond
	a := newAlone(t)
	at := func(now time.Duration, do func(*protocol.Env[store.Message])) []store.Message {
		return a.call(func(env *protocol.Env[store.Message]) {
			env.Begin(time.Hour + now)
			do(env)
		})
	}
	give := func(now time.Duration, n uint64, arrives time.Duration, key store.Key) []store.Message {
		return at(now, func(env *protocol.Env[store.Message]) {
			a.Receive(env, 10, prepareRequest{Part: partID{txnID(n), 1}, Reads: []store.Key{key}, Writes: []store.Key{key},
				Values: true, Arrives: time.Hour + arrives})
		})
	}
	voted := func(what string, said []store.Message, values int, want ...uint64) {
		t.Helper()
		var got []uint64
		for _, m := range said {
			switch m := m.(type) {
			case fastVote:
				got = append(got, m.ID.Time)
			case valuesReply:
				values--
			}
		}
		if !slices.Equal(got, want) || values != 0 {
			t.Errorf("%s: it prepares %v, want %v; %d replies with values are missing", what, got, want, values)
		}
	}
	due := func(now time.Duration) []store.Message {
		return at(now, func(env *protocol.Env[store.Message]) { a.Expire(env, kit.ArrivalTimer{}) })
	}
	voted("the second comes", give(0, 2, 30*msec, "k"), 1)
	voted("the first comes", give(5*msec, 1, 20*msec, "k"), 0)
	voted("another one comes", give(6*msec, 3, 40*msec, "l"), 1)
	if got := a.ordering.Status().Holding; got != 3 {
		t.Errorf("it holds %d requests, want 3", got)
	}
	voted("the first is due", due(20*msec), 1, 1)
	voted("the second is due", due(30*msec), 0)
	voted("the third is due", due(40*msec), 0, 3)
	voted("one comes late", give(50*msec, 4, 45*msec, "m"), 1, 4)
	voted("one has no time", at(50*msec, func(env *protocol.Env[store.Message]) {
		a.Receive(env, 10, prepareRequest{Part: partID{txnID(5), 1}, Writes: []store.Key{"n"}})
	}), 0, 5)
	voted("one has a time that is far ahead", give(60*msec, 6, 24*time.Hour, "o"), 1)
	voted("it has waited a round trip", due(60*msec+a.cfg.RoundTrip), 0, 6)
	if len(a.ordering.writes) != 0 {
		t.Errorf("it counts as held: %v", a.ordering.writes)
	}
}

// TestAgentPredictsArrivals: an agent measures the ways to servers while it has transactions, and
// gives all requests of a step the time at which the last of them should have arrived. It goes by
// no clock that is far ahead.
func TestAgentPredictsArrivals(t *testing.T) {
	const msec = time.Millisecond
	layout := storedeploy.Layout(3, 2)
	keys := []store.Key{keysOf(layout, 0, 1)[0], keysOf(layout, 1, 1)[0]}
	slices.Sort(keys)
	for _, tc := range []struct {
		mode  variant
		off   bool
		ahead time.Duration // the clock of the farthest
		want  string
	}{
		{basicMode, false, 0, "[0s 0s] then [30ms 30ms] then [0s 0s 0s 0s 0s 0s]"},
		{fastMode, false, 0, "[0s 0s 0s 0s 0s 0s] then [40ms 40ms 40ms 40ms 40ms 40ms] then [0s 0s 0s 0s 0s 0s]"},
		{fastMode, false, time.Hour,
			"[0s 0s 0s 0s 0s 0s] then [260ms 260ms 260ms 260ms 260ms 260ms] then [0s 0s 0s 0s 0s 0s]"},
		{fastMode, true, 0, "[0s 0s 0s 0s 0s 0s] then [0s 0s 0s 0s 0s 0s] then [0s 0s 0s 0s 0s 0s]"},
	} {
		a, err := newAgent(store.Config{ID: layout.Sites[0].Coordinators[0], Layout: layout, ByArrival: !tc.off}, tc.mode)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Hour
		call := func(do func(*protocol.Env[store.Message])) (arrive []time.Duration) {
			env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
			env.Begin(now)
			do(env)
			for _, e := range env.Out {
				switch m := e.Msg.(type) {
				case prepareRequest:
					arrive = append(arrive, max(m.Arrives-now, 0))
				case timeRequest:
					if _, ok := a.places[e.To]; !ok {
						continue
					}
					// The ways take 10 to 40 ms by the clocks there, and 30 to the farther leader.
					way := map[protocol.ID]time.Duration{11: 10, 12: 10, 21: 20, 22: 30, 31: 40, 32: 20}[e.To] * msec
					if e.To == 31 {
						way += tc.ahead
					}
					reply := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
					reply.Begin(now + 20*msec)
					a.Receive(reply, e.To, timeReply{Sent: m.Sent, Now: m.Sent + way})
				}
			}
			return arrive
		}
		commit := func(n uint64) []time.Duration {
			return call(func(env *protocol.Env[store.Message]) {
				var writes []store.Write
				for _, k := range keys {
					writes = append(writes, store.Write{Key: k})
				}
				a.Receive(env, 200, store.CommitRequest{Txn: store.Txn{ID: store.TxnID{Time: n, Client: 7}, Writes: writes}})
			})
		}
		a.where.set(1, 22)
		first := commit(1)
		now += 30 * msec
		second := commit(2)
		again := call(func(env *protocol.Env[store.Message]) { a.Expire(env, againTimer{store.TxnID{Time: 2, Client: 7}}) })
		if got := fmt.Sprintf("%v then %v then %v", first, second, again); got != tc.want {
			t.Errorf("mode %s, ordered: %v: requests should arrive after %s, want %s", tc.mode, !tc.off, got, tc.want)
		}
		now += 2 * delayWindow * a.delayEvery()
		call(func(env *protocol.Env[store.Message]) { a.Expire(env, delayTimer{}) })
		if a.delays.asks {
			t.Errorf("mode %s: it goes on measuring for nobody", tc.mode)
		}
	}
}

// hotAttempts plays clients of three sites that all want one key, and returns how many attempts the
// least lucky transaction took.
func hotAttempts(t *testing.T, mode variant, seed uint64, byArrival bool) (most, committed int) {
	t.Helper()
	w, err := storetest.New(subject(mode), storetest.Scenario{Seed: seed, Clients: 3, Keys: 1, Shards: 1, Hot: true,
		ByArrival: byArrival})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Play(12 * time.Second); err != nil {
		t.Fatal(err)
	}
	return w.Attempts, w.Verdicts[store.Committed]
}

// TestOldestWins: of those that want one key the oldest wins in the end, so that no transaction is
// tried again and again, in any mode, in whatever order requests are handled.
func TestOldestWins(t *testing.T) {
	modes(t, func(t *testing.T, mode variant) {
		most, committed := 0, 0
		for seed := range uint64(4) {
			n, c := hotAttempts(t, mode, 1+seed, seed%2 == 0)
			most, committed = max(most, n), committed+c
		}
		t.Logf("at most %d attempts, %d commits", most, committed)
		if most > 14 {
			t.Errorf("a transaction took %d attempts", most)
		}
	})
}

// leading returns a server that leads, of a store in which nothing has happened.
func leading(t *testing.T) (*server, *protocol.Env[store.Message]) {
	t.Helper()
	w, err := storetest.New(subject(fastMode), storetest.Scenario{Seed: 1, Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Sim.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	s := w.Sim.Get(w.Layout.Sites[0].Shards[0]).(*server)
	if s.term == 0 {
		t.Fatal("the first server does not lead")
	}
	env := protocol.NewEnv[store.Message](&space{has: map[string][]byte{}}, 1, rand.New(rand.NewPCG(1, 1)))
	env.Begin(time.Hour)
	return s, env
}

// TestRetryWaitsForItsOwn: a transaction that is tried again comes before the end of its earlier
// attempt. Its prepare waits for that, if nobody else is in the way, and not for long.
func TestRetryWaitsForItsOwn(t *testing.T) {
	s, env := leading(t)
	now := uint64(time.Hour)
	ask := func(n, age uint64, keys ...store.Key) prepareRequest {
		m := prepareRequest{Part: partID{store.TxnID{Time: now + n, Client: 1}, 1}, Writes: keys, Leader: true}
		if age > 0 {
			m.Priority = store.Priority{Began: now + age, Client: 1}
		}
		return m
	}
	said := func(m prepareRequest) string {
		p := s.flying[m.Part]
		if p == nil {
			return "nothing"
		}
		return p.Ballot.Reason.String()
	}
	want := func(what string, m prepareRequest, word string) {
		t.Helper()
		if got := said(m); got != word {
			t.Errorf("%s: it says %s, want %s", what, got, word)
		}
	}
	first, retry := ask(10, 0, "a"), ask(20, 10, "a")
	for _, m := range []prepareRequest{first, retry} {
		s.handlePrepare(env, 10, m)
	}
	want("the first attempt", first, "none")
	want("the second attempt", retry, "nothing")
	again := retry
	again.Priority = store.Priority{} // as what is repeated has none
	s.handlePrepare(env, 10, again)
	want("the second attempt, repeated", retry, "nothing")
	other := ask(21, 15, "a")
	s.handlePrepare(env, 10, other)
	want("another transaction", other, "locked")
	s.land(first.Part)
	s.settled(env, first.Part.ID, false)
	want("the second attempt after the end of the first", retry, "none")

	third := ask(30, 10, "a")
	s.handlePrepare(env, 10, third)
	want("the third attempt", third, "nothing")
	env.Begin(env.Now + s.trips(ownFor))
	s.sweepClaims(env)
	want("the third attempt after long", third, "locked")

	for _, n := range []uint64{50, 51, 52} {
		age := uint64(50)
		if n == age {
			age = 0
		}
		s.handlePrepare(env, 10, ask(n, age, "d"))
	}
	s.land(ask(50, 0, "d").Part)
	s.settled(env, ask(50, 0, "d").Part.ID, false)
	want("the first of two attempts that waited", ask(51, 50, "d"), "none")
	want("the second of them", ask(52, 50, "d"), "nothing")
	s.land(ask(51, 50, "d").Part)
	s.settled(env, ask(51, 50, "d").Part.ID, false)
	want("the second when the first has ended", ask(52, 50, "d"), "none")

	s.handlePrepare(env, 10, ask(40, 0, "b"))
	both := ask(41, 10, "a", "b")
	s.handlePrepare(env, 10, both)
	want("one that others are in the way of, too", both, "locked")
	if n := len(s.reserving.behind); n > 0 {
		t.Errorf("%d prepares wait", n)
	}
}

// TestReservationsOfThoseTriedAgain: a transaction that is tried again keeps what it is refused
// from younger ones. One that is refused for the first time does not, nor one that meets who has
// been there for long. An end that is committed gives back what it had reserved.
func TestReservationsOfThoseTriedAgain(t *testing.T) {
	s, env := leading(t)
	now := uint64(time.Hour)
	ask := func(n uint64, age uint64, keys ...store.Key) prepareRequest {
		m := prepareRequest{Part: partID{store.TxnID{Time: now + n, Client: 1}, 1}, Writes: keys}
		if age > 0 {
			m.Priority = store.Priority{Began: now + age, Client: 1}
		}
		return m
	}
	want := func(what string, m prepareRequest, reason store.Reason) {
		t.Helper()
		s.handlePrepare(env, 10, m)
		p := s.flying[m.Part]
		if p == nil {
			t.Fatalf("%s: it says nothing", what)
		}
		if p.Ballot.Reason != reason {
			t.Errorf("%s: the reason is %v, want %v", what, p.Ballot.Reason, reason)
		}
	}
	want("who is first", ask(10, 0, "a"), store.NoReason)
	want("who is tried for the first time", ask(11, 0, "a", "b"), store.Locked)
	want("who comes then", ask(12, 0, "b"), store.NoReason)
	old := ask(20, 1, "a", "c")
	want("who is tried again", old, store.Locked)
	want("a younger one", ask(21, 0, "c"), store.Reserved)
	further := ask(10, 0, "c") // else what it has prepared here would be undone
	further.Part.Step = 2
	s.reserving.Reserve(env, "c", true, store.Priority{Began: now + 2, Client: 1})
	want("a further part of who has one", further, store.NoReason)
	s.land(further.Part)
	s.reserving.Release(env, "c", store.Priority{Began: now + 2, Client: 1})
	want("an older one that is tried again", ask(22, 0, "d"), store.NoReason)
	want("the next attempt", ask(23, 1, "c"), store.NoReason)
	s.settled(env, old.Part.ID, true)
	want("a younger one when it has ended, of what was locked", ask(24, 0, "c"), store.Locked)
	if n := s.reserving.Len(); n != 0 {
		t.Errorf("%d keys are reserved after the end, want none", n)
	}

	stuck := partID{store.TxnID{Time: now + 30, Client: 1}, 1}
	f := footprint{Writes: []store.Read{{Key: "x"}}}
	s.state.parts[stuck] = &part{id: stuck, ballot: ballot{Yes: true, footprint: f}}
	s.state.locks.add(stuck.ID, f)
	s.since[stuck] = env.Now - s.trips(doubtAfter) - 1
	want("who meets one that does not end", ask(31, 2, "x", "y"), store.Locked)
	want("a younger one, of the rest", ask(32, 0, "y"), store.NoReason)
}

// TestReadsWaitForTheirTurn: the leader has the reads of a transaction that is tried again wait as
// long as somebody is about to write the key, or older ones are, but not for long.
func TestReadsWaitForTheirTurn(t *testing.T) {
	s, env := leading(t)
	now := uint64(time.Hour)
	age := func(n uint64) store.Priority { return store.Priority{Began: now + n, Client: 1} }
	read := func(ref uint64, p store.Priority) (answered int) {
		env.Begin(env.Now)
		s.onRead(env, 200, store.ReadRequest{Ref: ref, Key: "k", Priority: p})
		return answers(env, false)
	}
	f := footprint{Writes: []store.Read{{Key: "k"}}}
	holder := store.TxnID{Time: now, Client: 9}
	s.state.locks.add(holder, f)
	if n := read(1, store.Priority{}); n != 1 {
		t.Errorf("a first read has %d answers", n)
	}
	if n := read(2, age(2)) + read(2, age(2)); n != 0 || s.reserving.waits != 1 {
		t.Errorf("a read of a key that is about to change has %d answers, %d wait", n, s.reserving.waits)
	}
	s.state.locks.remove(holder, f)
	env.Begin(env.Now)
	s.settled(env, holder, true)
	if n := answers(env, false); n != 1 || s.reserving.waits != 0 {
		t.Errorf("when the key is free it has %d answers, %d wait", n, s.reserving.waits)
	}
	s.reserving.Reserve(env, "k", true, age(1))
	s.reserving.Reserve(env, "k", true, age(2))
	if n := read(3, age(2)); n != 0 {
		t.Errorf("a read behind an older one has %d answers", n)
	}
	if n := read(4, age(1)); n != 1 {
		t.Errorf("a read of the oldest has %d answers", n)
	}
	env.Begin(env.Now + turnFor*s.cfg.RoundTrip)
	s.sweepClaims(env)
	if n := answers(env, true); n != 1 || s.reserving.waits != 0 {
		t.Errorf("after a round trip %d are told to ask again, %d wait", n, s.reserving.waits)
	}
}

// answers counts what reads are answered.
func answers(env *protocol.Env[store.Message], queued bool) (n int) {
	for _, e := range env.Out {
		if m, ok := e.Msg.(store.ReadReply); ok && m.Queued == queued {
			n++
		}
	}
	return n
}

// TestClientWaitsForItsTurn: a client that is told that it is not its turn asks again, and takes
// nobody else's answer meanwhile.
func TestClientWaitsForItsTurn(t *testing.T) {
	layout := storedeploy.Layout(3, 1)
	c, err := newClient(store.Config{ID: 200, Layout: layout}, basicMode)
	if err != nil {
		t.Fatal(err)
	}
	var asked []protocol.ID
	var got []store.Got
	say := func(from protocol.ID, m store.Message) {
		env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
		c.Receive(env, from, m)
		asked = nil
		for _, e := range env.Out {
			switch m := e.Msg.(type) {
			case store.ReadRequest:
				asked = append(asked, e.To)
			case store.Got:
				got = append(got, m)
			}
		}
	}
	c.Start(protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1))), nil)
	say(protocol.App, store.Get{Ref: 1, Key: "k", Priority: store.Priority{Began: 5, Client: 1}})
	lead := layout.Sites[layout.FirstOf(0)].Shards[0]
	for _, s := range layout.Sites {
		if id := s.Shards[0]; id != lead {
			say(id, store.ReadReply{Ref: 1})
		}
	}
	for range maxQueued {
		if say(lead, store.ReadReply{Ref: 1, Queued: true}); len(got) > 0 || !slices.Equal(asked, []protocol.ID{lead}) {
			t.Fatalf("told to ask again it asks %v, and has %v", asked, got)
		}
	}
	if say(lead, store.ReadReply{Ref: 1, Queued: true}); len(got) != 1 || !got[0].OK {
		t.Errorf("told so for long it has %v", got)
	}
}

package layered

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storedeploy"
)

// calling returns the servers of a shard, and what has a coordinator call the first of them.
func calling(t *testing.T) (servers []protocol.ID, begin func(seed uint64) (*coordinator, *protocol.Env[store.Message],
	uint64)) {
	t.Helper()
	layout := storedeploy.Layout(3, 1)
	for _, s := range layout.Sites {
		servers = append(servers, s.Shards[0])
	}
	return servers, func(seed uint64) (c *coordinator, env *protocol.Env[store.Message], ref uint64) {
		c, err := newCoordinator(store.Config{ID: layout.Sites[0].Coordinators[0], Layout: layout, RoundTrip: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		env = protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(seed, 1)))
		env.Begin(time.Minute)
		c.Start(env, nil)
		txn := store.Txn{ID: store.TxnID{Time: 1, Client: 1}, Writes: []store.Write{{Key: "k"}}}
		c.Receive(env, 200, store.CommitRequest{Txn: txn})
		to, ref, _ := lastAsk(env)
		if to != servers[0] {
			t.Fatalf("server %d is asked first, want %d, which is near", to, servers[0])
		}
		return c, env, ref
	}
}

// TestCalls has servers answer a coordinator's call in ways that seldom come about.
func TestCalls(t *testing.T) {
	servers, begin := calling(t)
	a, b, other := servers[0], servers[1], servers[2]
	for _, tc := range []struct {
		name string
		do   func(c *coordinator, env *protocol.Env[store.Message], ref uint64)
		want protocol.ID // who is asked; 0: nobody, yet
	}{
		{"it names the leader", func(c *coordinator, env *protocol.Env[store.Message], ref uint64) {
			c.Receive(env, a, elsewhere{ref, b})
		}, b},
		{"it knows no leader", func(c *coordinator, env *protocol.Env[store.Message], ref uint64) {
			c.Receive(env, a, elsewhere{Ref: ref})
		}, 0},
		{"it names a node that is no server", func(c *coordinator, env *protocol.Env[store.Message], ref uint64) {
			c.Receive(env, a, elsewhere{ref, 999})
		}, 0},
		{"another server than the one that was asked names a leader",
			func(c *coordinator, env *protocol.Env[store.Message], ref uint64) {
				c.Receive(env, other, elsewhere{ref, b})
			}, 0},
		{"it is silent", func(c *coordinator, env *protocol.Env[store.Message], ref uint64) {
			c.Expire(env, againTimer{ref})
		}, b},
		{"the next one names the one that was silent",
			func(c *coordinator, env *protocol.Env[store.Message], ref uint64) {
				c.Expire(env, againTimer{ref})
				env.Begin(time.Minute)
				c.Receive(env, b, elsewhere{ref, a})
			}, 0},
		{"both others name the one that was silent: they may not have missed it yet",
			func(c *coordinator, env *protocol.Env[store.Message], ref uint64) {
				c.Expire(env, againTimer{ref})
				for _, id := range []protocol.ID{b, other} {
					c.Receive(env, id, elsewhere{ref, a})
					env.Begin(time.Minute)
					c.Expire(env, againTimer{ref})
				}
			}, b},
		{"they name it again: it was but slow",
			func(c *coordinator, env *protocol.Env[store.Message], ref uint64) {
				c.Expire(env, againTimer{ref})
				for _, id := range []protocol.ID{b, other, b, other} {
					c.Receive(env, id, elsewhere{ref, a})
					env.Begin(time.Minute)
					c.Expire(env, againTimer{ref})
				}
			}, a},
		{"the others say for long that nobody leads",
			func(c *coordinator, env *protocol.Env[store.Message], ref uint64) {
				c.Expire(env, againTimer{ref})
				for i := 0; i < 9 && c.calls.calls[ref].to != a; i++ {
					c.Receive(env, c.calls.calls[ref].to, elsewhere{Ref: ref})
					env.Begin(time.Minute)
					c.Expire(env, againTimer{ref})
				}
			}, a},
		{"it answers after all, and is followed to again",
			func(c *coordinator, env *protocol.Env[store.Message], ref uint64) {
				c.Expire(env, againTimer{ref})
				for _, id := range []protocol.ID{b, other, b, other} {
					c.Receive(env, id, elsewhere{ref, a})
					c.Expire(env, againTimer{ref})
				}
				c.Receive(env, a, elsewhere{ref, b})
				env.Begin(time.Minute)
				c.Receive(env, b, elsewhere{ref, a})
			}, a},
		{"the connection to it breaks when the one before was left out often enough",
			func(c *coordinator, env *protocol.Env[store.Message], ref uint64) {
				c.Expire(env, againTimer{ref})
				for range 9 {
					if c.calls.calls[ref].to == a {
						break
					}
					c.Receive(env, c.calls.calls[ref].to, elsewhere{Ref: ref})
					c.Expire(env, againTimer{ref})
				}
				c.Broken(env, a)
				for range 2 {
					c.Receive(env, c.calls.calls[ref].to, elsewhere{Ref: ref})
					env.Begin(time.Minute)
					c.Expire(env, againTimer{ref})
				}
			}, b},
		{"while nobody leads, the others are asked again",
			func(c *coordinator, env *protocol.Env[store.Message], ref uint64) {
				c.Expire(env, againTimer{ref})
				for range 2 {
					c.Receive(env, c.calls.calls[ref].to, elsewhere{Ref: ref})
					env.Begin(time.Minute)
					c.Expire(env, againTimer{ref})
				}
			}, b},
		{"the connection to it breaks", func(c *coordinator, env *protocol.Env[store.Message], _ uint64) {
			c.Broken(env, a)
		}, b},
		{"another connection breaks", func(c *coordinator, env *protocol.Env[store.Message], _ uint64) {
			c.Broken(env, other)
		}, 0},
	} {
		c, env, ref := begin(1)
		env.Begin(time.Minute)
		tc.do(c, env, ref)
		if to, again, ok := lastAsk(env); ok != (tc.want != 0) || to != tc.want || ok && again != ref {
			t.Errorf("%s: server %d is asked with %d, want %d with %d", tc.name, to, again, tc.want, ref)
		}
	}
}

// TestCallsGoOn: what servers say of each other is not followed for ever, and only their own
// answers count.
func TestCallsGoOn(t *testing.T) {
	servers, begin := calling(t)
	a, b, other := servers[0], servers[1], servers[2]
	c, env, ref := begin(1)
	for range 100 { // two servers name each other
		env.Begin(time.Minute)
		c.Receive(env, c.calls.calls[ref].to, elsewhere{ref, a + b - c.calls.calls[ref].to})
	}
	if _, _, ok := lastAsk(env); ok {
		t.Error("a call follows what servers say of each other for ever")
	}
	env.Begin(time.Minute)
	c.Receive(env, 999, told{Ref: ref, Result: result{State: committed}})
	if len(c.calls.calls) != 1 {
		t.Error("a stranger's answer counts")
	}
	c.Receive(env, other, told{Ref: ref, Result: result{State: committed}})
	if len(c.calls.calls)+len(c.entries) != 0 {
		t.Errorf("%d calls and %d transactions are left after the answer", len(c.calls.calls), len(c.entries))
	}
	if _, _, later := begin(2); later == ref {
		t.Error("the calls of another incarnation have the same names: late answers would count")
	}
}

// TestCallWaits: a server that says that a transaction waits answers later, and is asked again if
// it has not when it should have. Only then it may be silent. Others' words do not count.
func TestCallWaits(t *testing.T) {
	servers, begin := calling(t)
	c, env, ref := begin(1)
	for _, from := range []protocol.ID{servers[1], servers[0]} {
		env.Begin(time.Minute)
		c.Receive(env, from, told{Ref: ref, Result: result{State: waiting}})
		var wait time.Duration
		for _, e := range env.Out {
			if e.Timer == (againTimer{ref}) {
				wait = e.Delay
			}
		}
		if want := from == servers[0]; want != (wait == (callPatience+longestWait)*time.Second) {
			t.Errorf("after server %d has said that the transaction waits, it is asked again after %v", from, wait)
		}
	}
	for try, want := range []protocol.ID{servers[0], servers[1]} { // it led, and is silent from now on
		env.Begin(time.Minute)
		c.Expire(env, againTimer{ref})
		if to, _, _ := lastAsk(env); to != want {
			t.Errorf("when no answer has come, server %d is asked in try %d, want %d", to, try, want)
		}
	}
	c.Receive(env, servers[0], told{Ref: ref, Result: result{State: committed}})
	if len(c.calls.calls)+len(c.entries) != 0 {
		t.Error("the later answer does not count")
	}
}

// TestNobodyIsOldForEver: what a client says of its transaction's age counts only as far back as
// transactions are remembered, be it the priority or the name that says so.
func TestNobodyIsOldForEver(t *testing.T) {
	const now = uint64(time.Hour)
	for _, tc := range []struct{ id, began, want uint64 }{
		{now, now, now}, {now, now - uint64(time.Second), now - uint64(time.Second)}, {now, 0, 0}, {now, 1, now}, {2, 0, now},
	} {
		_, begin := calling(t)
		c, env, _ := begin(1)
		env.Begin(time.Hour)
		txn := store.Txn{ID: store.TxnID{Time: tc.id, Client: 7}, Priority: store.Priority{Began: tc.began, Client: 7},
			Writes: []store.Write{{Key: "k"}}}
		if tc.began == 0 {
			txn.Priority = store.Priority{}
		}
		c.Receive(env, 200, store.CommitRequest{Txn: txn})
		for _, k := range c.calls.calls {
			if m := k.command.(prepare); m.Txn.ID == txn.ID && m.Txn.Priority.Began != tc.want {
				t.Errorf("transaction %d that began at %d is prepared as of %d, want %d", tc.id, tc.began, m.Txn.Priority.Began,
					tc.want)
			}
		}
		if len(c.entries) != 2 {
			t.Errorf("%d transactions are under way, want 2", len(c.entries))
		}
	}
}

// lastAsk returns who was asked last in a call of the coordinator's.
func lastAsk(env *protocol.Env[store.Message]) (to protocol.ID, ref uint64, ok bool) {
	for _, e := range env.Out {
		if m, is := e.Msg.(ask); is {
			to, ref, ok = e.To, m.Ref, true
		}
	}
	return to, ref, ok
}

package kit

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storedeploy"
)

// asked is what is sent for a call.
type asked struct{ ref uint64 }

// calling returns the servers of a shard, and what makes a call that the first of them is asked.
func calling(t *testing.T) (servers []protocol.ID, begin func(seed uint64) (*GroupCalls, *protocol.Env[store.Message],
	uint64)) {
	t.Helper()
	layout := storedeploy.Layout(3, 1)
	for _, s := range layout.Sites {
		servers = append(servers, s.Shards[0])
	}
	return servers, func(seed uint64) (*GroupCalls, *protocol.Env[store.Message], uint64) {
		c := NewGroupCalls(store.Config{Layout: layout, RoundTrip: time.Second}, 0,
			func(ref uint64, _ *GroupCall) store.Message { return asked{ref} })
		env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(seed, 1)))
		env.Begin(time.Minute)
		c.Start(env)
		c.Ask(env, GroupCall{ID: store.TxnID{Time: 1, Client: 1}})
		to, ref, _ := lastAsked(env)
		if to != servers[0] {
			t.Fatalf("server %d is asked first, want %d, which is near", to, servers[0])
		}
		return &c, env, ref
	}
}

// TestGroupCalls has servers answer a call in ways that seldom come about.
func TestGroupCalls(t *testing.T) {
	servers, begin := calling(t)
	a, b, other := servers[0], servers[1], servers[2]
	for _, tc := range []struct {
		name string
		do   func(c *GroupCalls, env *protocol.Env[store.Message], ref uint64)
		want protocol.ID // who is asked; 0: nobody, yet
	}{
		{"it names the leader", func(c *GroupCalls, env *protocol.Env[store.Message], ref uint64) {
			c.Elsewhere(env, a, Elsewhere{ref, b})
		}, b},
		{"it knows no leader", func(c *GroupCalls, env *protocol.Env[store.Message], ref uint64) {
			c.Elsewhere(env, a, Elsewhere{ref, 0})
		}, 0},
		{"it names a node that is no server", func(c *GroupCalls, env *protocol.Env[store.Message], ref uint64) {
			c.Elsewhere(env, a, Elsewhere{ref, 999})
		}, 0},
		{"another server than the one that was asked names a leader",
			func(c *GroupCalls, env *protocol.Env[store.Message], ref uint64) {
				c.Elsewhere(env, other, Elsewhere{ref, b})
			}, 0},
		{"it is silent", func(c *GroupCalls, env *protocol.Env[store.Message], ref uint64) {
			c.Expire(env, GroupCallTimer{ref})
		}, b},
		{"the next one names the one that was silent",
			func(c *GroupCalls, env *protocol.Env[store.Message], ref uint64) {
				c.Expire(env, GroupCallTimer{ref})
				env.Begin(time.Minute)
				c.Elsewhere(env, b, Elsewhere{ref, a})
			}, 0},
		{"both others name the one that was silent: they may not have missed it yet",
			func(c *GroupCalls, env *protocol.Env[store.Message], ref uint64) {
				c.Expire(env, GroupCallTimer{ref})
				for _, id := range []protocol.ID{b, other} {
					c.Elsewhere(env, id, Elsewhere{ref, a})
					env.Begin(time.Minute)
					c.Expire(env, GroupCallTimer{ref})
				}
			}, b},
		{"they name it again: it was but slow",
			func(c *GroupCalls, env *protocol.Env[store.Message], ref uint64) {
				c.Expire(env, GroupCallTimer{ref})
				for _, id := range []protocol.ID{b, other, b, other} {
					c.Elsewhere(env, id, Elsewhere{ref, a})
					env.Begin(time.Minute)
					c.Expire(env, GroupCallTimer{ref})
				}
			}, a},
		{"the others say for long that nobody leads",
			func(c *GroupCalls, env *protocol.Env[store.Message], ref uint64) {
				c.Expire(env, GroupCallTimer{ref})
				for i := 0; i < 9 && c.calls[ref].to != a; i++ {
					c.Elsewhere(env, c.calls[ref].to, Elsewhere{ref, 0})
					env.Begin(time.Minute)
					c.Expire(env, GroupCallTimer{ref})
				}
			}, a},
		{"it answers after all, and is followed to again",
			func(c *GroupCalls, env *protocol.Env[store.Message], ref uint64) {
				c.Expire(env, GroupCallTimer{ref})
				for _, id := range []protocol.ID{b, other, b, other} {
					c.Elsewhere(env, id, Elsewhere{ref, a})
					c.Expire(env, GroupCallTimer{ref})
				}
				c.Elsewhere(env, a, Elsewhere{ref, b})
				env.Begin(time.Minute)
				c.Elsewhere(env, b, Elsewhere{ref, a})
			}, a},
		{"the connection to it breaks when the one before was left out often enough",
			func(c *GroupCalls, env *protocol.Env[store.Message], ref uint64) {
				c.Expire(env, GroupCallTimer{ref})
				for range 9 {
					if c.calls[ref].to == a {
						break
					}
					c.Elsewhere(env, c.calls[ref].to, Elsewhere{ref, 0})
					c.Expire(env, GroupCallTimer{ref})
				}
				c.Broken(env, a)
				for range 2 {
					c.Elsewhere(env, c.calls[ref].to, Elsewhere{ref, 0})
					env.Begin(time.Minute)
					c.Expire(env, GroupCallTimer{ref})
				}
			}, b},
		{"while nobody leads, the others are asked again",
			func(c *GroupCalls, env *protocol.Env[store.Message], ref uint64) {
				c.Expire(env, GroupCallTimer{ref})
				for range 2 {
					c.Elsewhere(env, c.calls[ref].to, Elsewhere{ref, 0})
					env.Begin(time.Minute)
					c.Expire(env, GroupCallTimer{ref})
				}
			}, b},
		{"the connection to it breaks", func(c *GroupCalls, env *protocol.Env[store.Message], _ uint64) {
			c.Broken(env, a)
		}, b},
		{"another connection breaks", func(c *GroupCalls, env *protocol.Env[store.Message], _ uint64) {
			c.Broken(env, other)
		}, 0},
	} {
		c, env, ref := begin(1)
		env.Begin(time.Minute)
		tc.do(c, env, ref)
		if to, again, ok := lastAsked(env); ok != (tc.want != 0) || to != tc.want || ok && again != ref {
			t.Errorf("%s: server %d is asked with %d, want %d with %d", tc.name, to, again, tc.want, ref)
		}
	}
}

// TestGroupCallsGoOn: what servers say of each other is not followed for ever, and only their own
// answers count.
func TestGroupCallsGoOn(t *testing.T) {
	servers, begin := calling(t)
	a, b, other := servers[0], servers[1], servers[2]
	c, env, ref := begin(1)
	for range 100 { // two servers name each other
		env.Begin(time.Minute)
		c.Elsewhere(env, c.calls[ref].to, Elsewhere{ref, a + b - c.calls[ref].to})
	}
	if _, _, ok := lastAsked(env); ok {
		t.Error("a call follows what servers say of each other for ever")
	}
	env.Begin(time.Minute)
	if _, ok := c.Answered(env, 999, ref); ok || c.Len() != 1 {
		t.Error("a stranger's answer counts")
	}
	if k, ok := c.Answered(env, other, ref); !ok || k.ID.IsZero() || c.Len() != 0 {
		t.Errorf("a server's answer is to %v (%v), %d calls are left after it", k, ok, c.Len())
	}
	if _, ok := c.Answered(env, other, ref); ok {
		t.Error("an answer counts twice")
	}
	if _, _, later := begin(2); later == ref {
		t.Error("the calls of another incarnation have the same names: late answers would count")
	}
}

// TestGroupCallWaits: a server that says that its answer comes later is asked again if it has not
// come when it should have. Only then the server may be silent. Others' words do not count.
func TestGroupCallWaits(t *testing.T) {
	const longest = 10
	servers, begin := calling(t)
	c, env, ref := begin(1)
	for _, from := range []protocol.ID{servers[1], servers[0]} {
		env.Begin(time.Minute)
		c.Waits(env, from, ref, longest)
		var wait time.Duration
		for _, e := range env.Out {
			if e.Timer == (GroupCallTimer{ref}) {
				wait = e.Delay
			}
		}
		if want := from == servers[0]; want != (wait == (callPatience+longest)*time.Second) {
			t.Errorf("after server %d has said that the answer comes later, it is asked again after %v", from, wait)
		}
	}
	for try, want := range []protocol.ID{servers[0], servers[1]} { // it led, and is silent from now on
		env.Begin(time.Minute)
		c.Expire(env, GroupCallTimer{ref})
		if to, _, _ := lastAsked(env); to != want {
			t.Errorf("when no answer has come, server %d is asked in try %d, want %d", to, try, want)
		}
	}
	if _, ok := c.Answered(env, servers[0], ref); !ok || c.Len() != 0 {
		t.Error("the later answer does not count")
	}
}

// TestGroupCallsOfOthersGoOn: the calls of a transaction can be given up, and others go on.
func TestGroupCallsOfOthersGoOn(t *testing.T) {
	servers, begin := calling(t)
	c, env, ref := begin(1)
	other := store.TxnID{Time: 2, Client: 1}
	c.Ask(env, GroupCall{ID: other})
	_, left, _ := lastAsked(env)
	c.Drop(env, store.TxnID{Time: 1, Client: 1})
	env.Begin(time.Minute)
	c.Expire(env, GroupCallTimer{ref})
	if len(env.Out) != 0 {
		t.Error("what was given up is asked again")
	}
	if k, ok := c.Answered(env, servers[0], left); !ok || k.ID != other {
		t.Errorf("another transaction's call is %v (%v)", k, ok)
	}
}

// groupCallPlants leave out one rule of the calls at a time.
func groupCallPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "a call that is not answered is not made again", Test: "TestGroupCalls",
			Old: "\tk.redirects = 0\n\tc.send(env, t.Ref, k)\n",
			New: "\tk.redirects = 0\n\tif !MUTANT {\n\t\tc.send(env, t.Ref, k)\n\t}\n",
		},
		{
			Name: "calls follow what servers say of each other for ever", Test: "TestGroupCallsGoOn",
			Old: "k.redirects <= maxRedirects {", New: "(k.redirects <= maxRedirects || MUTANT) {",
		},
		{
			Name: "calls follow a follower to the leader that has just been silent", Test: "TestGroupCalls",
			Old: "leader != k.silent &&", New: "(leader != k.silent || MUTANT) &&",
		},
		{
			Name: "a call waits for who was silent while the others elect a leader", Test: "TestGroupCalls",
			Old: "|| k.nobody && k.skipped < maxSkipped):", New: "|| k.nobody && k.skipped < maxSkipped) && !MUTANT:",
		},
		{
			Name: "who was silent is left out for long though the others name it", Test: "TestGroupCalls",
			Old: "(k.skipped < maxNamed ||", New: "(k.skipped < maxNamed || MUTANT && k.skipped < maxSkipped ||",
		},
		{
			Name: "who has answered counts as silent", Test: "TestGroupCalls",
			Old: "\tif from == k.silent {\n", New: "\tif from == k.silent && !MUTANT {\n",
		},
		{
			Name: "who becomes silent is left out less often for what another was", Test: "TestGroupCalls",
			Old: "{ k.silent, k.skipped = id, 0 }",
			New: "{\n\tif k.silent = id; !MUTANT {\n\t\tk.skipped = 0\n\t}\n}",
		},
		{
			Name: "who was silent is never asked again", Test: "TestGroupCalls",
			Old: "\t\tk.skipped++\n", New: "\t\tif !MUTANT {\n\t\t\tk.skipped++\n\t\t}\n",
		},
		{
			Name: "answers to an earlier incarnation count", Test: "TestGroupCallsGoOn",
			Old: "{ c.last = env.Rand.Uint64() }", New: "{\n\tif !MUTANT {\n\t\tc.last = env.Rand.Uint64()\n\t}\n}",
		},
		{
			Name: "who says that the answer comes later is taken to be silent", Test: "TestGroupCallWaits",
			Old: "\t\tk.waits = true\n", New: "\t\tk.waits = !MUTANT\n",
		},
		{
			Name: "who says that the answer comes later is asked again at once", Test: "TestGroupCallWaits",
			Old: "\t\tenv.After(time.Duration(callPatience+longest)*c.roundTrip, GroupCallTimer{ref})\n",
			New: "\t\tif !MUTANT {\n" +
				"\t\t\tenv.After(time.Duration(callPatience+longest)*c.roundTrip, GroupCallTimer{ref})\n\t\t}\n",
		},
		{
			Name: "what is given up takes others along", Test: "TestGroupCallsOfOthersGoOn",
			Old: "\t\tif c.calls[ref].ID == id {\n", New: "\t\tif c.calls[ref].ID == id || MUTANT {\n",
		},
		{
			Name: "a stranger's answer counts", Test: "TestGroupCallsGoOn",
			Old: "\tif k == nil || !slices.Contains(c.layout.ServersOf(int(k.Shard)), from) {\n",
			New: "\tif k == nil || !slices.Contains(c.layout.ServersOf(int(k.Shard)), from) && !MUTANT {\n",
		},
	}
}

// lastAsked returns who was asked last.
func lastAsked(env *protocol.Env[store.Message]) (to protocol.ID, ref uint64, ok bool) {
	for _, e := range env.Out {
		if m, is := e.Msg.(asked); is {
			to, ref, ok = e.To, m.ref, true
		}
	}
	return to, ref, ok
}

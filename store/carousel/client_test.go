package carousel

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
	"github.com/foresay/foresay/store/storedeploy"
)

// TestReads: which answers are enough for a read. The server at the site that leads a partition at
// first may lead no more, and hold what is old: who was told so by an abort asks others, too.
func TestReads(t *testing.T) {
	layout := storedeploy.Layout(3, 1)
	old, current := store.Version{Time: 1, Client: 1}, store.Version{Time: 2, Client: 1}
	again := store.Priority{Began: 1, Client: 1}
	type answer struct {
		site    int
		version store.Version
	}
	for _, tc := range []struct {
		name    string
		mode    variant
		get     store.Get
		answers []answer
		want    store.Version
		ok      bool
	}{
		{"the site that leads it", fastMode, store.Get{}, []answer{{0, old}}, old, true},
		{"another site", fastMode, store.Get{}, []answer{{1, current}}, current, false},
		{"two others", fastMode, store.Get{}, []answer{{1, current}, {2, old}}, current, true},
		{"the nearest", fastMode, store.Get{Nearest: true}, []answer{{1, old}}, old, true},
		{"again, the site that leads it", fastMode, store.Get{Priority: again}, []answer{{0, old}}, old, false},
		{"again, that and another", fastMode, store.Get{Priority: again}, []answer{{0, old}, {1, current}}, current, true},
		{"again, two others", fastMode, store.Get{Priority: again}, []answer{{1, current}, {2, current}}, current, false},
		{"any site", directMode, store.Get{}, []answer{{1, old}}, old, true},
		{"again, any site", directMode, store.Get{Priority: again}, []answer{{1, old}}, old, false},
	} {
		c, err := newClient(store.Config{ID: 200, Layout: layout}, tc.mode)
		if err != nil {
			t.Fatal(err)
		}
		var got []store.Got
		call := func(do func(env *protocol.Env[store.Message])) {
			env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
			do(env)
			for _, e := range env.Out {
				if m, ok := e.Msg.(store.Got); ok {
					got = append(got, m)
				}
			}
		}
		call(func(env *protocol.Env[store.Message]) {
			c.Start(env, nil)
			c.Receive(env, protocol.App, tc.get)
		})
		for _, a := range tc.answers {
			call(func(env *protocol.Env[store.Message]) {
				c.Receive(env, layout.Sites[a.site].Shards[0], store.ReadReply{Ref: 1, Value: store.Value{Version: a.version}})
			})
		}
		switch {
		case len(got) == 1 != tc.ok:
			t.Errorf("%s: %d answers are given", tc.name, len(got))
		case tc.ok && got[0].Value.Version != tc.want:
			t.Errorf("%s: the version is %v, want %v", tc.name, got[0].Value.Version, tc.want)
		}
	}
}

// TestClientThatOnlyDeclaresFindsItsHome: what such a client declares waits until the nearest site
// has answered, and goes by that one's agent; it waits no longer than for a round trip.
func TestClientThatOnlyDeclaresFindsItsHome(t *testing.T) {
	layout := storedeploy.Layout(3, 1)
	const round = 100 * time.Millisecond
	for near := range 3 {
		for _, silent := range []bool{false, true} {
			c, err := newClient(store.Config{ID: 200, Layout: layout, RoundTrip: round}, fastMode)
			if err != nil {
				t.Fatal(err)
			}
			env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
			begun := func() (at []int) {
				for _, e := range env.Out {
					if m, ok := e.Msg.(store.DeclareRequest); ok {
						at = append(at, slices.IndexFunc(layout.Sites, func(s store.Site) bool {
							return e.To == s.Coordinators[0] || slices.Contains(s.Shards, e.To)
						}))
						if len(m.Reads) != 1 {
							t.Errorf("it declares %+v", m)
						}
					}
				}
				return at
			}
			env.Begin(0)
			c.Start(env, nil)
			c.Receive(env, protocol.App, store.Declare{Ref: 1, Reads: []store.Key{"a"}})
			c.Receive(env, protocol.App, store.Declare{Ref: 2, Reads: []store.Key{"b"}})
			c.Receive(env, protocol.App, store.Declare{Ref: 3, Reads: []store.Key{"c"}})
			c.Receive(env, protocol.App, store.Abandon{Ref: 3})
			asked := map[protocol.ID]store.ReadRequest{}
			for _, e := range env.Out {
				if m, ok := e.Msg.(store.ReadRequest); ok {
					asked[e.To] = m
				}
			}
			if len(asked) != 3 || len(begun()) > 0 {
				t.Fatalf("it asks %v, and begins by %v", asked, begun())
			}
			if silent {
				env.Begin(round)
				c.Expire(env, homeTimer{})
				if n := len(begun()); n != 2 {
					t.Errorf("after a round trip %d of 2 are begun", n)
				}
				continue
			}
			server := layout.Sites[near].Shards[0]
			env.Begin(5 * time.Millisecond)
			c.Receive(env, server, store.ReadReply{Ref: asked[server].Ref})
			c.Receive(env, protocol.App, store.Declare{Ref: 4, Reads: []store.Key{"d"}})
			if at := begun(); !slices.Equal(at, []int{near, near, near}) {
				t.Errorf("the nearest site is %d, and it begins by %v", near, at)
			}
		}
	}
}

// TestLateAgentIsNotBlamed: an agent that does not answer for long may wait itself, such as for a
// partition that has no leader. The client stays with it if the site's servers answer, and goes to
// the next site if they do not.
func TestLateAgentIsNotBlamed(t *testing.T) {
	layout := storedeploy.Layout(3, 1)
	const round = 100 * time.Millisecond
	for _, away := range []bool{false, true} {
		c, err := newClient(store.Config{ID: 200, Layout: layout, RoundTrip: round}, fastMode)
		if err != nil {
			t.Fatal(err)
		}
		env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
		now := time.Duration(0)
		// look has the servers answer that the client has asked, the nearest one first.
		look := func(from int) {
			asked := map[protocol.ID]store.ReadRequest{}
			for _, e := range env.Out {
				if m, ok := e.Msg.(store.ReadRequest); ok {
					asked[e.To] = m
				}
			}
			for site := from; site < 3; site++ {
				server := layout.Sites[site].Shards[0]
				if m, ok := asked[server]; ok {
					now += 5 * time.Millisecond
					env.Begin(now)
					c.Receive(env, server, store.ReadReply{Ref: m.Ref})
				}
			}
		}
		env.Begin(now)
		c.Start(env, nil)
		c.Receive(env, protocol.App, store.Declare{Ref: 1, Reads: []store.Key{"a"}})
		look(0)
		declared, _ := c.begun.By(1)
		for i := range declareTries + 1 {
			now += round
			env.Begin(now)
			c.Expire(env, kit.BeatTimer{ID: declared})
			if i == declareTries-1 {
				// the servers have not answered yet
				c.Receive(env, protocol.App, store.Declare{Ref: 2, Reads: []store.Key{"a"}})
			}
			if away {
				look(1)
			} else {
				look(0)
			}
		}
		want := 0
		if away {
			want = 1
		}
		if _, next := c.begun.By(2); c.begun.Len() != 1 || next == nil || next.Site != want {
			t.Fatalf("%+v is under way: what nobody answers is not given up, or the next one is not at %d", c.begun, want)
		}
		c.Receive(env, protocol.App, store.Submit{Ref: 3, Begun: 2, Reads: []store.Read{{Key: "a"}}})
		for s := range c.Submits() {
			c.Expire(env, kit.SubmitTimer{ID: s.Txn.ID})
		}
		look(want)
		if home := c.Home(); home != want {
			t.Errorf("the nearest site is away: %v; the client goes by the agent at %d, want %d", away, home, want)
		}
	}
}

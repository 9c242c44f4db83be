package layered

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

// TestClientStaysWithItsSite: a transaction that is not answered may wait for others. If servers of
// the site answer, its coordinator is asked again, for as long as a wait may take, and the site
// remains the nearest. If they do not, the next one is asked at once.
func TestClientStaysWithItsSite(t *testing.T) {
	layout := storedeploy.Layout(3, 1)
	const round = 100 * time.Millisecond
	for _, test := range []struct {
		name  string
		there func(try int) bool
		asked []int // sites of the coordinators, in order
		home  int
	}{
		{"it is there", func(int) bool { return true }, []int{0, 0, 0, 1}, 1},
		{"it is there once", func(try int) bool { return try == 0 }, []int{0, 0, 1}, 1},
		{"it is not", func(int) bool { return false }, []int{0, 1}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := newClient(store.Config{ID: 200, Layout: layout, RoundTrip: round})
			if err != nil {
				t.Fatal(err)
			}
			env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
			now := time.Duration(0)
			env.Begin(now)
			c.Start(env, nil)
			c.FindHome(env) // site 0 answers first
			for site, s := range layout.Sites {
				for _, e := range env.Out {
					if m, ok := e.Msg.(store.ReadRequest); ok && e.To == s.Shards[0] {
						env.Now = time.Duration(site+1) * time.Millisecond
						c.Receive(env, e.To, store.ReadReply{Ref: m.Ref})
					}
				}
			}
			env.Begin(now)
			var asked []int
			reads := map[protocol.ID]store.ReadRequest{}
			collect := func() (wait time.Duration) {
				clear(reads)
				for _, e := range env.Out {
					if m, ok := e.Msg.(store.ReadRequest); ok {
						reads[e.To] = m
					}
					if _, ok := e.Msg.(store.CommitRequest); ok {
						p, _ := c.Coordinator(e.To)
						asked = append(asked, p.Site)
					}
					if e.Kind == protocol.KindAfter {
						wait = e.Delay
					}
				}
				return wait
			}
			c.Receive(env, protocol.App, store.Submit{Ref: 2, Writes: []store.Write{{Key: "a"}}})
			var id store.TxnID
			for s := range c.Submits() {
				id = s.Txn.ID
			}
			wait := collect()
			for try := 0; asked[len(asked)-1] == 0 && try < 20; try++ {
				if c.Home() != 0 {
					t.Fatalf("after %d tries the nearest site is %d", try, c.Home())
				}
				now += wait
				env.Begin(now)
				c.Expire(env, kit.SubmitTimer{ID: id})
				wait = collect()
				if server := layout.Sites[0].Shards[0]; len(reads) > 0 && test.there(try/2) {
					env.Begin(now + time.Millisecond)
					c.Receive(env, server, store.ReadReply{Ref: reads[server].Ref})
				}
			}
			if !slices.Equal(asked, test.asked) || c.Home() != test.home {
				t.Errorf("coordinators of sites %v are asked, and the nearest is %d, want %v, %d", asked, c.Home(), test.asked,
					test.home)
			}
			if now > (3*8)*round {
				t.Errorf("the next site is asked after %v", now)
			}
		})
	}
}

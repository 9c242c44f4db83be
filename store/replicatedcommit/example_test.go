package replicatedcommit_test

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/replicatedcommit"
	"github.com/foresay/foresay/wan"
)

// Three sites, each with a coordinator and one shard, and a client at the first of them, which
// increments a counter. The read is a round trip to the nearest other site, and so is the commit.
func Example() {
	layout := store.Layout{Sites: []store.Site{
		{Name: "oregon", Coordinators: []protocol.ID{10}, Shards: []protocol.ID{11}},
		{Name: "ireland", Coordinators: []protocol.ID{20}, Shards: []protocol.ID{21}},
		{Name: "seoul", Coordinators: []protocol.ID{30}, Shards: []protocol.ID{31}},
	}}
	const client = 100
	var s *sim.Sim[store.Message]
	var begun time.Duration
	app := func(_ protocol.ID, msg store.Message) {
		switch m := msg.(type) {
		case store.Got:
			fmt.Println("read in", s.Now()-begun, "there:", m.Value.Present)
			var tx store.Buffer
			tx.Saw("counter", m.Value)
			tx.Put("counter", []byte("1"))
			reads, writes := tx.Accesses()
			begun = s.Now()
			s.Deliver(client, store.Submit{Ref: 2, Reads: reads, Writes: writes})
		case store.Done:
			fmt.Println(m.Outcome.Verdict, "in", s.Now()-begun)
		}
	}
	s, err := sim.New(sim.Config[store.Message]{WAN: wan.SpecRPC(), Codec: replicatedcommit.Protocol().Codec, App: app})
	if err != nil {
		fmt.Println(err)
		return
	}
	add := func(id protocol.ID, site string, node func(store.Config) (protocol.Node[store.Message], error)) {
		cfg := store.Config{ID: id, Layout: layout}
		if _, err := node(cfg); err != nil {
			fmt.Println(err)
		}
		err := s.Add(sim.Node[store.Message]{ID: id, Site: wan.Site(site),
			New: func() protocol.Node[store.Message] {
				n, _ := node(cfg)
				return n
			}})
		if err != nil {
			fmt.Println(err)
		}
	}
	for _, site := range layout.Sites {
		add(site.Coordinators[0], site.Name, func(c store.Config) (protocol.Node[store.Message], error) {
			return replicatedcommit.Protocol().NewCoordinator(c)
		})
		add(site.Shards[0], site.Name, func(c store.Config) (protocol.Node[store.Message], error) {
			return replicatedcommit.Protocol().NewServer(c)
		})
	}
	add(client, "oregon", func(c store.Config) (protocol.Node[store.Message], error) {
		return replicatedcommit.Protocol().NewClient(c)
	})
	s.After(time.Second, func() {
		begun = s.Now()
		s.Deliver(client, store.Get{Ref: 1, Key: "counter"})
	})
	if err := s.Run(2 * time.Second); err != nil {
		fmt.Println(err)
	}
	// Output:
	// read in 122ms there: false
	// committed in 122ms
}

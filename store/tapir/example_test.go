package tapir_test

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/tapir"
	"github.com/foresay/foresay/wan"
)

// Three sites with two shards, and a client at the first of them, which writes to both: all six
// servers are asked at once.
func Example() {
	layout := store.Layout{Sites: []store.Site{
		{Name: "oregon", Coordinators: []protocol.ID{10}, Shards: []protocol.ID{11, 12}},
		{Name: "ireland", Coordinators: []protocol.ID{20}, Shards: []protocol.ID{21, 22}},
		{Name: "seoul", Coordinators: []protocol.ID{30}, Shards: []protocol.ID{31, 32}},
	}}
	p := tapir.Protocol()
	app := func(_ protocol.ID, msg store.Message) {
		if d, ok := msg.(store.Done); ok {
			fmt.Println(d.Outcome.Verdict)
		}
	}
	s, err := sim.New(sim.Config[store.Message]{WAN: wan.SpecRPC(), Codec: p.Codec, App: app})
	if err != nil {
		fmt.Println(err)
		return
	}
	add := func(id protocol.ID, site string, node func(store.Config) (protocol.Node[store.Message], error)) {
		err := s.Add(sim.Node[store.Message]{ID: id, Site: wan.Site(site), New: func() protocol.Node[store.Message] {
			n, err := node(store.Config{ID: id, Layout: layout})
			if err != nil {
				panic(err)
			}
			return n
		}})
		if err != nil {
			fmt.Println(err)
		}
	}
	for _, site := range layout.Sites {
		add(site.Coordinators[0], site.Name, p.NewCoordinator)
		for _, id := range site.Shards {
			add(id, site.Name, p.NewServer)
		}
	}
	const client = 100
	add(client, "oregon", func(cfg store.Config) (protocol.Node[store.Message], error) { return p.NewClient(cfg) })
	s.After(2*time.Second, func() {
		writes := []store.Write{{Key: "a", Bytes: []byte("1")}, {Key: "b", Bytes: []byte("2")}}
		s.Deliver(client, store.Submit{Ref: 1, Writes: writes})
	})
	if err := s.Run(4 * time.Second); err != nil {
		fmt.Println(err)
	}
	// Output: committed
}

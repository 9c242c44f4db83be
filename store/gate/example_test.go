package gate_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/gate"
)

// A client's read goes to the site's server of the key's shard, and the answer back.
func Example() {
	layout := store.Layout{Sites: []store.Site{{Name: "here", Coordinators: []protocol.ID{1}, Shards: []protocol.ID{2}}}}
	g, err := gate.New(store.Config{ID: 3, Layout: layout}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	g.Start(env, nil)
	env.Begin(0)
	g.Receive(env, protocol.App, gate.Read{Ref: 7, Key: "k"})
	sent := env.Out[len(env.Out)-1]
	fmt.Println("node", sent.To, "is asked for", sent.Msg.(store.ReadRequest).Key)

	reply := store.ReadReply{Ref: sent.Msg.(store.ReadRequest).Ref, Value: store.Value{Present: true, Bytes: []byte("v")}}
	env.Begin(0)
	g.Receive(env, sent.To, reply)
	done := env.Out[len(env.Out)-1].Msg.(gate.ReadDone)
	fmt.Printf("call %d has the answer %s\n", done.Ref, done.Reply.Value.Bytes)
	// Output:
	// node 2 is asked for k
	// call 7 has the answer v
}

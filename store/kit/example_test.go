package kit_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// What this client keeps of a read and of a transaction is what the books need, and nothing else.
type (
	get    struct{ kit.Get }
	submit struct{ kit.Submit }
)

// A client asks the one server there is, whose answer is what the application gets.
func Example() {
	layout := store.Layout{Sites: []store.Site{{Name: "a", Coordinators: []protocol.ID{10}, Shards: []protocol.ID{11}}}}
	calls, err := kit.NewCalls[*get, *submit](store.Config{ID: 99, Layout: layout, MaxWaiting: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	env := protocol.NewEnv[store.Message](nil, 99, rand.New(rand.NewPCG(1, 1)))
	env.Begin(time.Second)
	calls.Begin(env)

	g := new(get)
	if calls.AddGet(env, store.Get{Ref: 7, Key: "k"}, g) {
		env.Send(11, store.ReadRequest{Ref: g.Number, Key: g.Ask.Key})
	}
	reply := store.ReadReply{Ref: g.Number, Value: store.Value{Present: true, Bytes: []byte("v")}}
	if g, place := calls.GetOf(11, reply); g != nil {
		got, answers := g.Answer(place.Site, reply)
		calls.EndGet(env, g, got)
		fmt.Printf("read %d: %q, after %d answer\n", got.Ref, got.Value.Bytes, answers)
	}
	fmt.Println("it is open:", calls.Get(g.Number) != nil)
	// Output:
	// read 7: "v", after 1 answer
	// it is open: false
}

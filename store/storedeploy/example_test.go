package storedeploy_test

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/sim/deploy"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storedeploy"
	"github.com/foresay/foresay/wan"
)

// What a client in Oregon waits for when it writes a key that nobody else uses, on any protocol.
func Example() {
	network := wan.SpecRPC()
	for _, name := range []string{"replicatedcommit", "layered", "tapir"} {
		p, err := catalog.Store(name)
		if err != nil {
			fmt.Println(err)
			return
		}
		s, err := storedeploy.New(storedeploy.Config{
			Protocol: p, Layout: storedeploy.Layout(3, 1), Clients: []wan.Site{"oregon"},
			Sim: sim.Config[store.Message]{WAN: network},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = s.Pass(5 * time.Second) // to elect
		s.Call(s.Clients[0], func(ref uint64) store.Message {
			return store.Submit{Ref: ref, Writes: []store.Write{{Key: "city", Bytes: []byte("Oslo")}}}
		}, func(a deploy.Answer[store.Message]) {
			fmt.Println(name, a.Msg.(store.Done).Outcome.Verdict, a.Took.Round(time.Millisecond))
		})
		if err := s.Pass(5 * time.Second); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// replicatedcommit committed 122ms
	// layered committed 402ms
	// tapir committed 383ms
}

package storetest_test

import (
	"fmt"
	"iter"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/layered"
	"github.com/foresay/foresay/store/storetest"
)

// Clients make transactions for six seconds while connections are lost, and all are judged.
func ExamplePlayOnce() {
	subject := storetest.Subject{
		Protocol: layered.Protocol(), Package: "./store/layered", Settle: 2 * time.Second,
		// a test within the package looks into the server
		Values: func(protocol.Node[store.Message], protocol.Keys) iter.Seq2[store.Key, store.Value] {
			return func(func(store.Key, store.Value) bool) {}
		},
		Left: func(protocol.Node[store.Message]) string { return "" },
	}
	w, err := storetest.PlayOnce(subject, storetest.Scenario{Seed: 1, Clients: 3, Keys: 4, Faults: sim.Reset})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("some are committed:", w.Verdicts[store.Committed] > 10)
	// Output: some are committed: true
}

package fastpaxos_test

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/fastpaxos"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/smrsim"
)

// Three replicas, and a client beside the first one, in a simulation.
func Example() {
	group, err := smrsim.New(smrsim.Config{
		Protocol: fastpaxos.Protocol(),
		Replica:  func(c *smr.ReplicaConfig) { c.Machine = kv.New() },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	show := func(a smrsim.Answer) {
		result, _ := kv.DecodeResult(a.Result)
		fmt.Printf("call %d %v, %v %q\n", a.ID, a.Outcome, result.Status, result.Value)
	}
	client := group.Client("a")
	group.Make(client, smr.Call{Kind: smr.Execute, Command: kv.Put([]byte("city"), []byte("Oslo"))}, show)
	_ = group.Pass(time.Second)
	group.Make(client, smr.Call{Kind: smr.Read, Command: kv.Get([]byte("city"))}, show)
	_ = group.Pass(time.Second)
	// Output:
	// call 1 committed, ok ""
	// call 2 committed, ok "Oslo"
}

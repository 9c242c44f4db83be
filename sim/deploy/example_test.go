package deploy_test

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/sim/deploy"
	"github.com/foresay/foresay/wan"
)

// A node answers what another one's application asks, 40 ms away.
func Example() {
	d, err := deploy.New(deploy.Config[question]{Answers: answers,
		Sim: sim.Config[question]{WAN: wan.Uniform(40*time.Millisecond, "here", "there")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = d.Add(1, "there", func() (protocol.Node[question], error) { return oracle{1}, nil })
	_ = d.Add(2, "here", func() (protocol.Node[question], error) { return forwarder{}, nil })
	d.Call(2, func(n uint64) question { return question{n: n} }, func(a deploy.Answer[question]) {
		fmt.Println("call", a.Call, "took", a.Took)
	})
	fmt.Println(d.Pass(time.Second))
	// Output:
	// call 1 took 40ms
	// <nil>
}

package replicated_test

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/bench/replicated"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/wan"
)

func ExampleLatency() {
	network, err := wan.Preset("na3")
	if err != nil {
		fmt.Println(err)
		return
	}
	sites, err := replicated.Latency(replicated.Setting{
		Protocol: raft.Protocol(), WAN: network, Seed: 1, Ack: smr.AckDurable, Every: 100 * time.Millisecond,
	}, time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("a write from", sites[0].Site, "takes", sites[0].Calls[0].Took)
	// Output: a write from VA takes 134ms
}

package fastpaxos_test

import (
	"fmt"

	"github.com/foresay/foresay/smr/fastpaxos"
	"github.com/foresay/foresay/smr/smrtest"
)

// The replicas are in Washington, Virginia and Quebec. All vote at once; the command is executed
// when the coordinator, in Washington, has heard all three votes.
func Example() {
	fmt.Println(smrtest.Waits(fastpaxos.Protocol(), "na3", "WA", "TX"))
	// Output: WA 68ms, TX 80.5ms <nil>
}

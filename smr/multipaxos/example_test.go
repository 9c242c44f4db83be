package multipaxos_test

import (
	"fmt"

	"github.com/foresay/foresay/smr/multipaxos"
	"github.com/foresay/foresay/smr/smrtest"
)

// The replicas are in Washington, Virginia and Quebec, and the first one leads: the client beside
// it waits for its round trip to a majority, the one in Texas for its way to the leader too.
func Example() {
	fmt.Println(smrtest.Waits(multipaxos.Protocol(), "na3", "WA", "TX"))
	// Output: WA 67ms, TX 109ms <nil>
}

package epaxos_test

import (
	"fmt"

	"github.com/foresay/foresay/smr/epaxos"
	"github.com/foresay/foresay/smr/smrtest"
)

// The replicas are in Washington, Virginia and Quebec. Each client asks the next one; a command
// that conflicts with nothing takes that one's round trip to the nearest other.
func Example() {
	fmt.Println(smrtest.Waits(epaxos.Protocol(), "na3", "WA", "TX"))
	// Output: WA 67ms, TX 65ms <nil>
}

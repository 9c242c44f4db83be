package domino_test

import (
	"fmt"

	"github.com/foresay/foresay/smr/domino"
	"github.com/foresay/foresay/smr/smrtest"
)

// The replicas are in Washington, Virginia and Quebec. All vote for the command in the slot of a
// time at which they can have it; the replica next to the client executes it when it has heard all
// three votes and that nothing can be below.
func Example() {
	fmt.Println(smrtest.Waits(domino.Direct(), "na3", "WA", "TX"))
	// Output: WA 68.2ms, TX 72.500016ms <nil>
}

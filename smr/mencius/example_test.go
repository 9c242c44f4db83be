package mencius_test

import (
	"fmt"

	"github.com/foresay/foresay/smr/mencius"
	"github.com/foresay/foresay/smr/smrtest"
)

// The replicas are in Washington, Virginia and Quebec. Each client asks the next one, which has the
// command executed when the owners of the slots before have said that they skip those.
func Example() {
	fmt.Println(smrtest.Waits(mencius.Protocol(), "na3", "WA", "TX"))
	// Output: WA 68ms, TX 65ms <nil>
}

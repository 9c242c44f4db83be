package replicatedcommit_test

import (
	"fmt"

	"github.com/foresay/foresay/store/replicatedcommit"
	"github.com/foresay/foresay/store/storetest"
)

// The read is a round trip to the nearest other site, and so is the commit.
func Example() {
	fmt.Println(storetest.Waits(replicatedcommit.Protocol()))
	// Output: a read takes 122ms, a transaction 122ms <nil>
}

package layered_test

import (
	"fmt"

	"github.com/foresay/foresay/store/layered"
	"github.com/foresay/foresay/store/storetest"
)

// A commit is two decisions of groups, one after the other, whose leaders may be anywhere.
func Example() {
	fmt.Println(storetest.Waits(layered.Protocol()))
	// Output: a read takes 0s, a transaction 402ms <nil>
}

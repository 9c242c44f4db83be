package carousel_test

import (
	"fmt"

	"github.com/foresay/foresay/store/carousel"
	"github.com/foresay/foresay/store/storetest"
)

// A commit has all groups agree side by side: the partitions' and the coordinator's.
func Example() {
	fmt.Println(storetest.Waits(carousel.Protocol()))
	// Output: a read takes 0s, a transaction 280ms <nil>
}

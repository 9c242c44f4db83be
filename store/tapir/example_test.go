package tapir_test

import (
	"fmt"

	"github.com/foresay/foresay/store/storetest"
	"github.com/foresay/foresay/store/tapir"
)

// A read is the nearest server's answer, and a commit asks all servers at once.
func Example() {
	fmt.Println(storetest.Waits(tapir.Protocol()))
	// Output: a read takes 0s, a transaction 140ms <nil>
}

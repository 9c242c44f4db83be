package str_test

import (
	"fmt"

	"github.com/foresay/foresay/store/str"
)

// The protocol is a value, and so is each of its modes.
func Example() {
	p := str.Protocol()
	fmt.Println(p.Title(), p.Promises())
	base, err := p.In("clocksi-rep")
	fmt.Println(base.Title(), err)
	// Output:
	// str in mode internal session snapshot isolation
	// str in mode clocksi-rep <nil>
}

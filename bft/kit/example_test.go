package kit_test

import (
	"fmt"

	"github.com/foresay/foresay/bft/kit"
)

func Example() {
	w := kit.Wanted{}
	fmt.Println(w.None())
	// Output: true
}

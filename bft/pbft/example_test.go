package pbft_test

import (
	"fmt"

	"github.com/foresay/foresay/bft/pbft"
)

func Example() {
	fmt.Println(pbft.Protocol().Name)
	// Output: pbft
}

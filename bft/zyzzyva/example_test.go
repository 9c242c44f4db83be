package zyzzyva_test

import (
	"fmt"

	"github.com/foresay/foresay/bft/zyzzyva"
)

func Example() {
	fmt.Println(zyzzyva.Protocol().Name)
	// Output: zyzzyva
}

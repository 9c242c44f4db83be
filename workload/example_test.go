package workload_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/foresay/foresay/workload"
)

func ExampleRetwis() {
	keys, err := workload.Zipfian(10_000_000, 0.75)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := rand.New(rand.NewPCG(1, 3))
	txn := workload.Retwis{Keys: keys}.Next(r)
	fmt.Println(txn.Name, len(txn.Ops) > 0)
	// Output: load-timeline true
}

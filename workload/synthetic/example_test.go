package synthetic_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/foresay/foresay/workload/synthetic"
)

// memory is a store of one transaction.
type memory map[string][]byte

func (m memory) Get(_ context.Context, key string) (value []byte, ok bool, err error) {
	value, ok = m[key]
	return value, ok, nil
}

func (m memory) Put(key string, value []byte) error {
	m[key] = value
	return nil
}

// A client of the server that has partition 4 makes a transaction. Its site has replicas of the
// partitions 1 and 2, which other sites master.
func Example() {
	client := synthetic.Client{Config: synthetic.Paper(synthetic.High, synthetic.Low), Own: 4, Others: []int{1, 2}}
	if err := client.Check(); err != nil {
		fmt.Println(err)
		return
	}
	txn := client.Next(rand.New(rand.NewPCG(1, 2)))
	own := 0
	for _, key := range txn.Keys {
		if p, ok := synthetic.Home(key); ok && p == client.Own {
			own++
		}
	}
	store := memory{}
	if err := txn.Run(context.Background(), store); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(txn.Keys), "keys,", own, "of the own partition,", len(store), "are written")
	fmt.Println(synthetic.Check(context.Background(), store, txn.Keys, 10))
	// Output:
	// 10 keys, 8 of the own partition, 10 are written
	// <nil>
}

package rubis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/foresay/foresay/workload/rubis"
)

// Users go through a thousand pages of a store that was empty: its rows are made up when they are
// read.
func Example() {
	tables, err := rubis.NewTables(rubis.Scale{Shards: 2, DescriptionBytes: 500, CommentBytes: 300})
	if err != nil {
		panic(err)
	}
	client := rubis.Client{Tables: tables, Shard: 1, Others: []int{0}, RemotePercent: 20}
	if err := client.Check(); err != nil {
		panic(err)
	}
	store := newMemory(tables)
	session, r := client.Session(), rand.New(rand.NewPCG(1, 2))
	var page rubis.Page
	updates, transactions, waits := 0, 0, time.Duration(0)
	for range 1000 {
		txn := session.Next(r, time.Time{}, page)
		tx := store.begin()
		if page, err = txn.Run(context.Background(), tx); err != nil {
			panic(err)
		}
		tx.commit()
		waits += txn.Wait
		if !txn.Static {
			transactions++
		}
		if !txn.ReadOnly {
			updates++
		}
	}
	fmt.Println(updates, "of", transactions, "transactions update, in", waits)
	// Output: 99 of 776 transactions update, in 1h26m7s
}

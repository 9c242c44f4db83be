package tpcc_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/foresay/foresay/workload"
	"github.com/foresay/foresay/workload/tpcc"
)

// A clerk's transactions change a store that was empty: its rows are made up when they are read.
func Example() {
	tables, err := tpcc.NewTables(tpcc.Scale{Warehouses: 1})
	if err != nil {
		panic(err)
	}
	store := memory{tables, workload.Snapshot{}}
	terminal := tpcc.Terminal{Tables: tables, Warehouse: 1, Mix: tpcc.Standard()}
	tx := store.begin()
	if err := terminal.Next(rand.New(rand.NewPCG(1, 2)), time.Time{}).Run(context.Background(), tx); err != nil {
		panic(err)
	}
	taken := tx.writes["w-taken/1"]
	fmt.Println(len(tx.writes), "keys are changed, and the warehouse has taken", string(taken))
	// Output: 4 keys are changed, and the warehouse has taken {"taken":30398319}
}

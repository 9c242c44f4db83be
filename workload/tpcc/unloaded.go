package tpcc

import (
	"context"

	"github.com/foresay/foresay/workload"
)

type (
	// Unloaded is a transaction of a store that the tables were not loaded into.
	Unloaded = workload.Unloaded
	// Snapshot is what a store held by key when nobody wrote, for Check.
	Snapshot = workload.Snapshot
)

// Take is the program of a transaction that reads keys: it returns those that there are.
func Take(ctx context.Context, tx workload.Tx, keys []string) (Snapshot, error) {
	return workload.Take(ctx, tx, keys)
}

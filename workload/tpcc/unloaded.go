package tpcc

import (
	"context"
	"fmt"

	"github.com/foresay/foresay/workload"
)

// Unloaded is a transaction of a store that the tables were not loaded into: it finds the rows of
// the beginning where the store has none.
type Unloaded struct {
	workload.Tx
	Tables *Tables
}

// Get implements workload.Tx.
func (u Unloaded) Get(ctx context.Context, key string) (value []byte, ok bool, err error) {
	if value, ok, err = u.Tx.Get(ctx, key); err == nil && !ok {
		value, ok = u.Tables.Initial(key)
	}
	return value, ok, err
}

// Snapshot is what a store held by key when nobody wrote, for Check.
type Snapshot map[string][]byte

// Take is the program of a transaction that reads keys: it returns those that there are.
func Take(ctx context.Context, tx workload.Tx, keys []string) (Snapshot, error) {
	s := Snapshot{}
	for _, key := range keys {
		value, ok, err := tx.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		if ok {
			s[key] = value
		}
	}
	return s, nil
}

// Get implements workload.Tx.
func (s Snapshot) Get(_ context.Context, key string) (value []byte, ok bool, err error) {
	value, ok = s[key]
	return value, ok, nil
}

// Put implements workload.Tx. A snapshot does not change: it is an error.
func (s Snapshot) Put(key string, _ []byte) error {
	return fmt.Errorf("tpcc: %s of a snapshot is written", key)
}

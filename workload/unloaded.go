package workload

import (
	"context"
	"fmt"
)

// Beginning says what keys hold before the first transaction, as a function of the key: the tables
// of a benchmark do.
type Beginning interface {
	Initial(key string) (value []byte, ok bool)
}

// Unloaded is a transaction of a store that the tables of a benchmark were not loaded into: it
// finds the rows of the beginning where the store has none.
type Unloaded struct {
	Tx
	Tables Beginning
}

// Get implements Tx.
func (u Unloaded) Get(ctx context.Context, key string) (value []byte, ok bool, err error) {
	if value, ok, err = u.Tx.Get(ctx, key); err == nil && !ok {
		value, ok = u.Tables.Initial(key)
	}
	return value, ok, err
}

// Snapshot is what a store held by key when nobody wrote, to be checked.
type Snapshot map[string][]byte

// Take is the program of a transaction that reads keys: it returns those that there are.
func Take(ctx context.Context, tx Tx, keys []string) (Snapshot, error) {
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

// Get implements Tx.
func (s Snapshot) Get(_ context.Context, key string) (value []byte, ok bool, err error) {
	value, ok = s[key]
	return value, ok, nil
}

// Put implements Tx. A snapshot does not change: it is an error.
func (s Snapshot) Put(key string, _ []byte) error {
	return fmt.Errorf("workload: %s of a snapshot is written", key)
}

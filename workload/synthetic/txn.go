package synthetic

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/foresay/foresay/workload"
)

// Txn is a transaction. Its keys are known before it runs, for stores that are told.
type Txn struct {
	Keys       []string // distinct; all are read, and then all are written
	ValueBytes int      // of what is written
}

// Run is the transaction's program. It may run again if the transaction did not commit.
func (t Txn) Run(ctx context.Context, tx workload.Tx) error {
	counts := make([]uint64, len(t.Keys))
	for i, key := range t.Keys {
		var err error
		if counts[i], err = updates(ctx, tx, key); err != nil {
			return err
		}
	}
	for i, key := range t.Keys {
		value := make([]byte, max(t.ValueBytes, MinValueBytes))
		binary.BigEndian.PutUint64(value, counts[i]+1)
		if err := tx.Put(key, value); err != nil {
			return err
		}
	}
	return nil
}

// updates returns how often a key was updated.
func updates(ctx context.Context, tx workload.Tx, key string) (uint64, error) {
	value, ok, err := tx.Get(ctx, key)
	switch {
	case err != nil || !ok:
		return 0, err
	case len(value) < MinValueBytes:
		return 0, fmt.Errorf("synthetic: %s holds %d bytes (want %d or more)", key, len(value), MinValueBytes)
	}
	return binary.BigEndian.Uint64(value), nil
}

// Check reads keys, and returns an error if they do not say that they were updated so often
// altogether. If the keys are all that transactions wrote, that is the number of transactions that
// committed times Config.Keys. Nobody may write meanwhile, unless all is read as of one moment.
func Check(ctx context.Context, tx workload.Tx, keys []string, want uint64) error {
	sum := uint64(0)
	for _, key := range keys {
		n, err := updates(ctx, tx, key)
		if err != nil {
			return err
		}
		sum += n
	}
	if sum != want {
		return fmt.Errorf("synthetic: %d keys say that they were updated %d times, want %d", len(keys), sum, want)
	}
	return nil
}

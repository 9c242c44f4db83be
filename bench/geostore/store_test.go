package geostore

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// fresh is a workload of transactions that read and write keys of their own.
type fresh struct {
	reads, writes int
}

func (f fresh) Next(r *rand.Rand) workload.Txn {
	var t workload.Txn
	base := r.Uint64N(9_000_000)
	for i := range f.reads + f.writes {
		t.Ops = append(t.Ops, workload.Op{Key: base + uint64(i), Read: i < f.reads, Write: i >= f.reads})
	}
	return t
}

// TestUncontendedLatencies: a transaction of n reads takes n+1 round trips to the nearest other site when it waits for each, and two when it guesses.
// Writes are voted on when they are on disk, which takes one sync, or two if another one was under way; and the first read may find its shard syncing
// the client's last transaction.
func TestUncontendedLatencies(t *testing.T) {
	nearest := map[wan.Site]time.Duration{"oregon": 122 * time.Millisecond, "ireland": 140 * time.Millisecond, "seoul": 122 * time.Millisecond}
	for _, c := range []struct {
		mode          client.Mode
		reads, writes int
		trips         int
	}{
		{client.GRPC, 0, 1, 1}, {client.GRPC, 1, 0, 2}, {client.GRPC, 5, 2, 6},
		{client.Off, 5, 2, 6},
		{client.Spec, 0, 1, 1}, {client.Spec, 1, 0, 2}, {client.Spec, 5, 2, 2}, {client.Spec, 25, 25, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			const sync = time.Millisecond
			s, err := Open(t.Context(), Config{Matrix: wan.SpecRPC(), Shards: 3, Keys: 10_000_000, ValueBytes: 64, Sync: sync, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			clients, err := s.Connect(c.mode, 1)
			if err != nil {
				t.Fatal(err)
			}
			played, err := clients.Play(t.Context(), Load{Workload: fresh{c.reads, c.writes}, Seed: 2, Warm: 5 * time.Second, Txns: 12})
			if err != nil {
				t.Error(err)
			}
			for _, txn := range played.Txns {
				least := time.Duration(c.trips) * nearest[txn.Site]
				slack := time.Duration(0)
				if c.writes > 0 {
					least, slack = least+sync, 4*sync
				}
				if len(txn.Attempts) != 1 {
					t.Errorf("%v with %d reads and %d writes, at %s: %d attempts", c.mode, c.reads, c.writes, txn.Site, len(txn.Attempts))
				} else if a := txn.Attempts[0]; a.Took < least || a.Took > least+slack || !a.Committed {
					t.Errorf("%v with %d reads and %d writes, at %s: %+v, want %v to %v", c.mode, c.reads, c.writes, txn.Site, a, least, least+slack)
				} else if a.Reads != c.reads || a.Right != c.reads {
					t.Errorf("%v with %d reads, at %s: %d of %d first answers were right", c.mode, c.reads, txn.Site, a.Right, a.Reads)
				}
			}
			clients.Close()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

package replicatedcommit

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/store"
)

// TestLayouts tests what servers have on disk beside values.
func TestLayouts(t *testing.T) {
	txn := store.Txn{ID: store.Version{Time: 300, Client: 2}, Reads: []store.Read{{Key: "a"}}}
	wiretest.Layouts(t,
		wiretest.Sample("record", recordLayout, stored{
			record: record{hint: 300, known: true, shards: []uint32{1, 2}}, flags: uint64(Committed) | ownKeyBit, txn: txn,
		}, cmp.AllowUnexported(stored{}, record{})),
		wiretest.Sample("debt", debtLayout, debt{since: 300, upto: 400}, cmp.AllowUnexported(debt{})))
}

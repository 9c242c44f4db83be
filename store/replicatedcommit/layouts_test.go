package replicatedcommit

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// TestLayouts tests what servers have on disk beside values.
func TestLayouts(t *testing.T) {
	txn := store.Txn{ID: store.Version{Time: 300, Client: 2}, Reads: []store.Read{{Key: "a"}}}
	wiretest.Layouts(t,
		wiretest.Sample("record", recordLayout, stored{
			record: record{hint: 300, known: true, shards: []uint32{1, 2}}, flags: uint64(committed) | ownKeyBit, txn: txn,
		}, cmp.AllowUnexported(stored{}, record{})),
		wiretest.Sample("catch-up", catchUpLayout, catchUp{
			source: 3, since: 300, from: "key", covers: map[protocol.ID]owing{2: {1, 300, 400}, 3: {4, 5, 6}},
		}, cmp.AllowUnexported(catchUp{}, copyPace{})),
		wiretest.Sample("epochs", epochLayout, epochs{2, 300}, cmp.AllowUnexported(epochs{})),
		wiretest.Sample("source", sourceLayout, source{stage: copyValues, from: "key"},
			cmp.AllowUnexported(source{}, copyPace{})),
		wiretest.Sample("debt", debtLayout, owedRange{since: 300, upto: 400}, cmp.AllowUnexported(owedRange{})))
}

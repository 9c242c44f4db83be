package layered

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/store"
)

// TestLayouts tests what a shard has on disk.
func TestLayouts(t *testing.T) {
	id, all := store.TxnID{Time: 301, Client: 2}, cmp.AllowUnexported(txn{}, books{})
	wiretest.Layouts(t,
		wiretest.Sample("prepared", openLayout, &txn{id: id, state: prepared, shards: []uint32{1, 2},
			writes: []store.Write{{Key: "b"}}}, all),
		wiretest.Sample("awaited", openLayout, &txn{id: id, state: committed, shards: []uint32{1, 2}, awaited: true}, all),
		wiretest.Sample("ended", endedLayout, result{aborted, store.StaleRead}),
		wiretest.Sample("name", idLayout, id),
		wiretest.Sample("books", booksLayout, books{old: 300, first: 4, next: 500}, all))
}

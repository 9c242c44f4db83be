package store

import (
	"testing"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
)

// TestLayouts tests what stores have on disk.
func TestLayouts(t *testing.T) {
	wiretest.Layouts(t,
		wiretest.Sample("value", valueLayout, Value{Version: Version{300, 2}, Present: true, Bytes: []byte("value")}),
		wiretest.Sample("transaction", txnLayout, Txn{
			ID: Version{300, 2}, Priority: Priority{200, 2}, Reads: []Read{{"a", Version{1, 1}}},
			Writes: []Write{{Key: "b", Bytes: []byte("c")}, {Key: "d", Delete: true}},
		}))
}

package layered

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/store"
)

// TestLayouts tests what the snapshot of a shard looks like.
func TestLayouts(t *testing.T) {
	s := newShard(nil)
	s.old = 300
	s.values["a"] = store.Value{Version: store.Version{Time: 300, Client: 2}, Present: true, Bytes: []byte("v")}
	open, past := store.TxnID{Time: 301, Client: 2}, store.TxnID{Time: 299, Client: 1}
	s.txns[open] = &txn{id: open, state: prepared, shards: []uint32{1, 2}, writes: []store.Write{{Key: "b"}}}
	s.lock(s.txns[open])
	s.txns[past] = &txn{id: past, state: committed, awaited: true}
	s.past = []store.TxnID{past}
	wiretest.Layouts(t, wiretest.Sample("snapshot", shardLayout, s,
		cmp.AllowUnexported(shard{}, txn{}, lock{}), cmpopts.IgnoreFields(shard{}, "format", "applied")))
}

package layered

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/store"
	storekit "github.com/foresay/foresay/store/kit"
	"github.com/foresay/foresay/store/storetest"
)

// messages are of all kinds of the protocol's own that are encoded.
func messages() []store.Message {
	id, shards := store.TxnID{Time: 1 << 42, Client: 7}, []uint32{0, 1}
	txn := store.Txn{ID: id, Priority: store.Priority{Began: 5, Client: 6}, Reads: []store.Read{{Key: "k"}},
		Writes: []store.Write{{Key: "l", Bytes: []byte("x")}}}
	return []store.Message{
		grouped{Shard: 1, Grouped: storekit.Grouped{Msg: kit.OpenRequest{Nonce: 3}}}, finish{ID: id, Shards: shards},
		wound{ID: id, Shards: shards}, giveUp{ID: id}, told{Ref: 1, Result: result{State: waiting}},
		prepare{Txn: txn, Shards: shards, Only: true}, prepare{Txn: txn, Shards: shards, Waits: true},
		decide{ID: id, Shards: shards, Commit: true, Anchor: true,
			Reason: store.Old}, done{ID: id},
		check{Shard: 1, Ref: 1 << 42, Txn: store.Txn{ID: id, Reads: []store.Read{{Key: "k", Version: id}}}},
		storekit.Ask{Shard: 1, Ref: 1 << 42, Command: []byte("command")},
		told{Ref: 1 << 42, Result: result{State: aborted, Reason: store.StaleRead}},
		storekit.Elsewhere{Ref: 1 << 42, Leader: 300},
	}
}

func TestCodec(t *testing.T) { wiretest.Codec(t, storetest.Own(codec()), 0, messages()) }

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, codec(), messages()) }

// TestLayouts tests what a shard has on disk.
func TestLayouts(t *testing.T) {
	id, all := store.TxnID{Time: 301, Client: 2}, cmp.AllowUnexported(txn{}, books{})
	wiretest.Layouts(t,
		wiretest.Sample("prepared", openLayout, &txn{id: id, state: prepared, shards: []uint32{1, 2},
			writes: []store.Write{{Key: "b"}}}, all),
		wiretest.Sample("prepared, with an age", openLayout, &txn{id: id, state: prepared, shards: []uint32{1, 2},
			priority: store.Priority{Began: 299, Client: 3}, reads: []store.Read{{Key: "a", Version: id}}}, all),
		wiretest.Sample("waiting", waitLayout, &txn{id: id, state: waiting, shards: []uint32{1}, only: true,
			priority: store.Priority{Began: 299, Client: 3}, writes: []store.Write{{Key: "b"}}}, all),
		wiretest.Sample("awaited", openLayout, &txn{id: id, state: committed, shards: []uint32{1, 2}, awaited: true}, all),
		wiretest.Sample("ended", endedLayout, result{aborted, store.StaleRead}),
		wiretest.Sample("name", idLayout, id),
		wiretest.Sample("books", booksLayout, books{old: 300, first: 4, next: 500}, all))
}

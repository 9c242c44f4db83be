package layered

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/store"
	storekit "github.com/foresay/foresay/store/kit"
)

// messages are of all kinds that are encoded.
func messages() []store.Message {
	id, shards := store.TxnID{Time: 1 << 42, Client: 7}, []uint32{0, 1}
	txn := store.Txn{ID: id, Priority: store.Priority{Began: 5, Client: 6}, Reads: []store.Read{{Key: "k"}},
		Writes: []store.Write{{Key: "l", Bytes: []byte("x")}}}
	return []store.Message{
		store.ReadRequest{Ref: 1, Key: "k", Priority: txn.Priority},
		store.ReadReply{Ref: 1, Value: store.Value{Version: id, Present: true, Bytes: []byte("x")}, Hint: 9},
		store.ReadReply{Ref: 1, Led: true},
		store.CommitRequest{Txn: txn, Recover: true}, store.CommitRequest{Txn: txn, Serializable: true},
		store.DeclareRequest{ID: id, Reads: []store.Key{"k"}, Serializable: true},
		store.DeclareRequest{ID: id, Reads: []store.Key{"k"}, MaxAge: 5, NotBefore: 3, At: 4},
		store.DeclareRequest{ID: id, Reads: []store.Key{"k"}, Step: 2}, store.DeclareReply{ID: id, Step: 2},
		store.DeclareRequest{ID: id, Reads: []store.Key{"k"}, Priority: store.Priority{Began: 5, Client: 6}},
		store.Decided{ID: id, Verdict: store.Committed, Held: 7},
		store.Decided{ID: id, Current: []store.Current{{Key: "k", Locked: true}}},
		store.DeclareReply{ID: id, At: 4, Age: 3}, store.Decided{ID: id, Verdict: store.Committed, Version: id, Fast: true},
		store.SiteVote{ID: id, Shards: shards, Yes: true},
		store.Decided{ID: id, Verdict: store.Committed}, store.Busy{ID: id},
		store.DeclareRequest{ID: id, Reads: []store.Key{"k"}, Writes: []store.Key{"l"}},
		store.AbandonRequest{ID: id},
		store.DeclareReply{ID: id, Values: []store.Held{{Value: store.Value{Version: id, Present: true}, Site: 2},
			{Large: true}}},
		grouped{Shard: 1, Grouped: storekit.Grouped{Msg: kit.OpenRequest{Nonce: 3}}}, finish{ID: id, Shards: shards},
		wound{ID: id, Shards: shards}, giveUp{ID: id}, told{Ref: 1, Result: result{State: waiting}},
		prepare{Txn: txn, Shards: shards, Only: true}, prepare{Txn: txn, Shards: shards, Waits: true},
		decide{ID: id, Shards: shards, Commit: true, Anchor: true,
			Reason: store.Old}, done{ID: id},
		check{Shard: 1, Ref: 1 << 42, Txn: store.Txn{ID: id, Reads: []store.Read{{Key: "k", Version: id}}}},
		ask{Shard: 1, Ref: 1 << 42, Command: []byte("command")},
		told{Ref: 1 << 42, Result: result{State: aborted, Reason: store.StaleRead}}, elsewhere{Ref: 1 << 42, Leader: 300},
	}
}

func TestCodec(t *testing.T) { wiretest.Codec(t, format(), 0, messages()) }

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, format(), messages()) }

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

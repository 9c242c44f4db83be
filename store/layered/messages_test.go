package layered

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/store"
)

// messages are of all kinds that are encoded.
func messages() []store.Message {
	id, shards := store.TxnID{Time: 1 << 42, Client: 7}, []uint32{0, 1}
	txn := store.Txn{ID: id, Priority: store.Priority{Began: 5, Client: 6}, Reads: []store.Read{{Key: "k"}},
		Writes: []store.Write{{Key: "l", Bytes: []byte("x")}}}
	return []store.Message{
		store.ReadRequest{Ref: 1, Key: "k", Priority: txn.Priority},
		store.ReadReply{Ref: 1, Value: store.Value{Version: id, Present: true, Bytes: []byte("x")}, Hint: 9},
		store.CommitRequest{Txn: txn, Recover: true}, store.SiteVote{ID: id, Shards: shards, Yes: true},
		store.Decided{ID: id, Verdict: store.Committed}, store.Busy{ID: id},
		grouped{Shard: 1, Msg: kit.OpenRequest{Nonce: 3}}, finish{ID: id, Shards: shards},
		prepare{Txn: txn, Shards: shards, Only: true}, decide{ID: id, Shards: shards, Commit: true, Anchor: true,
			Reason: store.Old}, done{ID: id},
		result{State: aborted, Reason: store.StaleRead},
	}
}

func TestCodec(t *testing.T) { wiretest.Codec(t, format(), 0, messages()) }

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, format(), messages()) }

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

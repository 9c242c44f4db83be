package replicatedcommit

import (
	"testing"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// messages are of all kinds that travel.
func messages() []Message {
	id := store.TxnID{Time: 1 << 42, Client: 7}
	shards := []uint32{0, 1}
	txn := store.Txn{
		ID: id, Priority: store.Priority{Began: 5, Client: 6},
		Reads:  []store.Read{{Key: "k0", Version: store.Version{Time: 3, Client: 4}}},
		Writes: []store.Write{{Key: "k0", Bytes: []byte("x")}, {Key: "k1", Delete: true}},
	}
	parts, _ := split(layout(3, 2), txn)
	return []Message{
		store.ReadRequest{Ref: 1, Key: "k0", Priority: txn.Priority},
		store.ReadReply{Ref: 1, Value: store.Value{Version: id, Present: true, Bytes: []byte("x")}, Pending: true, Hint: 9,
			Queued: true},
		store.CommitRequest{Txn: txn, Recover: true},
		store.CommitRequest{Txn: txn, Firm: true},
		store.CommitRequest{Txn: txn, Hold: true},
		store.SiteVote{ID: id, Shards: shards, Yes: true},
		store.SiteVote{ID: id, Shards: shards, Reason: store.StaleRead, Hint: 8},
		store.Decided{ID: id, Verdict: store.Aborted, Reason: store.Locked}, store.Busy{ID: id},
		Prepare{Txn: parts[0], Shards: shards},
		Prepare{Txn: store.Txn{ID: id, Reads: txn.Reads}, Shards: shards, ReadOnly: true},
		Prepare{Txn: parts[0], Shards: shards, Firm: true},
		// is in the way of the others, or they of it
		Prepare{Txn: store.Txn{ID: store.TxnID{Time: 1 << 42, Client: 8}, Reads: parts[0].Reads, Writes: parts[0].Writes},
			Shards: shards, Hold: true},
		Vote{ID: id, State: No, Reason: store.Old, Hint: 8},
		Vote{ID: id, State: Committed},
		Ask{ID: id, Shards: shards}, Ask{ID: id, Shards: shards, Fence: true}, Urge{ID: id, Site: 1},
		Decide{ID: id, Shards: shards, Commit: true},
		Decide{ID: id, Shards: shards, Old: true},
		Applied{ID: id},
		Forget{ID: id}, Forget{ID: id, But: []protocol.ID{31, 32}},
		Resolve{ID: id, Shards: shards, State: Yes, Reason: store.Fenced},
		Fetch{ID: id},
		Content{ID: id, Writes: txn.Writes},
		Content{ID: id, Old: true},
		Hello{Disk: 3, Mark: 4, Start: 5},
		Welcome{Asked: 3, Disk: 4, Mark: 5, Start: 6},
		Owing{Serial: 3, Since: 1 << 41, To: 4}, Paid{Serial: 3}, Paid{Serial: 3, Behind: true},
		Copy{Stage: CopyValues, From: "k0"}, Copy{Stage: CopyValues, Since: 1 << 41},
		Page{Stage: CopyTxns, From: "a", Next: "b", Old: 7, Scanned: 9, Debts: []Debt{{Server: 31, Since: 5, Upto: 6}},
			Txns: []SettledTxn{{Txn: store.Txn{ID: id, Writes: parts[0].Writes}, Shards: shards, Commit: true, Done: true},
				{Txn: store.Txn{ID: id}, Shards: shards, Old: true}}},
		Page{Stage: CopyValues, Values: []KeyValue{{"k0", store.Value{Version: id, Present: true, Bytes: []byte("x")}},
			{"k1", store.Value{Version: id}}}},
		Look{ID: id},
		Seen{ID: id, State: Wanting}, Seen{ID: id, State: Aborted, Old: true},
	}
}

func TestCodec(t *testing.T) { wiretest.Codec(t, Codec(), 0, messages()) }

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, Codec(), messages()) }

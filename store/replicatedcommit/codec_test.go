package replicatedcommit

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
)

// messages are of all kinds of the protocol's own that travel.
func messages() []message {
	id := store.TxnID{Time: 1 << 42, Client: 7}
	shards := []uint32{0, 1}
	txn := store.Txn{
		ID: id, Priority: store.Priority{Began: 5, Client: 6},
		Reads:  []store.Read{{Key: "k0", Version: store.Version{Time: 3, Client: 4}}},
		Writes: []store.Write{{Key: "k0", Bytes: []byte("x")}, {Key: "k1", Delete: true}},
	}
	parts, _ := layout(3, 2).Split(txn)
	return []message{
		prepare{Txn: parts[0], Shards: shards},
		prepare{Txn: store.Txn{ID: id, Reads: txn.Reads}, Shards: shards, ReadOnly: true},
		prepare{Txn: parts[0], Shards: shards, Firm: true},
		// is in the way of the others, or they of it
		prepare{Txn: store.Txn{ID: store.TxnID{Time: 1 << 42, Client: 8}, Reads: parts[0].Reads, Writes: parts[0].Writes},
			Shards: shards, Hold: true},
		vote{ID: id, State: no, Reason: store.Old, Hint: 8},
		vote{ID: id, State: committed},
		ask{ID: id, Shards: shards}, ask{ID: id, Shards: shards, Fence: true}, urge{ID: id, Site: 1},
		decide{ID: id, Shards: shards, Commit: true},
		decide{ID: id, Shards: shards, Old: true},
		applied{ID: id},
		forget{ID: id}, forget{ID: id, But: []protocol.ID{31, 32}},
		resolve{ID: id, Shards: shards, State: yes, Reason: store.Fenced},
		fetch{ID: id},
		content{ID: id, Writes: txn.Writes},
		content{ID: id, Old: true},
		hello{Disk: 3, Mark: 4, Start: 5},
		welcome{Asked: 3, Disk: 4, Mark: 5, Start: 6},
		owing{Serial: 3, Since: 1 << 41, To: 4}, paid{Serial: 3}, paid{Serial: 3, Behind: true},
		askPage{Stage: copyValues, From: "k0"}, askPage{Stage: copyValues, Since: 1 << 41},
		page{Stage: copyTxns, From: "a", Next: "b", Old: 7, Scanned: 9, Debts: []debt{{Server: 31, Since: 5, Upto: 6}},
			Txns: []settledTxn{{Txn: store.Txn{ID: id, Writes: parts[0].Writes}, Shards: shards, Commit: true, Done: true},
				{Txn: store.Txn{ID: id}, Shards: shards, Old: true}}},
		page{Stage: copyValues, Values: []keyValue{{"k0", store.Value{Version: id, Present: true, Bytes: []byte("x")}},
			{"k1", store.Value{Version: id}}}},
		look{ID: id},
		seen{ID: id, State: wanting}, seen{ID: id, State: aborted, Old: true},
	}
}

func TestCodec(t *testing.T) { wiretest.Codec(t, storetest.Own(codec()), 0, messages()) }

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, codec(), messages()) }

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
		wiretest.Sample("mark", diskMarkLayout, diskMark{disk: 300, mark: 4, start: 1 << 60},
			cmp.AllowUnexported(diskMark{})),
		wiretest.Sample("number", numberLayout, 300),
		wiretest.Sample("epochs", epochLayout, epochs{2, 300}, cmp.AllowUnexported(epochs{})),
		wiretest.Sample("source", sourceLayout, source{stage: copyValues, from: "key"},
			cmp.AllowUnexported(source{}, copyPace{})),
		wiretest.Sample("debt", debtLayout, owedRange{since: 300, upto: 400}, cmp.AllowUnexported(owedRange{})))
}

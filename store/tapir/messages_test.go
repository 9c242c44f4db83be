package tapir

import (
	"testing"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// messages are of all kinds of the protocol's own that are encoded.
func messages() []store.Message {
	id, shards := store.TxnID{Time: 1 << 42, Client: 7}, []uint32{0, 1}
	txn := store.Txn{ID: id, Priority: store.Priority{Began: 5, Client: 6}, Reads: []store.Read{{Key: "k"}},
		Writes: []store.Write{{Key: "l", Bytes: []byte("x")}}}
	b := ballot{Round: 2, By: 300}
	members := []protocol.ID{11, 21, 31}
	all := piece{N: 1, Of: 2, Entries: []entry{
		{ID: id, Shards: shards, Has: true, Part: txn, Promised: b, Vote: prepared, Accepted: b, Yes: true},
		{ID: store.TxnID{Time: 1 << 43, Client: 7}, Shards: shards, Reason: store.Old, End: aborted, Lost: true},
	}}
	value := store.Value{Version: id, Present: true, Bytes: []byte("x")}
	return []store.Message{
		propose{ID: id, Shards: shards, Ballot: b, Has: true, Part: txn, Whole: true},
		propose{ID: id, Shards: shards, Ballot: b},
		answer{ID: id, View: 3, Promised: b, Vote: retry, Reason: store.StaleWrite, Hint: 9, VotedAt: b, Accepted: b,
			Yes: true, End: committed, Forgot: true, Has: true, Part: txn},
		accept{ID: id, Shards: shards, View: 3, Ballot: b, Yes: true, Reason: store.Locked},
		confirm{ID: id, View: 3, Ballot: b},
		decide{ID: id, Shards: shards, Commit: true, Reason: store.Fenced, Has: true, Part: txn},
		carried{ID: id, View: 3, Members: members}, done{ID: id, But: members[1:]},
		finish{ID: id, Shards: shards, Has: true, Part: txn},
		hello{Disk: 300}, welcome{Disk: 300, Other: true},
		viewChange{View: 3}, doView{View: 3, Normal: 2, Piece: all}, startView{View: 3, Members: members, Piece: all},
		behind{Serial: 300}, caughtUp{Serial: 300}, askPage{From: "k"},
		page{From: "k", Values: []item{{"k", value}, {"l", store.Value{Version: id}}}, More: true, Next: "m"},
	}
}

func TestCodec(t *testing.T) { wiretest.Codec(t, storetest.Own(codec()), 0, messages()) }

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, codec(), messages()) }

// TestLayouts tests what servers have on disk beside values and parts.
func TestLayouts(t *testing.T) {
	id, b := store.TxnID{Time: 300, Client: 2}, ballot{Round: 1, By: 300}
	r := record{id: id, shards: []uint32{1, 2}, has: true, promised: ballot{Round: 2, By: 3}, vote: prepared, votedAt: b,
		hint: 299, accepted: b, yes: true, end: aborted, reason: store.Old, lost: true, done: true}
	wiretest.Layouts(t,
		wiretest.Sample("record", recordLayout, r, cmp.AllowUnexported(record{}),
			cmpopts.IgnoreFields(record{}, "part", "since", "tries")),
		wiretest.Sample("view", viewLayout, viewState{view: 300, normal: 2, members: []protocol.ID{11, 21}},
			cmp.AllowUnexported(viewState{})),
		wiretest.Sample("version", versionLayout, id),
		wiretest.Sample("number", numberLayout, 300))
}

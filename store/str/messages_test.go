package str

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	storekit "github.com/foresay/foresay/store/kit"
	"github.com/foresay/foresay/store/storetest"
)

func aPart() part {
	id := store.TxnID{Time: 1 << 42, Client: 7}
	return part{ID: id, At: 300, Local: 301, Writes: []store.Write{{Key: "k", Bytes: []byte("x")}}, Shards: []uint32{0, 1},
		Origin: 9, Over: []store.TxnID{{Time: 5, Client: 6}}, On: []dependency{{store.TxnID{Time: 5, Client: 6}, 1, 300}},
		Sure: []sureWord{{11, 301}}, Readers: []protocol.ID{11, 21}, Past: 299, Held: true}
}

// messages are of all kinds of the protocol's own that are encoded.
func messages() []store.Message {
	p := aPart()
	id, at := p.ID, raft.Position{Index: 300, Term: 4}
	return []store.Message{
		grouped{Shard: 1, Grouped: storekit.Grouped{Msg: kit.OpenRequest{Nonce: 3}}},
		readAt{Ref: 1 << 42, Key: "k", At: 300, Skip: []store.TxnID{id}},
		found{Ref: 1, Value: store.Value{Version: id, Present: true, Bytes: []byte("x")}}, found{Ref: 1, Reason: store.Old},
		certify{Shard: 1, ID: id, At: 300, Keys: []store.Key{"k", "l"}, Over: p.Over},
		certified{Shard: 1, ID: id, Stamp: 301, Until: 400}, certified{Shard: 1, ID: id, Stamp: 301},
		certified{Shard: 1, ID: id, Until: 400}, certified{Shard: 1, ID: id, Reason: store.Locked},
		displaced{Shard: 1, ID: id}, release{Shard: 1, ID: id}, kept{Shard: 1, ID: id}, confirm{id},
		confirmed{Shard: 1, ID: id, At: at}, confirmed{Shard: 1, ID: id, At: at, Members: p.Readers},
		storekit.Ask{Shard: 1, Ref: 1 << 42, Command: []byte("command")},
		told{Ref: 1 << 42, Result: result{State: committed, At: 301}}, storekit.Elsewhere{Ref: 1 << 42, Leader: 300},
		word{Shard: 1, ID: id, At: at, Stamp: 301, Readers: p.Readers},
		word{Shard: 1, ID: id, At: at, Stamp: 301, Readers: p.Readers, Members: []protocol.ID{11, 21, 31}, Serving: p.Readers,
			Past: 299},
		wordWanted{Shard: 1, ID: id, Missing: p.Readers}, outcome{Shard: 1, ID: id, Commit: true, At: 301, Read: 299},
		raise{Shard: 1, At: 300, Admit: true, Keep: 200}, orphan{Part: p}, suspect{Part: p}, ping{1 << 42}, pong{1 << 42},
		prepare{p}, decide{ID: id, Commit: true, At: 301, Reason: store.Old, Anchor: true, Read: 299}, fence{id}, done{id},
		ceil{Ceiling: 300, Horizon: 200}, reader{Server: 11, Serves: true, Leaves: true},
		report{Number: 1 << 42, Window: window{300 * time.Millisecond, 400, 300, 5}}, setting{Number: 1 << 42, Degree: 9},
	}
}

func TestCodec(t *testing.T) { wiretest.Codec(t, storetest.Own(codec()), 0, messages()) }

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, codec(), messages()) }

// TestLayouts tests what a server has on disk.
func TestLayouts(t *testing.T) {
	all := cmp.AllowUnexported(heldPart{}, books{}, ownWord{})
	at := raft.Position{Index: 300, Term: 4}
	wiretest.Layouts(t,
		wiretest.Sample("prepared", openLayout, heldPart{aPart(), at}, all),
		wiretest.Sample("ended", endedLayout, result{State: aborted, Reason: store.StaleRead}),
		wiretest.Sample("name", idLayout, aPart().ID),
		wiretest.Sample("word", ownLayout, ownWord{aPart(), at, 301, true}, all),
		wiretest.Sample("books", booksLayout, books{old: 300, first: 4, next: 500, floor: 299, deaf: []protocol.ID{11, 21},
			leaving: []protocol.ID{11}}, all))
}

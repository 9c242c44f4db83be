package storetest

import (
	"maps"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// Requests are samples of all kinds of messages that protocols have in common, those of snapshots
// and of local commits among them if they are wanted: what clients and sites say to each other
// about one transaction.
func Requests(snapshots, speculation bool) []store.Message {
	id, shards := store.TxnID{Time: 1 << 42, Client: 7}, []uint32{0, 1}
	age := store.Priority{Began: 5, Client: 6}
	txn := store.Txn{ID: id, Priority: age, Reads: []store.Read{{Key: "k", Version: store.Version{Time: 3, Client: 4}}},
		Writes: []store.Write{{Key: "k", Bytes: []byte("x")}, {Key: "l", Delete: true}}}
	value := store.Value{Version: id, Present: true, Bytes: []byte("x")}
	reads := []store.Key{"k"}
	out := []store.Message{
		store.ReadRequest{Ref: 1, Key: "k", Priority: age},
		store.ReadReply{Ref: 1, Value: value, Pending: true, Hint: 9, Queued: true}, store.ReadReply{Ref: 1, Led: true},
		store.CommitRequest{Txn: txn, Recover: true}, store.CommitRequest{Txn: txn, Firm: true},
		store.CommitRequest{Txn: txn, Hold: true}, store.CommitRequest{Txn: txn, Serializable: true},
		store.CommitRequest{Txn: txn, Explain: true},
		store.SiteVote{ID: id, Shards: shards, Yes: true},
		store.SiteVote{ID: id, Shards: shards, Reason: store.StaleWrite, Hint: 8},
		store.Decided{ID: id, Verdict: store.Committed},
		store.Decided{ID: id, Verdict: store.Aborted, Reason: store.Locked},
		store.Decided{ID: id, Verdict: store.Committed, Version: id, Fast: true},
		store.Decided{ID: id, Verdict: store.Committed, Held: 7},
		store.Decided{ID: id, Verdict: store.Committed, Version: id, Course: &store.Course{Snapshot: 300, Local: 301,
			LocalAt: 4, Built: []store.Built{{Key: "k", By: id}}, Words: []store.CourseWord{{Shard: 1, Site: 2, At: 300}},
			LastOn: id, LastOnAt: 200}},
		store.Decided{ID: id, Current: []store.Current{{Key: "k", Locked: true}}},
		store.Busy{ID: id},
		store.DeclareRequest{ID: id, Reads: reads, Writes: []store.Key{"l"}},
		store.DeclareRequest{ID: id, Reads: reads, Serializable: true},
		store.DeclareRequest{ID: id, Reads: reads, MaxAge: 5, NotBefore: 3, At: 4},
		store.DeclareRequest{ID: id, Reads: reads, Step: 2}, store.DeclareRequest{ID: id, Reads: reads, Priority: age},
		store.DeclareReply{ID: id, Values: []store.Held{{Value: store.Value{Version: id, Present: true}, Site: 2},
			{Large: true}}},
		store.DeclareReply{ID: id, At: 4, Age: 3}, store.DeclareReply{ID: id, Step: 2},
		store.AbandonRequest{ID: id},
	}
	if snapshots {
		out = append(out, store.PageRequest{Ref: 1, Shard: 2, At: 9, From: []byte("k")},
			store.PageReply{Ref: 1, At: 9, Horizon: 8, Next: []byte{1}, Items: []store.Item{{Key: "k", Value: value}}})
	}
	if speculation {
		out = append(out, store.SpeculateRequest{CommitRequest: store.CommitRequest{Txn: txn}, Held: true},
			store.SpeculateRequest{CommitRequest: store.CommitRequest{Txn: txn, Explain: true}, Told: true},
			store.SpeculateRequest{CommitRequest: store.CommitRequest{Txn: txn}, After: []store.TxnID{id}, Told: true},
			store.Speculated{ID: id, At: 9})
	}
	return out
}

// A protocol's own messages have tags from firstOwn to lastOwn.
const (
	firstOwn = 16
	lastOwn  = 239
)

// Own returns a protocol's codec as one that has the protocol's own kinds only, for a test of
// samples of these: package store tests the others.
func Own(codec *wirefmt.Format[store.Message]) protocol.Codec[store.Message] { return own{codec} }

type own struct{ *wirefmt.Format[store.Message] }

// Kinds returns the names of the protocol's own kinds, by their tags.
func (o own) Kinds() map[byte]string {
	kinds := o.Format.Kinds()
	maps.DeleteFunc(kinds, func(tag byte, _ string) bool { return tag < firstOwn || tag > lastOwn })
	return kinds
}

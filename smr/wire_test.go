package smr_test

import (
	"testing"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/smr"
)

// sharedMessages are of all kinds that the protocols have in common.
func sharedMessages() []smr.Message {
	return []smr.Message{
		smr.Request{Session: 3, Acked: 4, Commands: []smr.RequestedCommand{{Seq: 5, Command: []byte("set")}, {Seq: 6, Brief: true}}},
		smr.OpenRequest{Nonce: 1 << 63},
		smr.ChangeRequest{Session: 3, Acked: 4, Seq: 5, Change: smr.Change{Remove: 2}},
		smr.ReadRequest{Queries: []smr.Query{{ID: 1, Body: []byte("get")}, {ID: 2}}},
		smr.Replies{Session: 3, Items: []smr.CommandReply{
			{Seq: 5, Outcome: smr.Committed, Slot: 77, Result: []byte("ok")}, {Seq: 6, Outcome: smr.Unknown, Reason: "gone", Gone: true}}},
		smr.OpenReply{Nonce: 1, Session: 3, Window: 100},
		smr.ReadReplies{Items: []smr.ReadReply{{ID: 1, Result: []byte("x")}}},
		smr.Redirect{Leader: smr.Member{ID: 2, Address: "host:2"}},
		smr.Busy{Session: 3, Seqs: []smr.Seq{5}, Queries: []uint64{1}, Open: true},
		smr.Ping{Sent: 5}, smr.Pong{Sent: 1 << 60},
		smr.NotYet{Session: 3, Seq: 5, Reason: "later"},
		smr.SnapshotChunk{From: 1, Slot: 2, Size: 3, Sum: 4, Offset: 1, Data: []byte("ab")},
		smr.SnapshotWanted{From: 1, Slot: 2, Sum: 4, Offset: 3},
		smr.Hello{From: 1, Join: true},
		smr.Welcome{From: 1, Asked: 2, Known: 3, Reason: "no"},
		smr.Request{Session: 3, After: 1 << 60, Commands: []smr.RequestedCommand{{Seq: 5, Early: true}}},
		smr.ChangeRequest{Session: 3, Acked: 4, Seq: 5, Change: smr.Change{Add: smr.Member{ID: 4, Address: "host:4"}}},
		smr.Hello{From: 1, Mark: smr.DiskMark{Next: 3, Start: 4}, Ask: true},
		smr.Welcome{From: 1, Asked: 2, Known: 3, Members: []smr.Member{{ID: 1, Address: "host:1"}}},
		smr.Welcome{From: 1, Asked: 2, Known: 3, Mark: smr.DiskMark{Next: 3, Start: 4}},
		smr.Early{Session: 3, Items: []smr.EarlyReply{{Seq: 1, Slot: 2}}},
		smr.PartSaved{},
		smr.HostBeat{Run: 1 << 40},
		smr.RestNow{From: 1, Run: 2, Ballot: 3, Slot: 4, Number: 5},
		smr.Rested{From: 1, Run: 2, Ballot: 3, Number: 4},
		smr.Removed{From: 7},
	}
}

func sharedFormat() *wirefmt.Format[smr.Message] {
	return wirefmt.NewFormat("smr", 1, smr.SharedKinds()...)
}

func TestCodec(t *testing.T) { wiretest.Codec(t, sharedFormat(), 0, sharedMessages()) }

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, sharedFormat(), sharedMessages()) }

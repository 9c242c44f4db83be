package kit_test

import (
	"testing"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// sharedMessages are of all kinds that the protocols have in common.
func sharedMessages() []smr.Message {
	return []smr.Message{
		kit.Request{Session: 3, Acked: 4, Commands: []kit.RequestedCommand{{Seq: 5, Command: []byte("set")},
			{Seq: 6, Brief: true}}},
		kit.OpenRequest{Nonce: 1 << 63},
		kit.ChangeRequest{Session: 3, Acked: 4, Seq: 5, Change: smr.Change{Remove: 2}},
		kit.ReadRequest{Queries: []kit.Query{{ID: 1, Body: []byte("get")}, {ID: 2}}},
		kit.Replies{Session: 3, Items: []kit.CommandReply{
			{Seq: 5, Outcome: smr.Committed, Slot: 77, Result: []byte("ok")}, {Seq: 6, Outcome: smr.Unknown, Reason: "gone",
				Gone: true}}},
		kit.OpenReply{Nonce: 1, Session: 3, Window: 100},
		kit.ReadReplies{Items: []kit.ReadReply{{ID: 1, Result: []byte("x")}}},
		kit.Redirect{Leader: smr.Member{ID: 2, Address: "host:2"}},
		kit.Busy{Session: 3, Seqs: []kit.Seq{5}, Queries: []uint64{1}, Open: true},
		kit.Ping{Sent: 5}, kit.Pong{Sent: 1 << 60},
		kit.NotYet{Session: 3, Seq: 5, Reason: "later"},
		kit.SnapshotChunk{Slot: 2, Size: 3, Sum: 4, Offset: 1, Data: []byte("ab")},
		kit.SnapshotWanted{Slot: 2, Sum: 4, Offset: 3},
		kit.Hello{Disk: 1, Join: true},
		kit.Welcome{Disk: 1, Asked: 2, Known: 3, Reason: "no"},
		kit.Request{Session: 3, After: 1 << 60, Commands: []kit.RequestedCommand{{Seq: 5, Early: true}}},
		kit.ChangeRequest{Session: 3, Acked: 4, Seq: 5, Change: smr.Change{Add: smr.Member{ID: 4, Address: "host:4"}}},
		kit.Hello{Disk: 1, Mark: kit.DiskMark{Next: 3, Start: 4}, Ask: true},
		kit.Welcome{Disk: 1, Asked: 2, Known: 3, Members: []smr.Member{{ID: 1, Address: "host:1"}}},
		kit.Welcome{Disk: 1, Asked: 2, Known: 3, Mark: kit.DiskMark{Next: 3, Start: 4}},
		kit.Early{Session: 3, Items: []kit.EarlyReply{{Seq: 1, Slot: 2}}},
		kit.PartSaved{},
		kit.HostBeat{Run: 1 << 40},
		kit.RestNow{Run: 2, Ballot: 3, Slot: 4, Number: 5},
		kit.Rested{Run: 2, Ballot: 3, Number: 4},
		kit.Removed{},
		kit.Founding{Disk: 1 << 50, Group: []protocol.ID{1, 2, 3}},
		kit.Drowsy{Run: 2, Mark: 1 << 63, Answer: true},
		kit.OtherGroup{Asked: 2, Group: []protocol.ID{1, 2}},
		kit.Letter{Disk: 1 << 60, Msg: kit.SnapshotWanted{Slot: 2, Sum: 4, Offset: 3}},
	}
}

func sharedFormat() *wirefmt.Format[smr.Message] {
	return kit.NewFormat("smr", 1)
}

func TestCodec(t *testing.T) { wiretest.Codec(t, sharedFormat(), 0, sharedMessages()) }

// TestEarlierTags: a message is written as earlier versions of the program know it, unless it has
// what these do not know.
func TestEarlierTags(t *testing.T) {
	wiretest.Tags(t, sharedFormat(), map[byte]smr.Message{
		13: kit.Hello{Disk: 1, Join: true}, 19: kit.Hello{Disk: 1, Mark: kit.DiskMark{Next: 1, Start: 2}},
		14: kit.Welcome{Disk: 1, Members: []smr.Member{{ID: 1}}},
		20: kit.Welcome{Disk: 1, Mark: kit.DiskMark{Next: 1, Start: 2}},
	})
}

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, sharedFormat(), sharedMessages()) }

// TestLetterInALetter: what is in a letter is no letter, however bytes are put together; nothing
// that is no message goes in one.
func TestLetterInALetter(t *testing.T) {
	b, err := sharedFormat().Append(nil, kit.Letter{Disk: 1, Msg: kit.Removed{}})
	if err != nil {
		t.Fatal(err)
	}
	version, tag, disk := b[0], b[1], b[2]
	if _, err := sharedFormat().Decode(append([]byte{version, tag, disk}, b[1:]...)); err == nil {
		t.Error("a letter in a letter was decoded")
	}
	if _, err := sharedFormat().Decode([]byte{version, tag, disk, 255}); err == nil {
		t.Error("a letter with an unknown message was decoded")
	}
	defer func() {
		if recover() == nil {
			t.Error("a letter in a letter was encoded")
		}
	}()
	_, _ = sharedFormat().Append(nil, kit.Letter{Disk: 1, Msg: kit.Letter{Disk: 1, Msg: kit.Removed{}}})
}

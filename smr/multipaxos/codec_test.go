package multipaxos_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/multipaxos"
)

// messages are of all kinds that nodes send or record.
func messages() []smr.Message {
	entries := []smr.Entry{
		{Kind: smr.NoOp},
		{Kind: smr.Command, Client: 7, Session: 3, Seq: 9, Acked: 4, Command: []byte("set")},
		{Kind: smr.OpenSession, Client: 7, Seq: 1 << 63, Open: &smr.Open{MaxSessions: 10, Window: 100}},
		{Kind: smr.ChangeMembers, Client: 7, Session: 3, Seq: 10, Acked: 4, Members: &smr.MemberChange{
			Change: smr.Change{Add: smr.Member{ID: 4, Address: "host:1"}}, Incarnation: 1 << 40}},
		{Kind: smr.ChangeMembers, Client: 7, Session: 3, Seq: 11, Acked: 4, Members: &smr.MemberChange{Change: smr.Change{Remove: 2}}},
	}
	var votes []multipaxos.Vote
	for i, e := range entries {
		votes = append(votes, multipaxos.Vote{Ballot: multipaxos.Ballot(i), Entry: e})
	}
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
		smr.NotYet{Session: 3, Seq: 5, Reason: "later"},
		smr.SnapshotChunk{From: 1, Slot: 2, Size: 3, Sum: 4, Offset: 1, Data: []byte("ab")},
		smr.SnapshotWanted{From: 1, Slot: 2, Sum: 4, Offset: 3},
		smr.Hello{From: 1, Join: true},
		smr.Welcome{From: 1, Asked: 2, Known: 3, Reason: "no"},
		multipaxos.PreVote{From: 1, Ballot: 1<<32 | 1, Commit: 9},
		multipaxos.PreVoteReply{From: 1, Ballot: 2, Granted: true, Promised: 1},
		multipaxos.Prepare{From: 1, Ballot: 2, Low: 3},
		multipaxos.Promise{From: 1, Ballot: 2, Low: 3, Base: 2, Commit: 4, Slots: votes, Last: true},
		multipaxos.Accept{From: 1, Ballot: 2, First: 3, Commit: 2, Round: 8, Entries: entries},
		multipaxos.Accept{From: 1, Ballot: 2, First: 3, Commit: 2},
		multipaxos.Accepted{From: 1, Ballot: 2, Match: 3},
		multipaxos.Follows{From: 1, Ballot: 2, Round: 3},
		multipaxos.Missing{From: 1, Ballot: 2, Want: 3},
		multipaxos.Refusal{From: 1, Promised: 2},
		multipaxos.Removed{From: 1},
		multipaxos.PromiseRecord{Ballot: 1, Commit: 2},
		multipaxos.AcceptRecord{Ballot: 1, First: 2, Commit: 1, Entries: entries},
	}
}

func TestCodec(t *testing.T) {
	codec := multipaxos.Codec()
	for _, m := range messages() {
		b, err := codec.Append([]byte("before"), m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := codec.Decode(b[len("before"):])
		if err != nil {
			t.Errorf("%T: %v", m, err)
		}
		if diff := cmp.Diff(m, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%T (-want +got):\n%s", m, diff)
		}
		for n := range len(b) - len("before") {
			if _, err := codec.Decode(b[len("before") : len("before")+n]); err == nil {
				t.Errorf("%T cut off after %d bytes was decoded", m, n)
			}
		}
	}
	if _, err := codec.Append(nil, 7); err == nil || !strings.Contains(err.Error(), "int is no message") {
		t.Errorf("an int was encoded: %v", err)
	}
}

// FuzzCodec decodes anything; what can be decoded is encoded to bytes that stand for the same.
func FuzzCodec(f *testing.F) {
	codec := multipaxos.Codec()
	for _, m := range messages() {
		b, err := codec.Append(nil, m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := codec.Decode(b)
		if err != nil {
			return
		}
		once, err := codec.Append(nil, m)
		if err != nil {
			t.Fatalf("%#v: %v", m, err)
		}
		again, err := codec.Decode(once)
		if err != nil {
			t.Fatalf("%#v: %v", m, err)
		}
		if twice, _ := codec.Append(nil, again); !bytes.Equal(once, twice) {
			t.Errorf("%#v becomes %#v", m, again)
		}
	})
}

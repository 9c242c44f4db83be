package multipaxos_test

import (
	"testing"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/multipaxos"
	"github.com/foresay/foresay/smr/smrtest"
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
		smr.Ping{Sent: 5}, smr.Pong{Sent: 1 << 60},
		smr.NotYet{Session: 3, Seq: 5, Reason: "later"},
		smr.SnapshotChunk{From: 1, Slot: 2, Size: 3, Sum: 4, Offset: 1, Data: []byte("ab")},
		smr.SnapshotWanted{From: 1, Slot: 2, Sum: 4, Offset: 3},
		smr.Hello{From: 1, Join: true},
		multipaxos.Lead{From: 1, Ballot: 2},
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

func TestCodec(t *testing.T) { smrtest.Codec(t, multipaxos.Codec(), messages()) }

func FuzzCodec(f *testing.F) { smrtest.FuzzCodec(f, multipaxos.Codec(), messages()) }

package multipaxos_test

import (
	"testing"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/multipaxos"
)

// messages are of all kinds that nodes send or record.
func messages() []smr.Message {
	entries := []kit.Entry{
		{Kind: kit.NoOp},
		{Kind: kit.Command, Client: 7, Session: 3, Seq: 9, Acked: 4, Command: []byte("set")},
		{Kind: kit.OpenSession, Client: 7, Seq: 1 << 63, Open: &kit.Open{MaxSessions: 10, Window: 100}},
		{Kind: kit.ChangeMembers, Client: 7, Session: 3, Seq: 10, Acked: 4, Members: &kit.MemberChange{
			Change: smr.Change{Add: smr.Member{ID: 4, Address: "host:1"}}, Incarnation: 1 << 40}},
		{Kind: kit.ChangeMembers, Client: 7, Session: 3, Seq: 11, Acked: 4,
			Members: &kit.MemberChange{Change: smr.Change{Remove: 2}}},
	}
	var votes []multipaxos.Vote
	for i, e := range entries {
		votes = append(votes, multipaxos.Vote{Ballot: multipaxos.Ballot(i), Entry: e})
	}
	return []smr.Message{
		multipaxos.Lead{Ballot: 2},
		multipaxos.PreVote{Ballot: 1<<32 | 1, Commit: 9},
		multipaxos.PreVoteReply{Ballot: 2, Granted: true, Promised: 1},
		multipaxos.Prepare{Ballot: 2, Low: 3},
		multipaxos.Promise{Ballot: 2, Low: 3, Base: 2, Commit: 4, Slots: votes, Last: true},
		multipaxos.Accept{Ballot: 2, First: 3, Commit: 2, Round: 8, Entries: entries},
		multipaxos.Accept{Ballot: 2, First: 3, Commit: 2},
		multipaxos.Accepted{Ballot: 2, Match: 3},
		multipaxos.Follows{Ballot: 2, Round: 3},
		multipaxos.Missing{Ballot: 2, Want: 3},
		multipaxos.Refusal{Promised: 2},
		multipaxos.PromiseRecord{Ballot: 1, Commit: 2},
		multipaxos.AcceptRecord{Ballot: 1, First: 2, Commit: 1, Entries: entries},
	}
}

func TestCodec(t *testing.T) { wiretest.Codec(t, multipaxos.Codec(), 64, messages()) }

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, multipaxos.Codec(), messages()) }

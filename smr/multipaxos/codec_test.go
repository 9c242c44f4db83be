package multipaxos

import (
	"testing"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/smrtest"
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
	var votes []vote
	for i, e := range entries {
		votes = append(votes, vote{Ballot: kit.Ballot(i), Entry: e})
	}
	return []smr.Message{
		takeOver{Ballot: 2},
		preVote{Ballot: 1<<32 | 1, Commit: 9},
		preVoteReply{Ballot: 2, Granted: true, Promised: 1},
		prepare{Ballot: 2, Low: 3},
		promise{Ballot: 2, Low: 3, Base: 2, Commit: 4, Slots: votes, Last: true},
		accept{Ballot: 2, First: 3, Commit: 2, Round: 8, Entries: entries},
		accept{Ballot: 2, First: 3, Commit: 2},
		accepted{Ballot: 2, Match: 3},
		polled{Ballot: 2, Round: 3},
		missing{Ballot: 2, Want: 3},
		refusal{Promised: 2},
		promiseRecord{Ballot: 1, Commit: 2},
		acceptRecord{Ballot: 1, First: 2, Commit: 1, Entries: entries},
	}
}

func TestCodec(t *testing.T) { wiretest.Codec(t, codec(), 64, messages()) }

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, codec(), messages()) }

// FuzzReceive gives replicas messages as they like to be.
func FuzzReceive(f *testing.F) { smrtest.Hostile(f, codec(), messages(), newReplica, kv.New) }

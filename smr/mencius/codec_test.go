package mencius

import (
	"testing"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// messages are of all kinds that nodes send or record, those that the family shares aside but for a
// few.
func messages() []smr.Message {
	at := Place{Epoch: 1, Track: 1, Ballot: 0}
	own := Place{Epoch: 1, Track: 0, Ballot: 1<<32 | 2}
	command := kit.Entry{Kind: kit.Command, Client: 7, Session: 3, Seq: 9, Acked: 4, Command: []byte("set")}
	change := kit.Entry{Kind: kit.ChangeMembers, Client: 7, Session: 3, Seq: 10, Acked: 4,
		Members: &kit.MemberChange{Change: smr.Change{Remove: 2}}}
	items := []Item{{Skips: 3, Entry: command}, {Entry: kit.Entry{Kind: kit.NoOp}}, {Entry: change}, {Skips: 1}}
	return []smr.Message{
		Accept{Place: at, First: 1, Commit: 2, Items: items},
		Accept{Place: own, First: 1, Commit: 1, Items: items},
		Accept{Place: at, First: 1, Items: []Item{{Skips: 1 << 40}}},
		Accept{Place: at, First: 1<<64 - 1, Commit: 1<<64 - 1},
		Accepted{Place: at, Match: 9},
		Accepted{Place: at, Match: 1<<64 - 1},
		Missing{Place: Place{Epoch: 1}, Want: 0},
		Missing{Place: Place{Epoch: 1}, Want: 1 << 60},
		Refusal{Place: own},
		Prepare{Place: own, Low: 1},
		Prepare{Place: own},
		Promise{Place: own, Low: 1, Base: 0, Last: true, Votes: []Vote{{Ballot: 1, Entry: command},
			{Skip: true, Entry: kit.Entry{Kind: kit.NoOp}}}},
		Beat{Epoch: 1, Applied: 5, Seen: 1 << 62, Leads: []Led{{Track: 1, Ballot: 0, Commit: 9},
			{Track: 99, Ballot: 1, Commit: 2}}},
		Fetch{Epoch: 1, Applied: 0},
		Fetch{Epoch: 0, Applied: 0},
		Decided{Epoch: 1, First: 1, Entries: []kit.Entry{command, {Kind: kit.NoOp}, change}},
		Decided{Epoch: 1, First: 0, Entries: []kit.Entry{command}},
		Look{Epoch: 1, Round: 1},
		Seen{Epoch: 1, Round: 1, Slot: 1 << 50},
		AcceptRecord{Epoch: 1, Parts: []Part{{Track: 1, Ballot: 1<<32 | 2, First: 3, Items: items}}},
		PromiseRecord{Epoch: 1, Ballots: []Ballot{0, 1<<32 | 2, 5}},
	}
}

func TestCodec(t *testing.T) { wiretest.Codec(t, Codec(), 64, messages()) }

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, Codec(), messages()) }

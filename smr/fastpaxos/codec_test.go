package fastpaxos

import (
	"testing"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// messages are of all kinds that nodes send or record, those that the family shares aside but for a
// few.
func messages() []smr.Message {
	zero, own, other := Head{Generation: 3}, Head{Era: 1<<32 | 1, Generation: 3}, Head{Era: 2<<32 | 2, Generation: 3}
	alone := Head{Era: 1<<32 | 1, Generation: 1}
	command := kit.Entry{Kind: kit.Command, Client: 7, Session: 3, Seq: 9, Acked: 4, Command: []byte("set")}
	change := kit.Entry{Kind: kit.ChangeMembers, Client: 7, Session: 3, Seq: 10, Acked: 4,
		Members: &kit.MemberChange{Change: smr.Change{Remove: 2}}}
	items := []Placed{{1, command}, {2, kit.Entry{Kind: kit.NoOp}}, {3, change}, {1 << 50, command}, {0, command}}
	votes := []Vote{{Slot: 1, Era: 5, Entry: command}, {Slot: 1 << 60, Era: 1, Classic: true, Entry: change},
		{Slot: 2, Era: 5, Classic: true, Entry: change}}
	out := []smr.Message{
		Copy{kit.Request{Session: 3, Acked: 4, After: 1 << 60,
			Commands: []kit.RequestedCommand{{Seq: 5, Command: []byte("set")}}}},
		kit.ChangeRequest{Session: 1, Acked: 1, Seq: 1, Change: smr.Change{Remove: 2}},
		Cast{Head: own, Need: 3, Session: 3, Items: []kit.EarlyReply{{Seq: 1, Slot: 2}}},
		VoteRecord{Votes: votes},
		PromiseRecord{Era: 7},
	}
	for _, h := range []Head{zero, own, other, alone} {
		out = append(out,
			Beat{Head: h, Applied: 1 << 60, Leads: true, Open: 1},
			Beat{Head: h, Open: 1 << 62},
			Voted{h, items},
			Suggest{h, []kit.Entry{command, change}},
			Close{h, 9},
			Close{h, 1 << 60},
			Accept{h, items},
			Accepted{h, []smr.Slot{1, 2, 1 << 40}},
			Decided{Head: h, Items: items},
			Decided{Head: h, Items: items, More: true},
			DecidedNames{h, []Named{{1, work(1), 0, 0}, {1 << 40, work(2), 1 << 40, 7}, {2, change, 5, 1}}},
			Prepare{h, 1},
			Prepare{h, 0},
			Promise{Head: h, Low: 1, Votes: votes},
			Promise{Head: h, Low: 1, Applied: 9, Votes: votes, Next: 1},
			Refusal{h},
			Fetch{h, 0},
			Look{h, 1},
			Follows{h, 1 << 40, 7},
			Follows{h, 0, 1 << 50},
		)
	}
	return out
}

func TestCodec(t *testing.T) { wiretest.Codec(t, Codec(), 64, messages()) }

// TestLayouts: a message is written as earlier versions of the program know it, unless it has what
// these do not know.
func TestLayouts(t *testing.T) {
	for _, c := range []struct {
		m   smr.Message
		tag byte
	}{
		{Decided{Head: Head{}, Items: []Placed{{1, kit.Entry{Kind: kit.NoOp}}}}, 70}, {Decided{More: true}, 83},
		{kit.Hello{From: 1, Join: true}, 13}, {kit.Hello{From: 1, Mark: kit.DiskMark{Next: 1, Start: 2}}, 19},
		{kit.Welcome{From: 1, Members: []smr.Member{{ID: 1}}}, 14},
		{kit.Welcome{From: 1, Mark: kit.DiskMark{Next: 1, Start: 2}}, 20},
	} {
		if b, err := Codec().Append(nil, c.m); err != nil || b[1] != c.tag {
			t.Errorf("%+v has the tag %d, want %d (%v)", c.m, b[1], c.tag, err)
		}
	}
}

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, Codec(), messages()) }

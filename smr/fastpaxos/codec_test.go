package fastpaxos

import (
	"testing"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/smrtest"
)

// messages are of all kinds that nodes send or record, those that the family shares aside but for a
// few.
func messages() []smr.Message {
	zero, own, other := head{Generation: 3}, head{Era: 1<<32 | 1, Generation: 3}, head{Era: 2<<32 | 2, Generation: 3}
	alone := head{Era: 1<<32 | 1, Generation: 1}
	command := kit.Entry{Kind: kit.Command, Client: 7, Session: 3, Seq: 9, Acked: 4, Command: []byte("set")}
	change := kit.Entry{Kind: kit.ChangeMembers, Client: 7, Session: 3, Seq: 10, Acked: 4,
		Members: &kit.MemberChange{Change: smr.Change{Remove: 2}}}
	items := []item{{1, command}, {2, kit.Entry{Kind: kit.NoOp}}, {3, change}, {1 << 50, command}, {0, command}}
	votes := []vote{{Slot: 1, Era: 5, Entry: command}, {Slot: 1 << 60, Era: 1, Classic: true, Entry: change},
		{Slot: 2, Era: 5, Classic: true, Entry: change}}
	out := []smr.Message{
		requestCopy{kit.Request{Session: 3, Acked: 4, After: 1 << 60,
			Commands: []kit.RequestedCommand{{Seq: 5, Command: []byte("set")}}}},
		kit.ChangeRequest{Session: 1, Acked: 1, Seq: 1, Change: smr.Change{Remove: 2}},
		cast{head: own, Need: 3, Session: 3, Items: []kit.EarlyReply{{Seq: 1, Slot: 2}}},
		voteRecord{Votes: votes},
		promiseRecord{Era: 7},
		decidedRecord{Items: items},
	}
	for _, h := range []head{zero, own, other, alone} {
		out = append(out,
			beat{head: h, Applied: 1 << 60, Leads: true, Open: 1},
			beat{head: h, Open: 1 << 62},
			voted{h, items},
			suggest{h, []kit.Entry{command, change}},
			closeSlots{h, 9},
			closeSlots{h, 1 << 60},
			accept{h, items},
			accepted{h, []smr.Slot{1, 2, 1 << 40}},
			decided{head: h, Items: items},
			decided{head: h, Items: items, More: true},
			decidedNames{h, []named{{1, work(1), 0, 0}, {1 << 40, work(2), 1 << 40, 7}, {2, change, 5, 1}}},
			prepare{h, 1},
			prepare{h, 0},
			promise{head: h, Low: 1, Votes: votes},
			promise{head: h, Low: 1, Applied: 9, Votes: votes, Next: 1},
			refusal{h},
			fetch{h, 0},
			poll{h, 1},
			polled{h, 1 << 40, 7},
			polled{h, 0, 1 << 50},
		)
	}
	return out
}

func TestCodec(t *testing.T) { wiretest.Codec(t, codec(), 64, messages()) }

// TestEarlierTags: a message is written as earlier versions of the program know it, unless it has
// what these do not know.
func TestEarlierTags(t *testing.T) {
	wiretest.Tags(t, codec(), map[byte]smr.Message{
		70: decided{Items: []item{{1, kit.Entry{Kind: kit.NoOp}}}}, 83: decided{More: true},
	})
}

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, codec(), messages()) }

// FuzzReceive gives replicas messages as they like to be.
func FuzzReceive(f *testing.F) { smrtest.Hostile(f, codec(), messages(), newReplica, kv.New) }

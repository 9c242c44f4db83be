package mencius

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/smrtest"
)

// messages are of all kinds that nodes send or record, those that the family shares aside but for a
// few.
func messages() []smr.Message {
	at := place{Epoch: 1, Track: 1, Ballot: 0}
	own := place{Epoch: 1, Track: 0, Ballot: 1<<32 | 2}
	command := kit.Entry{Kind: kit.Command, Client: 7, Session: 3, Seq: 9, Acked: 4, Command: []byte("set")}
	change := kit.Entry{Kind: kit.ChangeMembers, Client: 7, Session: 3, Seq: 10, Acked: 4,
		Members: &kit.MemberChange{Change: smr.Change{Remove: 2}}}
	items := []item{{Skips: 3, Entry: command}, {Entry: kit.Entry{Kind: kit.NoOp}}, {Entry: change}, {Skips: 1}}
	return []smr.Message{
		accept{place: at, First: 1, Commit: 2, Items: items},
		accept{place: own, First: 1, Commit: 1, Items: items},
		accept{place: at, First: 1, Items: []item{{Skips: 1 << 40}}},
		accept{place: at, First: 1<<64 - 1, Commit: 1<<64 - 1},
		accepted{place: at, Match: 9},
		accepted{place: at, Match: 1<<64 - 1},
		missing{place: place{Epoch: 1}, Want: 0},
		missing{place: place{Epoch: 1}, Want: 1 << 60},
		refusal{place: own},
		prepare{place: own, Low: 1},
		prepare{place: own},
		promise{place: own, Low: 1, Base: 0, Last: true, Votes: []vote{{Ballot: 1, Entry: command},
			{Skip: true, Entry: kit.Entry{Kind: kit.NoOp}}}},
		beat{Epoch: 1, Applied: 5, Seen: 1 << 62, Leads: []led{{Track: 1, Ballot: 0, Commit: 9},
			{Track: 99, Ballot: 1, Commit: 2}}},
		fetch{Epoch: 1, Applied: 0},
		fetch{Epoch: 0, Applied: 0},
		decided{Epoch: 1, First: 1, Entries: []kit.Entry{command, {Kind: kit.NoOp}, change}},
		decided{Epoch: 1, First: 0, Entries: []kit.Entry{command}},
		poll{Epoch: 1, Round: 1},
		polled{Epoch: 1, Round: 1, Slot: 1 << 50},
		acceptRecord{Epoch: 1, Parts: []part{{Track: 1, Ballot: 1<<32 | 2, First: 3, Items: items}}},
		promiseRecord{Epoch: 1, Ballots: []kit.Ballot{0, 1<<32 | 2, 5}},
	}
}

func TestCodec(t *testing.T) { wiretest.Codec(t, codec(), 64, messages()) }

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, codec(), messages()) }

// FuzzReceive gives replicas messages as they like to be.
func FuzzReceive(f *testing.F) { smrtest.Hostile(f, codec(), messages(), newReplica, kv.New) }

// TestLayouts tests what is in front of snapshots.
func TestLayouts(t *testing.T) {
	wiretest.Layouts(t, wiretest.Sample("front", frontLayout,
		front{number: 3, first: 300, last: 8192, members: []protocol.ID{1, 2, 300}}, cmp.AllowUnexported(front{})))
}

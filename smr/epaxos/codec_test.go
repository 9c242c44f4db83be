package epaxos

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/smrtest"
)

// messages are of all kinds that nodes send or record.
func messages() []smr.Message {
	h := head{Generation: 2}
	id := instanceID{Row: 3, Index: 1 << 40}
	deps := deps{4, 0, 1 << 50}
	work := &command{Kind: work, Stamp: 9, Entries: []kit.Entry{
		{Kind: kit.Command, Client: 7, Session: 3, Seq: 9, Acked: 4, Command: []byte("set")},
		{Kind: kit.OpenSession, Client: 7, Seq: 1 << 63, Open: &kit.Open{MaxSessions: 10, Window: 100}},
		{Kind: kit.ChangeMembers, Client: 7, Session: 3, Seq: 11, Acked: 4,
			Members: &kit.MemberChange{Change: smr.Change{Remove: 2}}},
	}}
	nothing := &command{Kind: nothing}
	return []smr.Message{
		preAccept{head: h, ID: id, Cmd: work, Deps: deps},
		preAccept{head: h, ID: id, Deps: deps},
		lacking{head: h, ID: id},
		preAccepted{head: h, ID: id, Deps: deps, Fenced: true},
		accept{head: h, ID: id, Ballot: 1<<32 | 2, Cmd: nothing, Deps: deps},
		accepted{head: h, ID: id, Ballot: 5},
		commit{head: h, ID: id, Cmd: &command{Kind: checkpoint, Stamp: 3}, Deps: deps},
		recover{head: h, ID: id, Ballot: 5},
		recovered{head: h, ID: id, Ballot: 5},
		recovered{head: h, ID: id, Ballot: 5, Phase: 2, Voted: 4, Cmd: work, Init: deps, Deps: deps},
		validate{head: h, ID: id, Ballot: 5, Cmd: work, Deps: deps},
		validated{head: h, ID: id, Ballot: 5, Invalid: true, Pending: []instanceID{id, {Row: 1, Index: 1}}},
		waiting{head: h, ID: id, Agreed: 2},
		refusal{head: h, ID: id, Promised: 6},
		news{head: h, Top: deps},
		fetch{head: h, Missing: []span{{Row: 1, First: 2, Last: 3}, {Row: 2, First: 1, Last: 1}}},
		poll{head: h, Round: 3, Keys: []string{"ka", "kb"}},
		poll{head: h, Round: 3, All: true},
		polled{head: h, Round: 3, Deps: deps},
		settled{head: h, ID: id},
		instanceRecord{ID: id, Phase: 1, Cmd: work, Init: deps, Deps: deps},
		instanceRecord{ID: id, Phase: 3, Ballot: 6, Voted: 5, Nothing: true, Deps: deps},
	}
}

func TestCodec(t *testing.T) {
	codec := codec()
	wiretest.Codec(t, codec, 64, messages())
	for what, m := range map[string]smr.Message{
		"9 is no kind of command": accept{Cmd: &command{Kind: 9}},
		"there is no command":     validate{},
		"4 is no phase":           instanceRecord{Phase: 4},
	} {
		b, err := codec.Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := codec.Decode(b); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%T: error %v, want one that says %q", m, err, what)
		}
	}
}

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, codec(), messages()) }

// TestLayouts tests what is in front of snapshots.
func TestLayouts(t *testing.T) {
	wiretest.Layouts(t, wiretest.Sample("place", placeLayout, place{
		generation: 3, taken: 300, stamp: 7, checkpoint: instanceID{Row: 2, Index: 9}, stable: deps{5, 0, 300},
		sessions: sessionAges{opened: 4, used: map[kit.SessionID]uint64{1: 300, 400: 2}}, stateBytes: 500,
	}, cmp.AllowUnexported(place{}, sessionAges{})))
}

// TestWhatOthersRelyOnIsOnDisk looks at the messages of replicas that must not be forgotten.
func TestWhatOthersRelyOnIsOnDisk(t *testing.T) {
	smrtest.FromDisk(t, Protocol(), preAccept{}, preAccepted{}, accepted{}, recovered{}, validated{}, settled{})
}

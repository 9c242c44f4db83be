package epaxos_test

import (
	"strings"
	"testing"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/epaxos"
	"github.com/foresay/foresay/smr/kit"
)

// messages are of all kinds that nodes send or record.
func messages() []smr.Message {
	h := epaxos.Head{Gen: 2}
	id := epaxos.ID{Row: 3, Index: 1 << 40}
	deps := epaxos.Deps{4, 0, 1 << 50}
	work := &epaxos.Command{Kind: epaxos.Work, Stamp: 9, Entries: []kit.Entry{
		{Kind: kit.Command, Client: 7, Session: 3, Seq: 9, Acked: 4, Command: []byte("set")},
		{Kind: kit.OpenSession, Client: 7, Seq: 1 << 63, Open: &kit.Open{MaxSessions: 10, Window: 100}},
		{Kind: kit.ChangeMembers, Client: 7, Session: 3, Seq: 11, Acked: 4,
			Members: &kit.MemberChange{Change: smr.Change{Remove: 2}}},
	}}
	nothing := &epaxos.Command{Kind: epaxos.Nothing}
	return []smr.Message{
		epaxos.PreAccept{Head: h, ID: id, Cmd: work, Deps: deps},
		epaxos.PreAccept{Head: h, ID: id, Deps: deps},
		epaxos.Lacking{Head: h, ID: id},
		epaxos.PreAccepted{Head: h, ID: id, Deps: deps, Fenced: true},
		epaxos.Accept{Head: h, ID: id, Ballot: 1<<32 | 2, Cmd: nothing, Deps: deps},
		epaxos.Accepted{Head: h, ID: id, Ballot: 5},
		epaxos.Commit{Head: h, ID: id, Cmd: &epaxos.Command{Kind: epaxos.Checkpoint, Stamp: 3}, Deps: deps},
		epaxos.Recover{Head: h, ID: id, Ballot: 5},
		epaxos.Recovered{Head: h, ID: id, Ballot: 5},
		epaxos.Recovered{Head: h, ID: id, Ballot: 5, Phase: 2, Voted: 4, Cmd: work, Init: deps, Deps: deps},
		epaxos.Validate{Head: h, ID: id, Ballot: 5, Cmd: work, Deps: deps},
		epaxos.Validated{Head: h, ID: id, Ballot: 5, Invalid: true, Pending: []epaxos.ID{id, {Row: 1, Index: 1}}},
		epaxos.Waiting{Head: h, ID: id, Agreed: 2},
		epaxos.Refusal{Head: h, ID: id, Promised: 6},
		epaxos.News{Head: h, Top: deps},
		epaxos.Fetch{Head: h, Missing: []epaxos.Range{{Row: 1, First: 2, Last: 3}, {Row: 2, First: 1, Last: 1}}},
		epaxos.Poll{Head: h, Round: 3, Keys: []string{"ka", "kb"}},
		epaxos.Poll{Head: h, Round: 3, All: true},
		epaxos.Polled{Head: h, Round: 3, Deps: deps},
		epaxos.Settled{Head: h, ID: id},
		epaxos.InstanceRecord{ID: id, Phase: 1, Cmd: work, Init: deps, Deps: deps},
		epaxos.InstanceRecord{ID: id, Phase: 3, Ballot: 6, Voted: 5, Nothing: true, Deps: deps},
	}
}

func TestCodec(t *testing.T) {
	codec := epaxos.Codec()
	wiretest.Codec(t, codec, 64, messages())
	for what, m := range map[string]smr.Message{
		"9 is no kind of command": epaxos.Accept{Cmd: &epaxos.Command{Kind: 9}},
		"there is no command":     epaxos.Validate{},
		"4 is no phase":           epaxos.InstanceRecord{Phase: 4},
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

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, epaxos.Codec(), messages()) }

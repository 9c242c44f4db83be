package domino

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// voter is a client of five replicas, without a network.
func voter(t *testing.T, o Options) (*client, *protocol.Env[smr.Message]) {
	t.Helper()
	var members []smr.Member
	for id := protocol.ID(1); id <= 5; id++ {
		members = append(members, smr.Member{ID: id})
	}
	c, err := newClient(smr.ClientConfig{ID: 100, Members: members, RoundTrip: 80 * time.Millisecond}, o)
	if err != nil {
		t.Fatal(err)
	}
	c.Session = 1
	env := protocol.NewEnv[smr.Message](nil, 1<<20, rand.New(rand.NewPCG(1, 1)))
	env.Begin(time.Minute)
	return c, env
}

// TestFailuresWithoutAllVotes: with one of five replicas gone and one that votes against, three
// votes for and one against decide nothing, and the coordinator tells what became of the slot.
// Clients notice that the fast path fails, though they never get all votes, and leave it alone.
func TestFailuresWithoutAllVotes(t *testing.T) {
	c, env := voter(t, thesis())
	for s := range smr.Slot(8) {
		slot := (s + 1) * stride
		c.attempts[slot] = &attempt{}
		for id := protocol.ID(1); id <= 4; id++ {
			verdict := yes
			if id == 4 && s%2 == 0 {
				verdict = no
			}
			if id == 4 && s%2 == 1 {
				verdict = full
			}
			c.onVote(env, id, vote{Session: 1, Slot: slot, Members: 5, Verdict: verdict})
		}
		if c.pause > 0 {
			t.Fatalf("the fast path is left alone after %d slots", s)
		}
		c.onOutcome(env, outcome{Session: 1, Slot: slot, Committed: true})
	}
	if c.pause == 0 {
		t.Error("the fast path is not left alone, after eight failures of eight")
	}
	if taken, tried := c.FastPath(); taken != 0 || tried != 8 {
		t.Errorf("%d of %d on the fast path, want 0 of 8", taken, tried)
	}
}

// TestSlackOfOtherRefusals: that somebody has no room, or the slot is another one's, does not tell
// that the slack in force is needed; votes that came early, and those that came too late, do.
func TestSlackOfOtherRefusals(t *testing.T) {
	const slack = 4 * time.Millisecond
	for _, tc := range []struct {
		vote vote
		want time.Duration
	}{
		{vote{Verdict: full}, 0},
		{vote{Verdict: no}, 0},
		{vote{Verdict: yes, Late: -3 * time.Millisecond}, time.Millisecond},
		{vote{Verdict: no, Late: 2 * time.Millisecond}, 6 * time.Millisecond},
		{vote{Verdict: no, Late: 7 * time.Millisecond}, 0}, // more than an eighth of the round trip
	} {
		o := beyond()
		o.AdaptSlack = true
		c, env := voter(t, o)
		c.attempts[stride] = &attempt{slack: slack}
		tc.vote.Session, tc.vote.Slot, tc.vote.Members = 1, stride, 5
		c.onVote(env, 1, tc.vote)
		if got := c.slack(env.Now); got != tc.want {
			t.Errorf("%+v: slack %v, want %v", tc.vote, got, tc.want)
		}
	}
}

// TestBatchIsBounded: a client puts no more commands in a slot than Options.Batch, and no more
// bytes in a message than one may have.
func TestBatchIsBounded(t *testing.T) {
	o := thesis()
	o.Batch = 3
	c, _ := voter(t, o)
	calls := func(n, bytes int) []*kit.Pending {
		var out []*kit.Pending
		for range n {
			out = append(out, &kit.Pending{Call: smr.Call{Kind: smr.Propose, Command: make([]byte, bytes)}})
		}
		return out
	}
	for _, tc := range []struct{ calls, bytes, most, want int }{
		{10, 16, o.Batch, 3}, {3, 16, o.Batch, 3}, {2, 16, o.Batch, 2}, {1, smr.MaxCommandBytes, o.Batch, 1},
		{2000, 16, maxSubmit, maxSubmit},
		{maxSubmit, kit.MessageBytes / 4, maxSubmit, 4}, {2, smr.MaxCommandBytes, maxSubmit, 1},
	} {
		first, all := 0, 0
		for m, some := range c.requests(calls(tc.calls, tc.bytes), tc.most) {
			if first == 0 {
				first = len(some)
			}
			if all += len(some); len(m.Commands) != len(some) || len(m.Acks) != len(some) {
				t.Errorf("%+v: %d commands, %d acks of %d calls", tc, len(m.Commands), len(m.Acks), len(some))
			}
		}
		if first != tc.want || all != tc.calls {
			t.Errorf("%+v: %d in the first message, %d in all", tc, first, all)
		}
	}
}

// TestClientTakesMembers: a client node that is told the members by its application asks those, and
// goes on with the ones that it has if it is told of none.
func TestClientTakesMembers(t *testing.T) {
	c, env := voter(t, thesis())
	members := []smr.Member{{ID: 5}, {ID: 6}, {ID: 7}}
	for _, told := range [][]smr.Member{members, nil} {
		c.Receive(env, protocol.App, smr.MembersAre{Members: told})
		env.Begin(env.Now)
		c.probe(env)
		var asked []protocol.ID
		for _, e := range env.Out {
			if _, ok := e.Msg.(probe); ok {
				asked = append(asked, e.To)
			}
		}
		if !slices.Equal(asked, []protocol.ID{5, 6, 7}) {
			t.Errorf("told of %v, it asks %v, want 5, 6 and 7", told, asked)
		}
	}
}

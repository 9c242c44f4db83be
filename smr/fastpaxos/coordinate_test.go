package fastpaxos

import (
	"slices"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/smrtest"
)

// lead has replica 1 coordinate its next era: a majority promises, and tells of votes.
func lead(t *testing.T, r *replica, env *protocol.Env[smr.Message], disk *smrtest.Disk, votes ...vote) {
	t.Helper()
	r.campaign(env, false)
	disk.Write(env, 0)
	era, n := r.cand.era, len(r.State.MemberIDs())
	for id := 2; id <= n/2+1; id++ {
		from := protocol.ID(id)
		r.Receive(env, from, kit.Letter{Disk: kit.Incarnation(id),
			Msg: promise{head: head{Era: era, Generation: r.State.Generation()}, Low: r.State.Applied() + 1, Votes: votes}})
		for len(env.Out) > 0 { // its own promise comes from its disk
			out := slices.Clone(env.Out)
			disk.Write(env, 0)
			for _, e := range out {
				if e.To == 1 {
					r.Receive(env, 1, e.Msg)
				}
			}
		}
	}
	if r.lead == nil {
		t.Fatal("replica 1 does not coordinate")
	}
}

// work is an entry with a command.
func work(seq kit.Seq) kit.Entry {
	return kit.Entry{Kind: kit.Command, Client: 9, Session: 1, Seq: seq, Command: kv.Put([]byte("k"), nil)}
}

// TestVotesOfTheEraCount: those of an earlier era may be for something else than what this one's
// phase 1 has found.
func TestVotesOfTheEraCount(t *testing.T) {
	r, env, disk := begun(t, 3)
	lead(t, r, env, disk)
	lead(t, r, env, disk)
	for era, want := range map[kit.Ballot]bool{kit.NewBallot(0, 1): false, r.promised: true} {
		h := head{Era: era, Generation: r.State.Generation()}
		r.onVoted(env, 2, voted{h, []item{{r.open, work(1)}}})
		if counted := r.lead.tallies[r.open] != nil; counted != want {
			t.Errorf("a fast vote of the era %v in %v: counts %v", era, r.promised, counted)
		}
		delete(r.lead.tallies, r.open)
		r.proposeIn(50, work(2))
		r.onAccepted(env, 2, accepted{h, []smr.Slot{50}})
		if counted := r.lead.tallies[50].acks.Len() > 0; counted != want {
			t.Errorf("a classic vote of the era %v in %v: counts %v", era, r.promised, counted)
		}
		delete(r.lead.tallies, 50)
	}
}

// TestMembersOfOneGeneration: who has other members counts other quorums, so no vote is cast nor
// counted.
func TestMembersOfOneGeneration(t *testing.T) {
	for _, other := range []uint64{0, 1} {
		r, env, _ := begun(t, 3)
		h := head{Era: kit.NewBallot(0, 2), Generation: r.State.Generation() + other}
		r.Receive(env, 2, kit.Letter{Disk: 2, Msg: accept{h, []item{{1, work(1)}}}})
		if accepted := r.top == 1; accepted != (other == 0) {
			t.Errorf("the coordinator's generation is higher by %d: accepted %v", other, accepted)
		}
	}
}

// TestReadsAskAMajority: a query is answered when a majority, the coordinator in it, has said that
// it follows, and what it has voted on is executed.
func TestReadsAskAMajority(t *testing.T) {
	for _, c := range []struct {
		members, follow int
		top             smr.Slot
		answered        bool
	}{{3, 0, 0, false}, {3, 1, 0, true}, {3, 1, 1, false}, {5, 1, 0, false}, {5, 2, 0, true}} {
		r, env, disk := begun(t, c.members)
		lead(t, r, env, disk)
		var out []protocol.Effect[smr.Message]
		step := func(from protocol.ID, m smr.Message) {
			r.Receive(env, from, m)
			out = append(out, env.Out...)
			disk.Write(env, 0)
		}
		step(77, kit.ReadRequest{Queries: []kit.Query{{ID: 1, Body: []byte("k")}}})
		for id := 2; id < 2+c.follow; id++ {
			step(protocol.ID(id), kit.Letter{Disk: kit.Incarnation(id),
				Msg: polled{head{Era: r.promised, Generation: r.State.Generation()}, r.lead.reads.Round(), c.top}})
		}
		answered := slices.ContainsFunc(out, func(e protocol.Effect[smr.Message]) bool {
			_, ok := e.Msg.(kit.ReadReplies)
			return ok
		})
		if answered != c.answered {
			t.Errorf("%+v: answered %v", c, answered)
		}
	}
}

// TestPhaseOneComesFirst: slots up to the last in which somebody has voted are decided in classic
// rounds, those behind are open, and reads that came before wait for the former.
func TestPhaseOneComesFirst(t *testing.T) {
	r, env, disk := begun(t, 3)
	lead(t, r, env, disk)
	r.lead.reads.Take(env, r.Cfg, 77, []kit.Query{{ID: 1}}, 0)
	lead(t, r, env, disk, vote{Slot: 5, Era: kit.NewBallot(0, 2), Entry: work(1)})
	if r.open != 6 || r.lead.tallies[5] == nil || !r.lead.tallies[5].classic {
		t.Errorf("a vote in slot 5 was found, and slots from %d on are open", r.open)
	}
	for _, id := range []protocol.ID{2, 3} {
		r.Receive(env, id, kit.Letter{Disk: kit.Incarnation(id),
			Msg: polled{head: r.head(r.promised), Round: r.lead.reads.Round()}})
	}
	if r.lead.reads.Round() == 0 || !r.lead.reads.Waiting() {
		t.Errorf("queries were asked for %d times, and wait: %v; want them to wait for slot 5", r.lead.reads.Round(),
			r.lead.reads.Waiting())
	}
}

// TestNothingAboveAChange: what is above a change of the members is the new ones' affair.
func TestNothingAboveAChange(t *testing.T) {
	r, env, disk := begun(t, 3)
	lead(t, r, env, disk)
	r.lead.classic, r.open = true, 0
	change := kit.Entry{Kind: kit.ChangeMembers, Client: 9, Session: 1, Seq: 1,
		Members: &kit.MemberChange{Change: smr.Change{Remove: 3}}}
	r.lead.wants = []*want{{entry: change}, {entry: work(2)}}
	r.propose(env, 0)
	if got := r.lead.accepts; len(got) != 1 || got[0].Entry.Kind != kit.ChangeMembers {
		t.Errorf("proposed %+v, want the change only", got)
	}
}

// TestChangeIsOnDisk: a replica that has applied a change of the members knows of it after a crash,
// before it votes for anything.
func TestChangeIsOnDisk(t *testing.T) {
	r, env, disk := begun(t, 3)
	h := head{Era: kit.NewBallot(0, 2), Generation: r.State.Generation()}
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: decided{head: h, Items: []item{
		{1, kit.Entry{Kind: kit.OpenSession, Client: 9, Seq: 5, Open: &kit.Open{MaxSessions: 10, Window: 100}}},
		{2, kit.Entry{Kind: kit.ChangeMembers, Client: 9, Session: 1, Seq: 1, Acked: 1,
			Members: &kit.MemberChange{Change: smr.Change{Remove: 3}}}},
	}}})
	if len(r.State.MemberIDs()) != 2 {
		t.Fatalf("the members are %v", r.State.MemberIDs())
	}
	disk.Write(env, 0)
	if r, _ = smrtest.OnDisk(t, disk, newReplica, one(3)); len(r.State.MemberIDs()) != 2 {
		t.Errorf("after a crash the members are %v", r.State.MemberIDs())
	}
}

// TestClientsCountVotesOfOneKind: votes for a command fix its position if they are of one era, in
// one slot, by the same members.
func TestClientsCountVotesOfOneKind(t *testing.T) {
	for name, c := range map[string]struct {
		era, generation uint64
		slot            smr.Slot
		fixed           bool
	}{"all the same": {0, 0, 0, true}, "another era": {1, 0, 0, false}, "other members": {0, 1, 0, false},
		"another slot": {0, 0, 1, false}} {
		client, err := newClient(smr.ClientConfig{ID: 77, Members: []smr.Member{{ID: 1}, {ID: 2}, {ID: 3}}})
		if err != nil {
			t.Fatal(err)
		}
		env := new(smrtest.Disk).Env()
		client.session, client.counts[1] = 1, []count{}
		for id := range uint64(3) {
			m := cast{head: head{Era: kit.NewBallot(0, 2)}, Need: 3, Session: 1, Items: []kit.EarlyReply{{Seq: 1, Slot: 7}}}
			if id == 2 {
				m.Era, m.Generation, m.Items[0].Slot = m.Era+kit.Ballot(c.era<<32), m.Generation+c.generation, 7+c.slot
			}
			client.onCast(env, protocol.ID(id+1), m)
		}
		if _, open := client.counts[1]; open == c.fixed {
			t.Errorf("%s: fixed %v", name, !open)
		}
	}
}

// TestHigherAttemptGoesOn: of two that stand at the same time, the one with the higher era comes
// through, though it has promised the other one: the others keep to the higher.
func TestHigherAttemptGoesOn(t *testing.T) {
	r, env, disk := begun(t, 3)
	lower := kit.NewBallot(0, 3)
	r.above = lower
	r.silent = courtesy
	r.campaign(env, false)
	c := r.cand
	if c == nil || c.era <= lower {
		t.Fatalf("replica 1 does not stand in an era above %v: %+v", lower, c)
	}
	head := func(e kit.Ballot) head { return head{Era: e, Generation: r.State.Generation()} }
	r.Receive(env, 3, kit.Letter{Disk: 3, Msg: prepare{head(lower), r.State.Applied() + 1}})
	if r.promised != lower {
		t.Fatalf("promised %v, want %v", r.promised, lower)
	}
	disk.Write(env, 0)
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: promise{head: head(c.era), Low: r.State.Applied() + 1}})
	for _, e := range slices.Clone(env.Out) {
		if _, own := kit.Inside(e.Msg).(promise); own && e.To == 1 {
			r.Receive(env, 1, e.Msg)
		}
	}
	if r.lead == nil || r.promised != c.era {
		t.Errorf("promised %v and coordinates %v, want to coordinate %v", r.promised, r.lead != nil, c.era)
	}
}

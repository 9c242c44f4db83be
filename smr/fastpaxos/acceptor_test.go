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

// one is the configuration of replica 1 of some.
func one(members int) smr.ReplicaConfig {
	return smr.ReplicaConfig{ID: 1, Members: smrtest.Group(members), Machine: kv.New()}
}

// begun returns replica 1, which takes part, with its disk.
func begun(t *testing.T, members int) (*replica, *protocol.Env[smr.Message], *smrtest.Disk) {
	t.Helper()
	disk := &smrtest.Disk{}
	r, env := smrtest.OnDisk(t, disk, newReplica, one(members))
	disk.Admit(r, env, one(members), r.Admission.Own())
	return r, env, disk
}

// follow has it follow an era's coordinator, with slots open from one on.
func follow(r *replica, env *protocol.Env[smr.Message], e kit.Ballot, open smr.Slot) {
	id := e.Owner()
	r.Receive(env, id, kit.Letter{Disk: kit.Incarnation(id),
		Msg: beat{head: head{Era: e, Generation: r.State.Generation()}, Leads: true, Open: open}})
}

// command is a request of one new command.
func command(seq kit.Seq) requestCopy {
	return requestCopy{kit.Request{Session: 1, Acked: 1,
		Commands: []kit.RequestedCommand{{Seq: seq, Early: true, Command: kv.Put([]byte("k"), nil)}}}}
}

// TestVotesAreInOpenSlots: an acceptor that knows of few slots does not vote in those below the
// open ones: the coordinator has others' entries proposed there, and a client would count.
func TestVotesAreInOpenSlots(t *testing.T) {
	r, env, _ := begun(t, 3)
	follow(r, env, kit.NewBallot(0, 2), 10)
	r.Receive(env, 77, command(1))
	if r.fastTop != 10 {
		t.Errorf("voted in slot %d, want 10, the first that is open", r.fastTop)
	}
	// Where it has accepted in the classic round, which is above the fast one, it does not vote any
	// more.
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: accept{head{Era: kit.NewBallot(0, 2), Generation: r.State.Generation()},
		[]item{{11, work(7)}}}})
	r.Receive(env, 77, command(2))
	if r.fastTop != 12 {
		t.Errorf("voted in slot %d, want 12, as slot 11 has a classic vote", r.fastTop)
	}
}

// TestOwnVotesAreBoundedInBytes: an acceptor leaves it to the coordinator to have more decided,
// until what it has voted for is executed, whatever became of its own votes.
func TestOwnVotesAreBoundedInBytes(t *testing.T) {
	r, env, _ := begun(t, 3)
	r.Cfg.MaxPendingBytes = 100
	era := kit.NewBallot(0, 2)
	follow(r, env, era, 1)
	large := func(seq kit.Seq, bytes int) requestCopy {
		return requestCopy{kit.Request{Session: 1, Acked: 1,
			Commands: []kit.RequestedCommand{{Seq: seq, Command: make([]byte, bytes)}}}}
	}
	for seq, c := range []struct {
		bytes int
		top   smr.Slot
	}{{200, 1}, {1, 1}} {
		if r.Receive(env, 77, large(kit.Seq(seq+1), c.bytes)); r.fastTop != c.top {
			t.Errorf("command %d, of %d bytes: voted up to slot %d, want %d", seq+1, c.bytes, r.fastTop, c.top)
		}
	}
	head := head{Era: era, Generation: r.State.Generation()}
	other := kit.Entry{Kind: kit.Command, Client: 78, Session: 1, Seq: 9, Command: kv.Put([]byte("k"), nil)}
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: accept{head, []item{{1, other}}}}) // in the place of its own vote
	own := kit.Entry{Kind: kit.Command, Client: 77, Session: 1, Seq: 1, Command: make([]byte, 200)}
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: decided{head: head, Items: []item{{1, other}, {2, own}}}})
	if r.State.Applied() != 2 || r.oursBytes != 0 {
		t.Fatalf("applied up to slot %d, and %d bytes are left of own votes", r.State.Applied(), r.oursBytes)
	}
	for seq := range kit.Seq(3) {
		r.Receive(env, 77, large(10+seq, 40))
	}
	if r.fastTop != 4 {
		t.Errorf("with room for two of three commands, voted up to slot %d, want 4", r.fastTop)
	}
	if follow(r, env, kit.NewBallot(era, 2), 10); r.oursBytes != 0 {
		t.Errorf("in another era %d bytes are left", r.oursBytes)
	}
}

// TestLastVoteSurvivesCrash: what an acceptor tells those who read is of its votes before a crash
// too.
func TestLastVoteSurvivesCrash(t *testing.T) {
	r, env, disk := begun(t, 3)
	follow(r, env, kit.NewBallot(0, 2), 10)
	for s := range kit.Seq(5) {
		r.Receive(env, 77, command(s+1))
	}
	disk.Write(env, 0)
	top := r.fastTop
	if r, _ = smrtest.OnDisk(t, disk, newReplica, one(3)); top != 14 || r.fastTop != top || r.top != top {
		t.Errorf("the last vote was in slot %d, and is after a crash in %d", top, r.fastTop)
	}
}

// TestCandidateKnowsWhatVotersHaveExecuted: acceptors forget votes in slots that they have
// executed. Who knows less of these must catch up first.
func TestCandidateKnowsWhatVotersHaveExecuted(t *testing.T) {
	for _, applied := range []smr.Slot{0, 3} {
		r, env, disk := begun(t, 3)
		r.campaign(env, false)
		era := r.cand.era
		disk.Write(env, 0)
		promise := func(id protocol.ID) {
			r.Receive(env, id, kit.Letter{Disk: kit.Incarnation(id),
				Msg: promise{head: head{Era: era, Generation: r.State.Generation()}, Low: 1, Applied: applied}})
			for len(env.Out) > 0 { // its own promise comes back from its disk
				out := slices.Clone(env.Out)
				disk.Write(env, 0)
				for _, e := range out {
					if e.To == 1 {
						r.Receive(env, 1, e.Msg)
					}
				}
			}
		}
		promise(2)
		if leads := r.lead != nil; leads != (applied == 0) {
			t.Errorf("a voter has executed %d slots: leads %v", applied, leads)
		}
	}
}

// TestDecidedCommandIsInMemoryOnce: a replica that voted for what is decided in its slot does not
// keep the bytes of both messages until its log is cut.
func TestDecidedCommandIsInMemoryOnce(t *testing.T) {
	r, env, _ := begun(t, 3)
	follow(r, env, kit.NewBallot(0, 2), 10)
	r.Receive(env, 77, command(1))
	vote := r.cell(10).vote.Entry
	if vote.Kind != kit.Command {
		t.Fatalf("it voted for %v in slot 10", vote)
	}
	told := vote
	told.Command = slices.Clone(vote.Command)
	h := head{Era: kit.NewBallot(0, 2), Generation: r.State.Generation()}
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: decided{head: h,
		Items: []item{{10, told}}}})
	c := r.cell(10)
	if !c.decided || !c.value.Equal(told) {
		t.Fatalf("slot 10: %v, %v", c.decided, c.value)
	}
	if &c.value.Command[0] != &vote.Command[0] {
		t.Error("the command is in memory twice")
	}
}

// TestSuggestedIsVotedFor: three acceptors that are each full with another command, of which none
// is decided, still vote for what the coordinator suggests.
func TestSuggestedIsVotedFor(t *testing.T) {
	r, env, _ := begun(t, 3)
	r.Cfg.MaxPendingBytes = 100
	era := kit.NewBallot(0, 2)
	follow(r, env, era, 1)
	entry := func(seq kit.Seq) kit.Entry {
		return kit.Entry{Kind: kit.Command, Client: 77, Session: 1, Seq: seq, Command: make([]byte, 90)}
	}
	for seq := range kit.Seq(2) {
		r.Receive(env, 77, requestCopy{kit.Request{Session: 1, Acked: 1,
			Commands: []kit.RequestedCommand{{Seq: seq + 1, Command: entry(seq + 1).Command}}}})
	}
	if r.fastTop != 1 {
		t.Fatalf("voted up to slot %d, want 1: there is no room for the second command", r.fastTop)
	}
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: suggest{head{Era: era, Generation: r.State.Generation()},
		[]kit.Entry{entry(2)}}})
	if r.fastTop != 2 || r.oursBytes != 180 {
		t.Errorf("with the coordinator's suggestion: voted up to slot %d, %d bytes of own votes, want 2 and 180", r.fastTop,
			r.oursBytes)
	}
}

// TestLaggardStartsAgain: a replica that executed far more than it voted for, and then votes, finds
// its way on its disk: the slots between are there.
func TestLaggardStartsAgain(t *testing.T) {
	r, env, disk := begun(t, 3)
	h := head{Era: kit.NewBallot(0, 2), Generation: r.State.Generation()}
	const last = 5 * window
	for first := smr.Slot(1); first <= last; first += window {
		m := decided{head: h}
		for s := first; s < first+window; s++ {
			m.Items = append(m.Items, item{s, work(kit.Seq(s))})
		}
		r.Receive(env, 2, kit.Letter{Disk: 2, Msg: m})
		disk.Write(env, 0)
	}
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: accept{h, []item{{last + 1, work(last + 1)}}}})
	disk.Write(env, 0)
	if r.State.Applied() != last {
		t.Fatalf("executed up to %d, want %d", r.State.Applied(), last)
	}
	if again, _ := smrtest.OnDisk(t, disk, newReplica, one(3)); again.Over() || again.cell(last+1).vote.Slot != last+1 {
		t.Error("the replica does not start with what it wrote")
	}
}

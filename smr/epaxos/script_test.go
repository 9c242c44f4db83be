package epaxos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// theatre holds replicas whose messages are delivered by hand.
type theatre struct {
	t     *testing.T
	nodes map[protocol.ID]*replica
	envs  map[protocol.ID]*protocol.Env[smr.Message]
	mail  []mail
	told  []kit.Replies // to clients
}

type mail struct {
	from, to protocol.ID
	msg      smr.Message
}

// newTheatre returns a group that has begun.
func newTheatre(t *testing.T, n int) *theatre {
	th := &theatre{t: t, nodes: map[protocol.ID]*replica{}, envs: map[protocol.ID]*protocol.Env[smr.Message]{}}
	var group []smr.Member
	for i := range n {
		group = append(group, smr.Member{ID: protocol.ID(i + 1)})
	}
	for _, m := range group {
		r, err := newReplica(smr.ReplicaConfig{ID: m.ID, Members: group, Machine: newRegisters(nil), RoundTrip: trip})
		if err != nil {
			t.Fatal(err)
		}
		th.nodes[m.ID] = r
		th.envs[m.ID] = protocol.NewEnv[smr.Message](nil, 1, rand.New(rand.NewPCG(uint64(m.ID), 1)))
		th.do(m.ID, func(r *replica, env *protocol.Env[smr.Message]) { r.Start(env, nil) })
	}
	th.deliver(nil)
	for id, r := range th.nodes {
		if !r.active {
			t.Fatalf("replica %d does not take part", id)
		}
	}
	return th
}

// do calls a replica.
func (th *theatre) do(id protocol.ID, call func(*replica, *protocol.Env[smr.Message])) {
	env := th.envs[id]
	env.Begin(0)
	call(th.nodes[id], env)
	for _, e := range env.Out {
		if e.Kind != protocol.KindSend && e.Kind != protocol.KindSendAhead {
			continue
		}
		if m, ok := e.Msg.(kit.Replies); ok {
			th.told = append(th.told, m)
		}
		th.mail = append(th.mail, mail{id, e.To, e.Msg})
	}
	if err := th.nodes[id].Check(); err != nil {
		th.t.Errorf("replica %d: %v", id, err)
	}
}

// deliver delivers the mail that is wanted, and what comes of it, and loses the rest. nil wants
// all.
func (th *theatre) deliver(want func(m mail) bool) {
	for len(th.mail) > 0 {
		m := th.mail[0]
		th.mail = th.mail[1:]
		if r := th.nodes[m.to]; r != nil && (want == nil || m.from == m.to || want(m)) {
			th.do(m.to, func(r *replica, env *protocol.Env[smr.Message]) { r.Receive(env, m.from, m.msg) })
		}
	}
}

// among wants what these replicas say to each other.
func among(ids ...protocol.ID) func(mail) bool {
	return func(m mail) bool { return slices.Contains(ids, m.from) && slices.Contains(ids, m.to) }
}

// except wants what one wants and the other does not lose.
func (th *theatre) except(f func(mail) bool, lose func(mail) bool) func(mail) bool {
	return func(m mail) bool { return f(m) && !lose(m) }
}

func isCommit(m mail) bool { _, ok := kit.Inside(m.msg).(commit); return ok }

// propose has a replica propose a command of its own.
func (th *theatre) propose(id protocol.ID, c *command) instanceID {
	var out instanceID
	th.do(id, func(r *replica, env *protocol.Env[smr.Message]) {
		out = instanceID{id, r.rows[r.position(id)].top() + 1}
		r.begin(env, c, &proposal{entries: c.Entries})
	})
	return out
}

func workOn(value string, keys ...string) *command {
	return &command{Kind: work, Entries: []kit.Entry{{Kind: kit.Command, Client: 99, Session: 1, Seq: kit.Seq(len(value)),
		Command: set(value, keys...)}}}
}

func (th *theatre) recover(by protocol.ID, id instanceID) {
	th.do(by, func(r *replica, env *protocol.Env[smr.Message]) { r.recover(env, r.find(id)) })
}

// decisions returns what replicas know to be decided about an instance.
func (th *theatre) decisions(id instanceID) []string {
	var out []string
	for who := range protocol.ID(len(th.nodes)) {
		if i := th.nodes[who+1].find(id); i.phase == phaseCommitted {
			out = append(out, fmt.Sprintf("nothing %v, after %v", i.nothing, i.deps))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// take takes mail out.
func (th *theatre) take(want func(mail) bool) []mail {
	var out []mail
	th.mail = slices.DeleteFunc(th.mail, func(m mail) bool {
		if want(m) {
			out = append(out, m)
			return true
		}
		return false
	})
	return out
}

// TestRecoveryValidates has two commands that conflict, of which neither proposer heard of the
// other one. One is decided on the fast path, by 3, 4 and 5. The other one could have been, as far
// as 2 knows, if 1 and another one had agreed. Recovery must not decide it as it was proposed.
func TestRecoveryValidates(t *testing.T) {
	for _, tell := range []bool{true, false} {
		th := newTheatre(t, 5)
		c := th.propose(1, workOn("c", "k"))
		th.deliver(func(m mail) bool { _, ask := kit.Inside(m.msg).(preAccept); return ask && m.to == 2 })
		d := th.propose(5, workOn("dd", "k"))
		quorum := among(3, 4, 5)
		if !tell {
			quorum = th.except(quorum, isCommit)
		}
		th.deliver(quorum)
		if !th.nodes[5].find(d).decided() {
			t.Fatal("the second command is not decided")
		}
		th.recover(2, c)
		th.deliver(among(2, 3, 4))
		i := th.nodes[2].find(c)
		o := th.nodes[5].find(d)
		ordered := i.phase == phaseCommitted && (i.nothing || i.deps.has(o) || o.deps.has(i))
		if !ordered {
			t.Errorf("the first is %v, nothing %v, after %v; the second after %v", i.phase, i.nothing, i.deps, o.deps)
		}
	}
}

// TestRecoveriesDoNotWaitForEachOther has commands that conflict and are known to one replica
// beside their proposers each, who are gone. The recoveries of both wait for each other, until they
// hear that.
func TestRecoveriesDoNotWaitForEachOther(t *testing.T) {
	th := newTheatre(t, 5)
	c := th.propose(1, workOn("c", "k"))
	th.deliver(func(m mail) bool { _, ask := kit.Inside(m.msg).(preAccept); return ask && m.to == 3 })
	d := th.propose(2, workOn("dd", "k"))
	th.deliver(func(m mail) bool { _, ask := kit.Inside(m.msg).(preAccept); return ask && m.to == 4 })
	th.recover(3, c)
	th.recover(4, d)
	th.deliver(among(3, 4, 5))
	for _, id := range []instanceID{c, d} {
		if got := th.decisions(id); len(got) != 1 {
			t.Errorf("%v: decided is %v", id, got)
		}
	}
}

// TestFastDecisionIsOnDiskBeforeItIsTold: a proposer that can say after a crash that it did not
// decide makes recovery simple. So it must not have told anybody.
func TestFastDecisionIsOnDiskBeforeItIsTold(t *testing.T) {
	th := newTheatre(t, 3)
	id := th.propose(1, workOn("c", "k"))
	own := th.take(func(m mail) bool { return m.to == 1 })
	th.deliver(among(1, 2))
	for _, m := range own {
		th.do(1, func(r *replica, env *protocol.Env[smr.Message]) { r.Receive(env, 1, m.msg) })
	}
	if i := th.nodes[1].find(id); i.phase != phaseCommitted {
		t.Fatalf("replica 1 is %v", i.phase)
	}
	asked := fetch{head: th.nodes[3].head(), Missing: []span{{Row: 1, First: 1, Last: 1}}}
	th.do(1, func(r *replica, env *protocol.Env[smr.Message]) { r.Receive(env, 3, asked) })
	if slices.ContainsFunc(th.mail, isCommit) {
		t.Error("another replica is told")
	}
}

// TestDurableWaitsForChanges has a command whose acceptor knows of a change of the members. Its
// client is not told that it is durable: the change may end the generation before.
func TestDurableWaitsForChanges(t *testing.T) {
	th := newTheatre(t, 3)
	th.propose(3, &command{Kind: work, Entries: []kit.Entry{{Kind: kit.ChangeMembers, Client: 99, Session: 1, Seq: 1,
		Members: &kit.MemberChange{Change: smr.Change{Remove: 2}}}}})
	th.deliver(func(m mail) bool { _, ask := kit.Inside(m.msg).(preAccept); return ask && m.to == 2 })
	c := workOn("c", "k")
	th.nodes[1].early[ticketOf(c.Entries[0])] = early{}
	id := th.propose(1, c)
	th.deliver(among(1, 2))
	if i := th.nodes[1].find(id); !i.decided() {
		t.Fatalf("replica 1 is %v", i.phase)
	}
	if len(th.told) > 0 {
		t.Errorf("told %v", th.told)
	}
}

// TestDurableWaitsForWhatNobodyKnows has a command that depends on a change of the members which
// nobody of its quorum knows: the change was lost on the way, and a later instance of its row
// arrived. Of five the change can be recovered as it was proposed, without the command, which is
// void then; so its client must not have been told that it is durable. Of three it cannot: all but
// its proposer are in the quorum, so nobody who is asked has agreed with it.
func TestDurableWaitsForWhatNobodyKnows(t *testing.T) {
	for n, reachable := range map[int][]protocol.ID{3: {1, 2}, 5: {2, 3, 4}} {
		for _, added := range []bool{false, true} { // by an acceptor, not the proposer
			th := newTheatre(t, n)
			last := protocol.ID(n)
			change := th.propose(last, &command{Kind: work,
				Entries: []kit.Entry{{Kind: kit.ChangeMembers, Client: 99, Session: 1, Seq: 1,
					Members: &kit.MemberChange{Change: smr.Change{Remove: 2}}}}})
			th.deliver(func(m mail) bool { _, ask := kit.Inside(m.msg).(preAccept); return ask && m.to == 4 })
			later, knows := th.propose(last, workOn("dd", "k")), protocol.ID(1)
			if added {
				knows = 2
			}
			th.deliver(func(m mail) bool { _, ask := kit.Inside(m.msg).(preAccept); return ask && m.to == knows })
			c := workOn("c", "k")
			th.nodes[1].early[ticketOf(c.Entries[0])] = early{}
			id := th.propose(1, c)
			th.deliver(th.except(among(1, 2, 3), func(m mail) bool { return m.from == last || m.to == last }))
			i := th.nodes[1].find(id)
			if !i.decided() || !i.deps.has(th.nodes[1].find(change)) || !i.deps.has(th.nodes[1].find(later)) {
				t.Fatalf("of %d: the command is %v, after %v", n, i.phase, i.deps)
			}
			if len(th.told) > 0 {
				t.Errorf("of %d, added %v: the client was told %v", n, added, th.told)
			}
			by := reachable[len(reachable)-1]
			th.recover(by, change)
			th.deliver(among(reachable...))
			got := th.nodes[by].find(change)
			voids := !got.nothing && !got.deps.has(i)
			if got.phase != phaseCommitted || voids != (n == 5) {
				t.Errorf("of %d: the change is %v, nothing %v, after %v", n, got.phase, got.nothing, got.deps)
			}
		}
	}
}

// TestLateChangeComesBehind: with three, the proposer of a change that no other one knew needs one
// of those that made a command durable. Whichever it reaches, the change comes behind the command.
func TestLateChangeComesBehind(t *testing.T) {
	for late := range protocol.ID(2) {
		late++
		th := newTheatre(t, 3)
		change := th.propose(3, &command{Kind: work,
			Entries: []kit.Entry{{Kind: kit.ChangeMembers, Client: 99, Session: 1, Seq: 1,
				Members: &kit.MemberChange{Change: smr.Change{Remove: 2}}}}})
		asks := th.take(func(m mail) bool { return m.to == late })
		th.deliver(func(mail) bool { return false }) // the own vote arrives
		th.propose(3, workOn("dd", "k"))
		th.deliver(func(m mail) bool { _, ask := kit.Inside(m.msg).(preAccept); return ask && m.to == 3-late })
		id := th.propose(1, workOn("c", "k"))
		th.deliver(among(1, 2))
		if i := th.nodes[1].find(id); !i.decided() || !i.deps.has(th.nodes[1].find(change)) {
			t.Fatalf("the command is %v, after %v", i.phase, i.deps)
		}
		th.mail = append(th.mail, asks...)
		th.deliver(among(late, 3))
		got, i := th.nodes[3].find(change), th.nodes[3].find(id)
		if len(asks) == 0 || got.phase != phaseCommitted || got.nothing || !got.deps.has(i) {
			t.Errorf("%d asked of replica %d late, and the change is %v, nothing %v, after %v", len(asks), late, got.phase,
				got.nothing, got.deps)
		}
	}
}

// TestCheckpointSpeaksAgainstWhatIsBefore has a command that is known to one replica beside its
// lost proposer, and conflicts with one that was executed and forgotten. What says so is the
// checkpoint after it.
func TestCheckpointSpeaksAgainstWhatIsBefore(t *testing.T) {
	th := newTheatre(t, 5)
	c := th.propose(1, workOn("c", "k"))
	th.deliver(func(m mail) bool { _, ask := kit.Inside(m.msg).(preAccept); return ask && m.to == 2 })
	d := th.propose(5, workOn("dd", "k"))
	th.deliver(among(3, 4, 5))
	th.propose(5, &command{Kind: checkpoint})
	th.deliver(among(3, 4, 5))
	if r := th.nodes[3]; r.checkpoint.Index == 0 || r.stable[4] < d.Index {
		t.Fatalf("replica 3 is at the checkpoint %v, stable up to %v", r.checkpoint, r.stable)
	}
	th.recover(2, c)
	th.deliver(among(2, 3, 4))
	if i := th.nodes[2].find(c); i.phase != phaseCommitted || !i.nothing {
		t.Errorf("it is %v, nothing %v, after %v", i.phase, i.nothing, i.deps)
	}
}

// TestCommandsAreSentOnce: over streams that are only slow a replica gets a command once, from its
// proposer, whatever is asked meanwhile. What it has not got it asks for.
func TestCommandsAreSentOnce(t *testing.T) {
	th := newTheatre(t, 3)
	id := th.propose(1, workOn("c", "k"))
	var sent, held []mail
	slow, lost := protocol.ID(3), false
	pass := func(m mail) bool {
		if m.to == slow {
			held = append(held, m)
			return false
		}
		if commandIn(m.msg) == nil || m.from == m.to {
			return true
		}
		sent = append(sent, m)
		return !lost
	}
	beats := func(n int) {
		for range n {
			for _, r := range []protocol.ID{1, 2} {
				th.do(r, func(r *replica, env *protocol.Env[smr.Message]) { r.Expire(env, beatTimer{}) })
			}
			th.deliver(pass)
		}
	}
	beats(3 * resendBeats)
	slow, th.mail = 0, held
	th.deliver(pass)
	to := func(m mail, id protocol.ID) bool { return m.to == id }
	if len(sent) != 2 || !to(sent[0], 2) || !to(sent[1], 3) || len(th.decisions(id)) != 1 ||
		!th.nodes[3].find(id).executed {
		t.Errorf("commands were in %v; decided is %v", sent, th.decisions(id))
	}
	sent, lost = nil, true
	again := th.propose(1, workOn("dd", "k"))
	th.deliver(pass)
	lost = false
	beats(resendBeats)
	if len(sent) != 4 || len(th.decisions(again)) != 1 || !th.nodes[3].find(again).executed {
		t.Errorf("after a loss commands were in %v; decided is %v", sent, th.decisions(again))
	}
	sent, held, slow = nil, nil, 1
	unanswered := th.propose(1, workOn("eee", "k"))
	beats(resendBeats)
	slow, th.mail = 0, held
	th.deliver(pass)
	if len(sent) != 2 || len(th.decisions(unanswered)) != 1 {
		t.Errorf("before an answer commands were in %v; decided is %v", sent, th.decisions(unanswered))
	}
}

// commandIn returns the command that is to be worked off and is in a message, nil if there is none.
func commandIn(msg smr.Message) *command {
	var c *command
	switch m := kit.Inside(msg).(type) {
	case preAccept:
		c = m.Cmd
	case accept:
		c = m.Cmd
	case commit:
		c = m.Cmd
	}
	if c == nil || c.Kind != work {
		return nil
	}
	return c
}

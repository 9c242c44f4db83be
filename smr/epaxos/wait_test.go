package epaxos

import (
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// TestWaitsForWhatMayBeDecided: a recovery that knows of one more who has agreed than there need be
// does not give up a command because of another one whose proposer is silent.
func TestWaitsForWhatMayBeDecided(t *testing.T) {
	th := newTheatre(t, 5)
	c := th.propose(1, workOn("c", "k"))
	th.deliver(th.except(among(1, 2, 3), isCommit))
	if !th.nodes[1].find(c).decided() {
		t.Fatal("replica 1 has not decided")
	}
	d := th.propose(5, workOn("dd", "k"))
	th.deliver(func(m mail) bool { _, ask := kit.Inside(m.msg).(preAccept); return ask && m.to == 4 })
	th.recover(2, c)
	th.deliver(among(2, 3, 4))
	if i := th.nodes[2].find(c); i.nothing || i.try == nil || i.try.stage != waitingFor {
		t.Fatalf("%v is %v, nothing %v, attempt %+v, want that it waits for %v", c, i.phase, i.nothing, i.try, d)
	}
	th.recover(4, d)
	th.deliver(among(2, 3, 4))
	for _, id := range []instanceID{c, d} {
		if got := th.decisions(id); len(got) != 1 {
			t.Errorf("%v: decided is %v", id, got)
		}
	}
}

// TestWaitsForThoseWhoMayHaveAgreed: a recovery that waits is told by another one, which waits for
// it, how many agreed with that one. With as many as may be silent on the fast path the rest are a
// fast quorum.
func TestWaitsForThoseWhoMayHaveAgreed(t *testing.T) {
	th := newTheatre(t, 5)
	c := th.propose(1, workOn("c", "k"))
	own := th.take(func(m mail) bool { return m.to == 1 })
	asks := th.take(func(m mail) bool { return m.to == 2 || m.to == 3 })
	th.mail = asks
	var votes []mail
	for len(th.mail) > 0 { // 2 and 3 agree, and 1 does not hear it yet
		m := th.mail[0]
		th.mail = th.mail[1:]
		th.do(m.to, func(r *replica, env *protocol.Env[smr.Message]) { r.Receive(env, m.from, m.msg) })
		votes = append(votes, th.take(func(m mail) bool { return m.to == 1 })...)
	}
	d := th.propose(5, workOn("dd", "k"))
	th.deliver(func(m mail) bool { _, ask := kit.Inside(m.msg).(preAccept); return ask && m.to == 4 })
	th.recover(4, d)
	th.deliver(among(1, 2, 4))
	if i := th.nodes[4].find(d); i.try == nil || i.try.stage != waitingFor {
		t.Fatalf("%v is %v, attempt %+v, want that it waits", d, i.phase, i.try)
	}
	th.mail = append(own, votes...)
	th.deliver(func(m mail) bool { return m.to == 1 })
	if !th.nodes[1].find(c).decided() {
		t.Fatal("replica 1 has not decided")
	}
	th.recover(2, c)
	th.deliver(among(2, 3, 4))
	if i := th.nodes[2].find(c); i.nothing {
		t.Errorf("%v is %v and nothing, replica 1 has decided it", c, i.phase)
	}
}

// TestProposerThatHasNotDecided: if the proposer is among those who are asked, it has not decided
// and never will on the fast path. Nothing is accepted in the command's place, and it proposes that
// again.
func TestProposerThatHasNotDecided(t *testing.T) {
	th := newTheatre(t, 3)
	c := th.propose(1, workOn("c", "k"))
	th.deliver(func(m mail) bool { _, ask := kit.Inside(m.msg).(preAccept); return ask && m.to == 2 })
	th.recover(2, c)
	th.deliver(among(1, 2))
	if i := th.nodes[2].find(c); i.phase != phaseCommitted || !i.nothing {
		t.Errorf("%v is %v, nothing %v, want that nothing is decided", c, i.phase, i.nothing)
	}
	if n := len(th.nodes[1].queue); n != 1 {
		t.Errorf("the proposer has %d commands to propose, want that one", n)
	}
}

// TestComponentsGoByStamps: of what depends on each other, what was proposed after the other was
// known comes after it, whoever proposed it; checkpoints and changes of the members come last.
func TestComponentsGoByStamps(t *testing.T) {
	at := func(row protocol.ID, stamp uint64, kind commandKind) *instance {
		return &instance{id: instanceID{row, 1}, cmd: &command{Kind: kind, Stamp: stamp}}
	}
	change := at(1, 1, work)
	change.cmd.Entries = []kit.Entry{{Kind: kit.ChangeMembers}}
	sorted := []*instance{at(3, 4, work), at(1, 5, work), at(2, 5, work), at(1, 2, checkpoint), change}
	for i, a := range sorted {
		for k, b := range sorted {
			if got := order(a, b); got < 0 != (i < k) || got == 0 != (i == k) {
				t.Errorf("number %d and %d: %d", i, k, got)
			}
		}
	}
}

package fastpaxos

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// TestPlants leaves out one rule at a time, in the source: the test that is named must notice.
func TestPlants(t *testing.T) {
	plant.Catch(t, []plant.Bug{{
		Name: "a no-op vote is told and not made", Dir: "smr/fastpaxos", Test: "TestVotesForNothingAreMade",
		Old: "\t\t\te := kit.Entry{Kind: kit.NoOp}\n\t\t\tr.accept(Vote{Slot: s, Era: r.promised, Entry: e})\n",
		New: "\t\t\te := kit.Entry{Kind: kit.NoOp}\n\t\t\tif !MUTANT {\n\t\t\t\tr.accept(Vote{Slot: s, Era: r.promised, Entry: e})\n\t\t\t}\n",
	}})
}

// TestVotesForNothingAreMade: an acceptor that says to the coordinator that it has voted for nothing in a slot has, and knows it after a crash: it votes there for no command, and tells a new coordinator.
func TestVotesForNothingAreMade(t *testing.T) {
	r, env, disk := begun(t, 3, 0)
	era := newEra(0, 2)
	follow(r, env, era, 5)
	disk.Write(env, 0)
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: Close{Head: Head{Era: era, Generation: r.state.Generation()}, Slot: 7}})
	told := map[smr.Slot]bool{}
	for _, e := range env.Out {
		if m, ok := kit.Inside(e.Msg).(Voted); ok && e.Kind == protocol.KindSend {
			for _, p := range m.Items {
				told[p.Slot] = p.Entry.Kind == kit.NoOp
			}
		}
	}
	if len(told) != 3 || !told[5] || !told[6] || !told[7] {
		t.Fatalf("told of votes in %v, want of votes for nothing in the slots 5 to 7", told)
	}
	disk.Write(env, 0)
	for _, crash := range []bool{false, true} {
		if crash {
			r, env = onDisk(t, disk, 3, 0)
			disk.Write(env, 0)
		}
		next := newEra(era, 3)
		r.silent = courtesy // the old coordinator is gone
		r.Receive(env, 3, kit.Letter{Disk: 3, Msg: Prepare{Head{Era: next, Generation: r.state.Generation()}, 5}})
		promised := map[smr.Slot]bool{}
		for _, e := range env.Out {
			if m, ok := kit.Inside(e.Msg).(Promise); ok {
				for _, v := range m.Votes {
					promised[v.Slot] = v.Entry.Kind == kit.NoOp && v.Era == era && !v.Classic
				}
			}
		}
		if len(promised) != 3 || !promised[5] || !promised[6] || !promised[7] {
			t.Errorf("crashed %v: a new coordinator is told of votes %v, want for nothing in the slots 5 to 7", crash, promised)
		}
		disk.Write(env, 0)
		if !crash {
			continue
		}
		follow(r, env, next, 5)
		r.Receive(env, 77, command(1))
		if r.fastTop != 8 {
			t.Errorf("the next vote is in slot %d, want 8", r.fastTop)
		}
	}
}

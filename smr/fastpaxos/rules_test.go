package fastpaxos

import (
	"fmt"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/smrtest"
)

// valueChoice goes through all ways in which n members can have voted in the fast round of a slot
// for one of three values or not at all, and all sets of them that a coordinator can have asked, a
// majority or more. A value that a fast quorum has, or can still get by the votes of those who were
// not asked, must be chosen. It returns how many cases there were, and one in which it was not.
func valueChoice(n int) (cases int, wrong string) {
	values := []kit.Entry{{}, {Kind: kit.Command, Seq: 1}, {Kind: kit.Command, Seq: 2}, {Kind: kit.NoOp}}
	ways := 1
	for range n {
		ways *= len(values)
	}
	for way := range ways {
		voted := make([]kit.Entry, n)
		for i, w := 0, way; i < n; i, w = i+1, w/len(values) {
			voted[i] = values[w%len(values)]
		}
		for set := range 1 << n {
			var votes []vote
			asked := 0
			for i, e := range voted {
				if set>>i&1 == 1 {
					asked++
					if e.Kind != 0 {
						votes = append(votes, vote{Slot: 1, Era: 1, Entry: e})
					}
				}
			}
			if asked < quorum.Majority(n) {
				continue
			}
			cases++
			got := choose(votes, asked, n)
			for _, v := range values[1:] {
				can := 0
				for i, e := range voted {
					if e.Kind == v.Kind && e.Seq == v.Seq || e.Kind == 0 && set>>i&1 == 0 {
						can++
					}
				}
				if can >= quorum.Fast(n) && (!got.bound || !got.entry.Equal(v)) {
					wrong = fmt.Sprintf("n=%d, votes %v, asked %b: %v can be chosen, and %+v was", n, voted, set, v, got)
				}
			}
		}
	}
	return cases, wrong
}

// TestValueChoice tries the rule of coordinated recovery on everything [MSR-TR-2005-112, §2.2 and
// §3.2]. "What a majority of all has, or else any" is not enough with five members.
func TestValueChoice(t *testing.T) {
	for _, n := range []int{3, 4, 5} {
		cases, wrong := valueChoice(n)
		if wrong != "" {
			t.Error(wrong)
		}
		t.Logf("n=%d: %d cases", n, cases)
	}
	// Votes of a higher round say all that can be known of lower ones, and a classic round stands
	// above the fast one of its era.
	a, b := kit.Entry{Kind: kit.Command, Seq: 1}, kit.Entry{Kind: kit.Command, Seq: 2}
	low, high, classic := vote{Slot: 1, Era: 1, Entry: a}, vote{Slot: 1, Era: 2, Entry: b},
		vote{Slot: 1, Era: 1, Classic: true, Entry: b}
	for _, votes := range [][]vote{{low, low, classic}, {classic, low}, {high, low, classic}} {
		if got := choose(votes, 3, 3); !got.entry.Equal(b) {
			t.Errorf("of %v: %+v", votes, got)
		}
	}
	if got := choose(nil, 2, 3); got.bound || got.entry.Kind != 0 {
		t.Errorf("without votes: %+v", got)
	}
}

// TestPromiseIsOnDisk: after a promise of an era nothing is accepted in a lower one. The log is cut
// if at least two records go.
func TestPromiseIsOnDisk(t *testing.T) {
	first := kit.NewBallot(0, 2)
	second := kit.NewBallot(first, 2)
	smrtest.PromiseIsOnDisk(t, newReplica, one(3),
		func() (*replica, *protocol.Env[smr.Message], *smrtest.Disk) { return begun(t, 3) },
		func(r *replica, env *protocol.Env[smr.Message]) { r.cut(env, r.journal.Snapshot()) },
		func(r *replica) smrtest.Promised {
			in := func(era kit.Ballot) head { return head{Era: era, Generation: r.State.Generation()} }
			return smrtest.Promised{
				Prepares: []smr.Message{prepare{in(first), 1}, prepare{in(second), 1}}, Promise: promise{},
				Lower: accept{in(kit.NewBallot(0, 3)), []item{{1, kit.Entry{Kind: kit.NoOp}}}}, From: 3,
				Refuses: func(m smr.Message) bool {
					refusal, ok := m.(refusal)
					return ok && refusal.Era == second
				},
			}
		})
}

// TestWhatOthersRelyOnIsOnDisk looks at the messages of replicas that must not be forgotten.
func TestWhatOthersRelyOnIsOnDisk(t *testing.T) {
	smrtest.FromDisk(t, Protocol(), cast{}, voted{}, accepted{}, promise{})
}

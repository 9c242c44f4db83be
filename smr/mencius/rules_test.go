package mencius

import (
	"slices"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/smrtest"
)

// without returns Mencius without some of its rules.
func without(omit rules) smr.Protocol {
	p := Protocol()
	p.NewReplica = func(cfg smr.ReplicaConfig) (protocol.Node[smr.Message], error) {
		r, err := NewReplica(cfg)
		if err != nil {
			return nil, err
		}
		r.omit = omit
		return r, nil
	}
	return p
}

// TestMutations leaves out one rule at a time: some seed must notice. The search begins where one did when the test was written. Scripts notice the rules that are missing
// here: TestCausalFloor, TestWindow, TestRevokedCommandIsProposedAgain, TestPromiseIsOnDisk.
func TestMutations(t *testing.T) {
	for _, m := range []struct {
		name  string
		omit  rules
		first uint64
	}{
		{"a new leader keeps any vote", ruleHighestVote, 271},
		{"what comes after a gap is accepted", ruleNoGaps, 39},
		{"an owner forgets in a crash what it has skipped", ruleSkipForGood, 104},
		{"a lane's other leader proposes commands", ruleOnlyNothing, 345},
		{"votes of several ballots are counted together", ruleBallotVotes, 316},
		{"reads ask nobody", ruleLook, 4},
		{"silent members keep their lanes", ruleRevoke, 1},
		{"an owner does not come back", ruleReclaim, 20},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			const seeds = 400
			for i := range uint64(seeds) {
				seed := 1 + (m.first-1+i)%seeds
				if _, err := smrtest.Play(smrtest.Swarm(without(m.omit), seed)); err != nil {
					t.Logf("seed %d: %.700v", seed, err)
					return
				}
			}
			t.Error("nobody noticed")
		})
	}
}

// refusesAfterCrash has a replica promise a ballot, perhaps cut its log, crash, and be asked to accept something in a lower one.
func refusesAfterCrash(t *testing.T, omit rules, cut bool) bool {
	r, env, disk := begun(t)
	r.omit = omit
	ballot := newBallot(0, 2)
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: Prepare{Place{Epoch: 1, Lane: 1, Ballot: ballot}, 1}})
	if !slices.ContainsFunc(env.Out, func(e protocol.Effect[smr.Message]) bool {
		_, ok := kit.Inside(e.Msg).(Promise)
		return ok && e.Kind == protocol.KindSend
	}) {
		t.Fatalf("no promise that waits for the disk: %+v", env.Out)
	}
	disk.Write(env, 0)
	if cut {
		r.cut(env, r.snapshot)
		disk.Write(env, 0)
		if omit == 0 && disk.Log[0].Index == 1 {
			t.Fatalf("the log was not cut: %+v", disk.Log)
		}
	}
	r, env = onDisk(t, disk, omit)
	disk.Write(env, 0)
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: Accept{Place: Place{Epoch: 1, Lane: 1}, First: 1, Items: []Item{{Entry: kit.Entry{Kind: kit.NoOp}}}}})
	return slices.ContainsFunc(env.Out, func(e protocol.Effect[smr.Message]) bool {
		refusal, ok := kit.Inside(e.Msg).(Refusal)
		return ok && refusal.Ballot == ballot
	})
}

func TestPromiseIsOnDisk(t *testing.T) {
	for _, cut := range []bool{false, true} {
		if !refusesAfterCrash(t, 0, cut) {
			t.Errorf("a promise was forgotten in a crash; log cut before: %v", cut)
		}
	}
	if refusesAfterCrash(t, rulePromiseDurable, false) {
		t.Error("without the rule it was not: the test does not see it")
	}
}

// TestWhatOthersRelyOnIsOnDisk looks at the messages of replicas that must not be forgotten.
func TestWhatOthersRelyOnIsOnDisk(t *testing.T) {
	smrtest.FromDisk(t, Protocol(), Accept{}, Accepted{}, Promise{})
}

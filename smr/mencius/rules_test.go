package mencius

import (
	"slices"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/smrtest"
)

// refusesAfterCrash has a replica promise a ballot, perhaps cut its log, crash, and be asked to
// accept something in a lower one.
func refusesAfterCrash(t *testing.T, cut bool) bool {
	r, env, disk := begun(t)
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
		r.cut(env, r.journal.Snapshot())
		disk.Write(env, 0)
		if disk.Log[0].Index == 1 {
			t.Fatalf("the log was not cut: %+v", disk.Log)
		}
	}
	r, env = onDisk(t, disk)
	disk.Write(env, 0)
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: Accept{Place: Place{Epoch: 1, Lane: 1}, First: 1, Items: []Item{{Entry: kit.Entry{Kind: kit.NoOp}}}}})
	return slices.ContainsFunc(env.Out, func(e protocol.Effect[smr.Message]) bool {
		refusal, ok := kit.Inside(e.Msg).(Refusal)
		return ok && refusal.Ballot == ballot
	})
}

func TestPromiseIsOnDisk(t *testing.T) {
	for _, cut := range []bool{false, true} {
		if !refusesAfterCrash(t, cut) {
			t.Errorf("a promise was forgotten in a crash; log cut before: %v", cut)
		}
	}
}

// TestWhatOthersRelyOnIsOnDisk looks at the messages of replicas that must not be forgotten.
func TestWhatOthersRelyOnIsOnDisk(t *testing.T) {
	smrtest.FromDisk(t, Protocol(), Accept{}, Accepted{}, Promise{})
}

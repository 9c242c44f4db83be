package multipaxos

import (
	"slices"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/smrtest"
)

// TestVotesBelowASnapshotAreNothing: what a replica has accepted and then got in another one's
// snapshot, perhaps as something else, is not there after a crash: it would be told as decided.
func TestVotesBelowASnapshotAreNothing(t *testing.T) {
	group := []smr.Member{{ID: 1}, {ID: 2}, {ID: 3}}
	var disk smrtest.Disk
	start := func() (*replica, *protocol.Env[smr.Message]) {
		r, err := newReplica(smr.ReplicaConfig{ID: 1, Members: group, Machine: kv.New()})
		if err != nil {
			t.Fatal(err)
		}
		env := disk.Env()
		r.Start(env, slices.Clone(disk.Log))
		return r, env
	}
	r, env := start()
	own := r.Admission.Own()
	for _, id := range []protocol.ID{2, 3} {
		r.Receive(env, id, kit.Welcome{Disk: kit.Incarnation(id), Asked: own, Known: own})
	}
	disk.Write(env, 0)
	entries := make([]kit.Entry, 40)
	for i := range entries {
		entries[i].Kind = kit.NoOp
	}
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: accept{Ballot: kit.NewBallot(0, 2), First: 1, Entries: entries}})
	disk.Write(env, 0)
	other := kit.NewState(kv.New(), group)
	other.Skip(20)
	data, err := other.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	r.Install(env, smrtest.Arrive(t, env, r.State, kit.Snapshot{Slot: 20, Data: data}, nil))
	disk.Write(env, 0)
	if r, _ = start(); r.log.base != 20 || r.log.last() != 40 || r.commit != 20 {
		t.Errorf("after a crash the log has slots %d to %d, %d are decided; want 21 to 40, and 20", r.log.base+1,
			r.log.last(), r.commit)
	}
}

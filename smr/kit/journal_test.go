package kit

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// TestJournal: however promises, records, commands and snapshots come, what is not in the snapshot
// is in the log, so is the newest promise, and the journal knows how many records there are.
func TestJournal(t *testing.T) {
	type promise struct{ number int }
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		cfg := smr.ReplicaConfig{ID: 1, SnapshotEvery: 5 + rnd.IntN(20), LogBytes: 1 << 30, SnapshotPartBytes: 1 << 20}
		state, keys := NewState(&journal{}, group(1)), memory{}
		env := protocol.NewEnv[smr.Message](keys, 1, rnd)
		var j Journal
		promised, saves := 0, 0
		var to smr.Slot
		j.Follow(&Replica{Cfg: cfg, State: state, Transfers: NewTransfers(nil, nil)},
			func(env *protocol.Env[smr.Message], upTo smr.Slot) {
				saves++
				to = upTo
				j.Cut(env, to, promise{promised})
			})
		log := map[uint64]smr.Message{} // promises, and the last slot of other records
		for range 400 {
			env.Begin(0)
			if rnd.IntN(8) == 0 {
				promised++
				j.Promised(env.Append(promise{promised}))
			} else {
				last := state.Applied() + smr.Slot(1+rnd.IntN(4))
				j.Wrote(env.Append(last), last)
				for state.Applied() < last {
					state.Apply(state.Applied()+1, Entry{Kind: NoOp})
					j.Executed()
				}
			}
			before := j.Snapshot()
			was := saves
			j.MaybeSave(env, nil)
			saved := saves > was
			if saved && (j.Snapshot() != state.Applied() || to > j.Snapshot() || to < before) {
				t.Fatalf("seed %d: cuts to %d, the snapshot is of %d, applied are %d", seed, to, j.Snapshot(), state.Applied())
			}
			for _, e := range env.Out {
				switch e.Kind {
				case protocol.KindPut:
					keys[string(e.Key)] = e.Value
				case protocol.KindDelete:
					delete(keys, string(e.Key))
				case protocol.KindAppend:
					log[e.Index] = e.Msg
				case protocol.KindTruncate:
					maps.DeleteFunc(log, func(index uint64, _ smr.Message) bool { return index < e.Index })
				}
			}
			newest, covered := 0, j.Snapshot()
			for _, m := range log {
				switch m := m.(type) {
				case promise:
					newest = max(newest, m.number)
				case smr.Slot:
					covered = max(covered, m)
				}
			}
			if newest != promised || covered != state.Applied() || len(log) != j.Records() {
				t.Fatalf("seed %d: on disk is promise %d of %d, slots up to %d of %d, and %d records, of which %d are known",
					seed, newest, promised, covered, state.Applied(), len(log), j.Records())
			}
			if saved && len(log) > 2*cfg.SnapshotEvery {
				t.Fatalf("seed %d: %d records are left behind a snapshot", seed, len(log))
			}
		}
		if saves < 3 {
			t.Errorf("seed %d: %d snapshots", seed, saves)
		}
	}
}

// TestForgetLeavesNothing: a log of another group is cut whole.
func TestForgetLeavesNothing(t *testing.T) {
	env := protocol.NewEnv[smr.Message](nil, 1, nil)
	env.Begin(0)
	var j Journal
	for s := range smr.Slot(3) {
		j.Wrote(env.Append(s), s)
	}
	j.Forget(env)
	if last := env.Out[len(env.Out)-1]; j.Records() != 0 || last.Kind != protocol.KindTruncate || last.Index != 4 {
		t.Errorf("%d records are known, and the log begins with %d", j.Records(), last.Index)
	}
}

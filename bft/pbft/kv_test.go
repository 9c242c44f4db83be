package pbft_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bfttest"
	"github.com/foresay/foresay/bft/pbft"
	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr/kv"
)

// store is the workload of smr/kv's commands. Some are about keys that end with a lease, and are
// not judged, but replicas have to end the same leases at the same places of the order.
type store struct {
	*bfttest.KV
	lease kv.LeaseID // the newest
	ended int        // leases of which a client was told that they are not there any more
}

func newStore() *store { return &store{KV: bfttest.NewKV(kv.Service{}, commandOf, outputOf)} }

func commandOf(in history.KVInput) []byte {
	key := []byte(in.Key)
	switch in.Kind {
	case history.KVGet:
		return kv.Get(key)
	case history.KVPut:
		return kv.Put(key, []byte(in.Value))
	case history.KVCAS: // if there is none, which is all that clients expect
		return kv.CompareAndSet(key, 0, []byte(in.Value))
	case history.KVDelete:
		return kv.Delete(key)
	}
	return nil
}

func outputOf(in history.KVInput, value []byte) (history.KVOutput, error) {
	r, err := kv.DecodeResult(value)
	if err == nil {
		err = r.Err()
	}
	out := history.KVOutput{Swapped: in.Kind == history.KVCAS && r.Status == kv.OK}
	if in.Kind == history.KVGet && r.Status == kv.OK {
		out.State = history.KVState{Value: string(r.Value), Found: true}
	}
	return out, err
}

func (s *store) Ask(c bfttest.Caller, on *bft.Result) bfttest.Question {
	var command []byte
	switch c.Rand.IntN(12) {
	case 0:
		command = kv.Grant(kv.MinTTL)
	case 1:
		command = kv.KeepAlive(s.lease)
	case 2:
		command = kv.PutLeased(fmt.Append(nil, "leased ", c.Rand.IntN(5)), nil, s.lease)
	case 3:
		command = kv.Expire(s.lease, 0) // which is for the replicas to do
	default:
		return s.KV.Ask(c, on)
	}
	return bfttest.Question{Command: command, Ended: func(_ time.Duration, r *bft.Result) error {
		if r == nil {
			return nil
		}
		got, err := kv.DecodeResult(r.Value)
		switch {
		case err != nil:
		case got.Status == kv.NotFound && s.lease != 0:
			s.ended++
		case got.Status == kv.OK && got.Version > uint64(s.lease) && command[1] == kv.Grant(kv.MinTTL)[1]:
			s.lease = kv.LeaseID(got.Version)
		}
		return err
	}}
}

// TestKV is a replicated smr/kv with a traitor of each strategy in turn, and with other faults.
// What honest clients see is linearizable, what they read around the order included.
func TestKV(t *testing.T) {
	t.Parallel()
	all := pbft.Protocol().Strategies
	reads, ended := 0, 0
	first, n := seed.First(t, 1), seed.Count(t, 5*len(all))
	for s := first; s < first+uint64(n); s++ {
		faults, load := sim.NoFaults, newStore()
		if s%2 == 0 {
			faults = sim.Swarm(s, sim.AllFaults&^sim.LostDisk)
		}
		r, err := bfttest.Play(bfttest.Scenario{Protocol: pbft.Protocol(), Seed: s, Faults: faults, For: 2 * time.Second,
			Workload:   func() bfttest.Workload { return load },
			Traitors:   traitors(all[s%uint64(len(all))], int(s/2)%2),
			BadClients: int(s % 2)})
		if err != nil {
			t.Errorf("seed %d: %+v: %v", s, r, err)
		}
		reads += r.Reads
		ended += load.ended
	}
	if n >= len(all) && (reads < 100 || ended < 10) {
		t.Errorf("%d optimised reads, %d leases that were found to have ended", reads, ended)
	}
}

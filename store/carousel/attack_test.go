package carousel

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store/storetest"
)

// attack plays a store whose leaders are cut off from their groups now and then, while they still
// reach coordinators: what is prepared on the fast path then is on members' lists and in no log.
// They are deposed, or crash, and so do others, whose lists must outlive that.
func attack(mode variant, seed uint64) error {
	sc := storetest.Scenario{Seed: seed, Clients: 6, Keys: 16, Appends: seed%2 == 0, Test: "TestAttack"}
	if seed%3 == 0 {
		sc.Sites = 5
	}
	if seed%4 == 3 {
		sc.Faults = sim.Swarm(seed, sim.AllFaults)
	}
	w, err := storetest.New(subject(mode), sc)
	if err != nil {
		return err
	}
	const lasting = 10 * time.Second
	for at := time.Second; at < lasting; at += time.Duration(600+w.Rand.IntN(900)) * time.Millisecond {
		w.Sim.At(at, func() { strike(w) })
	}
	return w.Play(lasting)
}

// strike cuts a leader off from its group, and has it crash later or just come back.
func strike(w *storetest.World) {
	members := newDirectory(w.Layout).members[w.Rand.IntN(len(w.Layout.Sites[0].Shards))]
	i := slices.IndexFunc(members, func(id protocol.ID) bool {
		s, ok := w.Sim.Get(id).(*server)
		return ok && s.term > 0
	})
	if i < 0 {
		return
	}
	leader := members[i]
	crashes := w.Rand.IntN(2) == 0
	for _, id := range members {
		if id == leader {
			continue
		}
		w.Sim.Cut(leader, id)
		if w.Rand.IntN(3) == 0 { // its list outlives that
			w.Sim.After(time.Duration(100+w.Rand.IntN(300))*time.Millisecond, func() { restart(w, id, 0) })
		}
	}
	if deaf := members[w.Rand.IntN(len(members))]; deaf != leader { // it does not hear of transactions
		for _, s := range w.Layout.Sites {
			w.Sim.Cut(s.Coordinators[0], deaf)
			w.Sim.After(time.Duration(400+w.Rand.IntN(400))*time.Millisecond, func() { w.Sim.Mend(s.Coordinators[0], deaf) })
		}
	}
	w.Sim.After(time.Duration(150+w.Rand.IntN(200))*time.Millisecond, func() {
		if crashes {
			restart(w, leader, time.Duration(w.Rand.IntN(1500))*time.Millisecond)
		}
	})
	w.Sim.After(time.Duration(300+w.Rand.IntN(1200))*time.Millisecond, func() {
		for _, id := range members {
			w.Sim.Mend(leader, id)
		}
	})
}

// restart crashes a node for a while.
func restart(w *storetest.World, id protocol.ID, away time.Duration) {
	w.Sim.Crash(id, sim.Keep(w.Rand.IntN(3)))
	w.Sim.After(away, func() { w.Sim.Restart(id) })
}

// TestAttack plays seeds of each mode.
func TestAttack(t *testing.T) {
	modes(t, func(t *testing.T, mode variant) {
		first := seed.First(t, 1)
		for n := first; n < first+uint64(seed.Count(t, 40)); n++ {
			if err := attack(mode, n); err != nil {
				t.Fatal(fmt.Errorf("seed %d: %w", n, err))
			}
		}
	})
}

package smrtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// maxHandOverGap bounds the time without a commit when a leader hands over; without one it is up to
// 2.5 round trips here.
const maxHandOverGap = 6 * roundTrip

// maxHandOverCall bounds how long a call takes while leaders hand over; otherwise it takes up to
// three round trips here.
const maxHandOverCall = 8 * roundTrip

// handOver has leaders hand over again and again while clients make calls: to each member in turn,
// and to whoever is best. The longest time in which nothing is committed is bounded by a few round
// trips. Then the same happens under faults, where all that must hold still does.
func handOver(t *testing.T, p smr.Protocol, seeds int) {
	first := seed.First(t, 1)
	for n := first; n < first+uint64(seeds); n++ {
		replay := fmt.Sprintf("%s=%d go test -run '%s' .", seed.Variable, n, t.Name())
		calm := script{name: "calm", make: func(sc *Scenario) {
			sc.Script = handOvers
		}, judge: func(w *World, r Report) error {
			if w.handedOver < 8 {
				return fmt.Errorf("liveness: leaders handed over %d times", w.handedOver)
			}
			if r.Gap > maxHandOverGap || w.longest > maxHandOverCall {
				return fmt.Errorf("liveness: while leaders handed over, there was no commit for %v, and a call took %v; allowed "+
					"are %v and %v",
					r.Gap, w.longest, maxHandOverGap, maxHandOverCall)
			}
			return nil
		}}
		if r, err := calm.once(p, n, replay); err != nil {
			t.Fatalf("%v\n%v\nrepeat it with: %s", r, err, replay)
		}
		sc := Swarm(p, n)
		sc.brief, sc.Replay = true, replay
		inner := sc.Script
		sc.Script = func(w *World) {
			w.handUnderFaults()
			if inner != nil {
				inner(w)
			}
		}
		if r, err := Play(sc); err != nil {
			t.Fatalf("under faults: %v\n%v\nrepeat it with: %s", r, err, replay)
		}
	}
}

// handOvers has the leader hand over ten times, and fails the run if the one who was to lead does
// not soon.
func handOvers(w *World) {
	w.Sim.After(time.Second, func() { w.gap, w.longest = 0, 0 }) // that of the first election does not count
	for i := range 10 {
		at := time.Second + time.Duration(i)*400*time.Millisecond
		w.Sim.After(at, func() {
			w.whoLeadsIn(roundTrip, func(leader protocol.ID) {
				w.handing = 0
				to := protocol.ID(0)
				if i%4 != 3 {
					to = leader%protocol.ID(len(w.replicas)) + 1
				}
				w.Sim.Deliver(leader, smr.HandOver{ID: smr.CallID(i), To: to})
			})
		})
		w.Sim.After(at+10*roundTrip, func() {
			w.whoLeadsIn(roundTrip, func(leader protocol.ID) {
				if leader != w.handing {
					w.Sim.Fail("liveness: replica %d was to lead, and %d does", w.handing, leader)
				}
				w.handedOver++
			})
		})
	}
}

// handUnderFaults has whoever leads hand over every now and then, to anybody.
func (w *World) handUnderFaults() {
	if w.stopped {
		return
	}
	id := w.replicas[w.rand.IntN(len(w.replicas))]
	w.Sim.Deliver(id, smr.HandOver{To: protocol.ID(w.rand.IntN(len(w.replicas) + 2))})
	w.Sim.After(time.Duration(w.rand.IntN(200))*time.Millisecond, w.handUnderFaults)
}

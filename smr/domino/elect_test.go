package domino

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// TestHighestBallotBinds has acceptors accept parts of a lane in several ballots, and compares what a new coordinator proposes again with what follows slot by slot.
func TestHighestBallotBinds(t *testing.T) {
	const slots = 12
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		executed := smr.Slot(rnd.IntN(4))
		var parts []Part
		for range 1 + rnd.IntN(5) {
			low := smr.Slot(rnd.IntN(slots))
			p := Part{Ballot: newBallot(Ballot(rnd.IntN(4))<<32, 1), Close: Close{Lane: Shared, Low: low, High: low + 1 + smr.Slot(rnd.IntN(int(slots-low)))}}
			for s := p.Low + 1; s <= p.High; s++ {
				if (uint64(p.Ballot)>>32+uint64(s))%3 > 0 { // each ballot has decided on one thing for a slot
					p.Items = append(p.Items, Item{Slot: s, Answer: protocol.ID(p.Ballot >> 32)})
				}
			}
			parts = append(parts, p)
		}
		want := map[smr.Slot]string{}
		for s := executed + 1; s <= slots; s++ {
			var top Ballot
			for _, p := range parts {
				if p.Low < s && s <= p.High && p.Ballot > top {
					top = p.Ballot
					i, there := bySlot(p.Items).get(s)
					want[s] = fmt.Sprint(there, i.Answer)
				}
			}
		}
		got := map[smr.Slot]string{}
		for _, c := range merge(parts, executed) {
			for s := c.Low + 1; s <= c.High; s++ {
				i, there := bySlot(c.Items).get(s)
				got[s] = fmt.Sprint(there, i.Answer)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: of %v above %d: %v, want %v", seed, parts, executed, got, want)
		}
	}
}

// TestCandidateCatchesUp: an acceptor does not tell what it has accepted in slots that it has executed. A candidate that has not executed them as well must not coordinate yet.
func TestCandidateCatchesUp(t *testing.T) {
	for _, ahead := range []smr.Slot{0, 1000} {
		w := newWorld(t, setup{preset: "na3", opt: beyond()})
		r := w.replica(2)
		env := protocol.NewEnv[smr.Message](nil, 1<<40, rand.New(rand.NewPCG(1, 1)))
		env.Begin(w.Clock(2))
		r.prepare(env)
		r.acceptor.promised = r.coord.ballot
		for _, id := range ids(2, 3) {
			m := Promise{Ballot: r.coord.ballot, Executed: r.learner.executed, Count: 1}
			if id == 3 {
				m.Executed += ahead
			}
			r.onPromise(env, id, m)
		}
		if leads := r.coord.phase == leading; leads != (ahead == 0) {
			t.Errorf("an acceptor has executed %d slots more: coordinates %v", ahead, leads)
		}
	}
}

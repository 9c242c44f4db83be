package domino

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// TestHighestBallotBinds has acceptors accept parts of a track in several ballots, and compares
// what a new coordinator proposes again with what follows slot by slot.
func TestHighestBallotBinds(t *testing.T) {
	const slots = 12
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		executed := smr.Slot(rnd.IntN(4))
		var parts []part
		for range 1 + rnd.IntN(5) {
			low := smr.Slot(rnd.IntN(slots))
			p := part{Ballot: kit.NewBallot(kit.Ballot(rnd.IntN(4))<<32, 1), closeSlots: closeSlots{
				Track: shared, Low: low, High: low + 1 + smr.Slot(rnd.IntN(int(slots-low)))}}
			for s := p.Low + 1; s <= p.High; s++ {
				if (uint64(p.Ballot)>>32+uint64(s))%3 > 0 { // each ballot has decided on one thing for a slot
					p.Items = append(p.Items, item{Slot: s, Answer: protocol.ID(p.Ballot >> 32)})
				}
			}
			parts = append(parts, p)
		}
		want := map[smr.Slot]string{}
		for s := executed + 1; s <= slots; s++ {
			var top kit.Ballot
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

// TestCandidateCatchesUp: an acceptor does not tell what it has accepted in slots that it has
// executed. A candidate that has not executed them as well must not coordinate yet.
func TestCandidateCatchesUp(t *testing.T) {
	for _, ahead := range []smr.Slot{0, 1000} {
		w := newWorld(t, setup{preset: "na3", opt: beyond()})
		r := w.replica(2)
		env := protocol.NewEnv[smr.Message](nil, 1<<40, rand.New(rand.NewPCG(1, 1)))
		env.Begin(w.Clock(2))
		r.prepare(env)
		r.acceptor.promised = r.coord.ballot
		for _, id := range ids(2, 3) {
			m := promise{Ballot: r.coord.ballot, Executed: r.learner.executed, Count: 1}
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

// TestCoordinatorHearsOfHigherBallot: a member that has accepted all decisions, and then promised
// itself a higher ballot, refuses nothing, as nothing is sent to it; the coordinator's next
// decision is never learned with it, and the member waits for the coordinator. It must step down
// when it hears of the promise (`foresay sim run --protocol domino --seed 100427`).
func TestCoordinatorHearsOfHigherBallot(t *testing.T) {
	w := newWorld(t, setup{preset: "na3", opt: beyond()})
	w.Run(500 * time.Millisecond)
	r := w.replica(1)
	if r.coord.phase != leading {
		t.Fatal("replica 1 does not coordinate")
	}
	env := protocol.NewEnv[smr.Message](nil, 1<<40, rand.New(rand.NewPCG(1, 1)))
	env.Begin(w.Clock(1))
	higher := kit.NewBallot(r.coord.ballot, 2)
	r.onNews(env, r.peers[2], news{Promised: higher})
	if r.coord.phase != following || r.coord.above < higher {
		t.Errorf("phase %d, next ballot above %v, want that it follows, and above %v", r.coord.phase, r.coord.above, higher)
	}
}

// TestFirstCoordinator: a new group has the coordinator that it is configured to have first.
func TestFirstCoordinator(t *testing.T) {
	for _, preset := range []string{"na3", "na5", "globe3"} {
		for seed := range uint64(4) {
			s := setup{preset: preset, opt: thesis()}
			s.cfg.Seed = seed + 1
			w := newWorld(t, s)
			for _, m := range w.Members {
				if c := w.replica(m.ID).coord; (c.phase == leading) != (m.ID == 1) || m.ID == 1 && c.ballot != kit.NewBallot(0, 1) {
					t.Errorf("%s, seed %d: replica %d: phase %d, ballot %v", preset, s.cfg.Seed, m.ID, c.phase, c.ballot)
				}
			}
		}
	}
}

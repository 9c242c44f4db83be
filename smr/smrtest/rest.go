package smrtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
)

// Times of the scripts of a group that rests.
const (
	restQuiet = 1500 * time.Millisecond // clients are quiet from then on
	restLook  = 3 * time.Second         // all rest, and something happens
	restSoon  = maxGap                  // after which there is a leader again
	restTalk  = 5 * time.Second         // clients call again
)

// Rest has a group go to rest and then be called, or lose its leader, in every way that a leader
// can be lost; and it has groups rest now and then among faults. Where nobody leads it is any
// member that is lost, and the others are to notice.
func Rest(t *testing.T, p smr.Protocol, seeds uint64) {
	for _, c := range restCases() {
		if c.name == handedOver && !p.HandsOver || c.name == deaf && !p.HandsOver && !p.Leaderless {
			continue // a coordinator of Fast Paxos that hears nobody goes on to beat, whether it rested or not
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.script(trusted).play(t, p, seed.First(t, 1))
		})
	}
	t.Run("faults", func(t *testing.T) {
		t.Parallel()
		script{name: "faults", seeds: int(seeds), make: func(sc *Scenario) {
			*sc = withReplay(Swarm(p, sc.Seed), sc.Replay)
			sc.vouch, sc.brief = trusted, true
			inner := sc.Script
			sc.Script = func(w *World) {
				w.pauses()
				if inner != nil {
					inner(w)
				}
			}
		}}.play(t, p, seed.First(t, 1))
	})
	t.Run("hosts that say what is not so", func(t *testing.T) {
		seen := false
		for _, c := range restCases()[:4] { // of one that is killed, a broken connection may tell
			_, err := c.script(gullible).once(p, seed.First(t, 1), "")
			seen = seen || err != nil
		}
		if !seen {
			t.Error("a host vouches for those that are gone, and no script sees it")
		}
	})
}

func withReplay(sc Scenario, replay string) Scenario {
	sc.Replay = replay
	return sc
}

// trusted passes on what a host says.
func trusted(host vouch) vouch { return host }

// gullible has heard just now of whom it has ever heard.
func gullible(host vouch) vouch {
	first := map[protocol.ID]uint64{}
	return func(id protocol.ID) (smr.Vouched, bool) {
		v, ok := host(id)
		if first[id] == 0 {
			first[id] = v.Run
		}
		for other := range protocol.ID(8) { // the host itself is one of them
			if o, _ := host(other); ok {
				v.Run, v.At = first[id], max(v.At, o.At)
			}
		}
		return v, ok
	}
}

// pauses has the clients be quiet for so long, again and again, that their group rests.
func (w *World) pauses() {
	if w.stopped {
		w.quiet = false
		return
	}
	w.quiet = !w.quiet
	d := time.Duration(200+w.rand.IntN(600)) * time.Millisecond
	if w.quiet {
		d += 30 * roundTrip
	}
	if w.Sim.Now()+d > w.sc.For {
		w.quiet = false
		return
	}
	w.Sim.After(d, w.pauses)
}

// restCase is what happens to a group that rests.
type restCase struct {
	name string
	// happens is what happens, to the leader; undo ends it before clients call again.
	happens func(w *World, leader protocol.ID, others []protocol.ID)
	undo    func(w *World, leader protocol.ID, others []protocol.ID)
	stays   bool // the leader is to lead on
	gone    bool // and where nobody leads, it stays away
}

func restCases() []restCase {
	cut := func(w *World, from, to []protocol.ID) {
		for _, a := range from {
			for _, b := range to {
				w.Sim.Cut(a, b)
			}
		}
	}
	reunite := func(w *World, leader protocol.ID, others []protocol.ID) { w.Sim.Reunite([]protocol.ID{leader}, others) }
	restart := func(w *World, leader protocol.ID, _ []protocol.ID) { w.Sim.Restart(leader) }
	nothing := func(*World, protocol.ID, []protocol.ID) {}
	return []restCase{
		{"the leader is killed", func(w *World, leader protocol.ID, _ []protocol.ID) {
			w.Sim.Crash(leader, sim.KeepNone)
		}, restart, false, true},
		{"the leader's host begins anew at once", func(w *World, leader protocol.ID, _ []protocol.ID) {
			w.Sim.Crash(leader, sim.KeepNone)
			w.Sim.Restart(leader)
		}, nothing, false, false},
		{"the leader is paused", func(w *World, leader protocol.ID, _ []protocol.ID) {
			w.Sim.Pause(leader, time.Second, false)
		}, nothing, false, false},
		{"the leader is cut off", func(w *World, leader protocol.ID, others []protocol.ID) {
			w.Sim.Partition([]protocol.ID{leader}, others)
		}, reunite, false, true},
		{"the leader is not heard", func(w *World, leader protocol.ID, others []protocol.ID) {
			cut(w, []protocol.ID{leader}, others)
		}, reunite, false, true},
		{deaf, func(w *World, leader protocol.ID, others []protocol.ID) {
			cut(w, others, []protocol.ID{leader})
		}, reunite, false, true},
		{"a follower is killed", func(w *World, _ protocol.ID, others []protocol.ID) { w.Sim.Crash(others[0], sim.KeepNone) },
			func(w *World, _ protocol.ID, others []protocol.ID) { w.Sim.Restart(others[0]) }, true, false},
		{handedOver, func(w *World, leader protocol.ID, others []protocol.ID) {
			w.Sim.Deliver(leader, smr.HandOver{To: others[0]})
			w.Sim.After(restSoon/3, func() { w.Sim.Crash(others[0], sim.KeepNone) })
		}, func(w *World, _ protocol.ID, others []protocol.ID) { w.Sim.Restart(others[0]) }, false, false},
		{calledAtRest, nothing, nothing, true, false},
	}
}

func (c restCase) script(v func(vouch) vouch) script {
	return script{name: c.name, seeds: 3, make: func(sc *Scenario) {
		sc.vouch, sc.For = v, restTalk+2*time.Second
		sc.Script = c.play
	}, judge: func(w *World, r Report) error {
		most := 8 * roundTrip
		if w.sc.Protocol.Timed {
			most = 20 * roundTrip // the time of the rest has to be claimed, and the members to be fixed
		}
		if c.name == calledAtRest && w.longest > most {
			return fmt.Errorf("liveness: a call to a group at rest took %v", w.longest)
		}
		return calls(100)(w, r)
	}}
}

// play is the script: it fails the run if the group does not rest, or if it has no leader soon
// after what happens, although nobody calls.
func (c restCase) play(w *World) {
	w.Sim.After(restQuiet, func() { w.quiet = true })
	w.Sim.After(restLook, func() {
		w.WhoLeads(func(leader protocol.ID) {
			for _, id := range w.replicas {
				if !w.status[id].Resting {
					w.Sim.Fail("liveness: replica %d does not rest though there is nothing to do", id)
				}
			}
			ballot := w.status[leader].Ballot
			others := slices.DeleteFunc(slices.Clone(w.replicas), func(id protocol.ID) bool { return id == leader })
			w.longest = 0
			c.happens(w, leader, others)
			w.Sim.After(restSoon, func() {
				if w.sc.Protocol.Leaderless {
					w.noticed(c, leader)
				} else {
					w.ledAnew(c, leader, ballot)
				}
			})
			w.Sim.After(restTalk-restLook-200*time.Millisecond, func() { c.undo(w, leader, others) })
		})
	})
	w.Sim.After(restTalk, func() { w.quiet = false })
	w.Sim.After(restTalk+time.Second, func() {
		w.WhoLeads(func(leader protocol.ID) {
			for _, id := range w.replicas {
				if w.status[id].Resting {
					w.Sim.Fail("liveness: the group is called, and replica %d rests", id)
				}
			}
		})
	})
}

// deaf is the case in which the leader is heard and hears nobody.
const deaf = "the leader hears nobody"

// handedOver is the case of protocols that hand over.
const handedOver = "the leader hands over, and its successor is killed,"

// calledAtRest is the case in which nothing happens before clients call again.
const calledAtRest = "nothing happens"

// noticed fails the run if members that were at rest with one that is gone rest on, or if nothing
// has happened and they do not.
func (w *World) noticed(c restCase, victim protocol.ID) {
	w.WhoLeads(func(protocol.ID) {
		for _, id := range w.replicas {
			switch s := w.status[id]; {
			case c.name == calledAtRest && !s.Resting:
				w.Sim.Fail("liveness: nothing happens, and replica %d does not rest on", id)
			case c.gone && id != victim && s.Resting && w.Sim.Up(id):
				w.Sim.Fail("liveness: %s at rest, and %v later replica %d rests on", c.name, restSoon, id)
			}
		}
	})
}

// ledAnew fails the run if the group is not led by another replica than before, or by the same one
// if it is to stay.
func (w *World) ledAnew(c restCase, before protocol.ID, ballot uint64) {
	w.WhoLeads(func(leader protocol.ID) {
		s := w.status[leader]
		switch {
		case s.Role != "leader":
			w.Sim.Fail("liveness: %s at rest, and %v later nobody leads", c.name, restSoon)
		case c.stays && (leader != before || s.Ballot != ballot):
			w.Sim.Fail("liveness: %s at rest, and replica %d leads instead of %d, in %d instead of %d", c.name, leader, before,
				s.Ballot, ballot)
		case !c.stays && s.Ballot == ballot:
			w.Sim.Fail("liveness: %s at rest, and %v later it leads still", c.name, restSoon)
		}
		if old := w.status[before]; !c.stays && leader != before && old.Role == "leader" && w.Sim.Up(before) &&
			c.name != "the leader is paused" && w.sc.Protocol.HandsOver { // who hands over steps down, too
			w.Sim.Fail("liveness: %s at rest, and %v later it still takes itself for the leader", c.name, restSoon)
		}
	})
}

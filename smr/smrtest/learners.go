package smrtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
)

// learnerScripts are for protocols that bring a replica up to date before they count it.
func learnerScripts() []script {
	return []script{
		{name: "a learner that nobody adds", seeds: 3, make: func(sc *Scenario) {
			sc.Script = learnAlong
			sc.Faults = sim.Crash | sim.Partition | sim.Reset | sim.Loss
		}, judge: learnt},
		{name: "a learner that dies", seeds: 3, make: func(sc *Scenario) { sc.Script = learnerDies }, judge: addedSafely},
		{name: "a learner that changes disks", seeds: 3, make: func(sc *Scenario) {
			sc.Script = changesDisks
		}, judge: undisturbed},
		{name: "a learner that the majority needs", seeds: 3, make: func(sc *Scenario) {
			sc.Script, sc.Configure = learnerNeeded, func(c *smr.ReplicaConfig) { c.Leader = 1 }
		}, judge: neededSafely},
	}
}

// learn starts a replica with an empty disk that waits to be added. It is no member before somebody
// asks for that.
func (w *World) learn(id protocol.ID) {
	if err := w.addReplica(id, true); err != nil {
		w.Sim.Fail("%v", err)
	}
}

// learnAlong has a replica learn that nobody adds, which crashes now and then.
func learnAlong(w *World) {
	w.Sim.After(time.Second, func() { w.learn(4) })
	for _, at := range []time.Duration{1200 * time.Millisecond, 2500 * time.Millisecond} {
		w.Sim.After(at, func() { w.Sim.Crash(4, sim.Keep(w.rand.IntN(3))) })
		w.Sim.After(at+200*time.Millisecond, func() { w.Sim.Restart(4) })
	}
}

// learnt looks whether replica 4 has what the members have executed, and is none of them.
func learnt(w *World, r Report) error {
	if got, want := w.members(), []protocol.ID{1, 2, 3}; !slices.Equal(got, want) {
		return fmt.Errorf("learner: the members are %v, not %v", got, want)
	}
	had := 0
	for _, l := range w.logs {
		if l.Replica == "4" {
			had = max(had, l.First+len(l.IDs))
		}
	}
	if had+r.Commands/10+10 < r.Commands {
		return fmt.Errorf("learner: replica 4 has %d commands of %d", had, r.Commands)
	}
	return nil
}

// learnerDies has a replica ask to be added and fail before it has anything. The change is wanted
// all the same, and a member fails: of the group as it was a majority is left, of one in which the
// new one counts there is none.
func learnerDies(w *World) {
	w.sc.For = max(w.sc.For, 6*time.Second)
	w.Sim.After(time.Second, func() { w.learn(4) })
	w.Sim.After(time.Second+roundTrip*2/3, func() { w.Sim.Crash(4, sim.KeepAll) })
	w.Sim.After(time.Second+roundTrip*3/4, func() {
		w.Change(smr.Change{Add: smr.Member{ID: 4, Address: "new"}}, func(d smr.Done) {
			if d.Outcome != smr.Committed {
				w.Sim.Fail("replica 4 was not added: %v, %s", d.Outcome, d.Reason)
			}
		})
	})
	w.Sim.After(1500*time.Millisecond, func() { w.Sim.Crash(2, sim.KeepAll) })
	w.Sim.After(4*time.Second, func() { w.Sim.Restart(2) })
	w.Sim.After(4500*time.Millisecond, func() { w.Sim.Restart(4) })
}

// changesDisks has a replica that learns come back with an empty disk, just before it is added and
// then again: what the leader knows of one disk is not true of the next.
func changesDisks(w *World) {
	w.sc.For = max(w.sc.For, 6*time.Second)
	w.Sim.After(time.Second, func() { w.learn(4) })
	for i := range 6 {
		at := 1500*time.Millisecond + time.Duration(i)*(400*time.Millisecond+time.Duration(w.rand.Int64N(int64(4*roundTrip))))
		w.Sim.After(at, func() {
			if slices.Contains(w.members(), 4) {
				return
			}
			w.Sim.LoseDisk(4)
			w.Sim.Restart(4)
		})
	}
}

// learnerNeeded has a replica added by a leader that stays, another one removed, and then a third
// one fail: the leader has no majority without the word of the one that it knew as a learner.
func learnerNeeded(w *World) {
	w.sc.For = max(w.sc.For, 6*time.Second)
	w.Sim.After(500*time.Millisecond, func() {
		w.Join(4, func() {
			w.Remove(3, func() { w.Sim.Crash(2, sim.KeepAll) })
		})
	})
}

// undisturbed looks that the group went on as if nobody had been there to learn.
func undisturbed(w *World, r Report) error {
	if r.Gap > 12*roundTrip {
		return fmt.Errorf("learner: %v without a commit, at most %v is allowed", r.Gap, 12*roundTrip)
	}
	return learnt(w, r)
}

func neededSafely(w *World, r Report) error {
	if err := shortGap(w, r); err != nil {
		return err
	}
	return membersAre(1, 2, 4)(w, r)
}

func addedSafely(w *World, r Report) error {
	if err := shortGap(w, r); err != nil {
		return err
	}
	return membersAre(1, 2, 3, 4)(w, r)
}

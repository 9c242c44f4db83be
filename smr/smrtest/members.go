package smrtest

import (
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// Change has the members changed, and asks again until it is done or rejected.
func (w *World) Change(change smr.Change, then func(smr.Done)) {
	w.changes++
	w.ask(change, func(d smr.Done) {
		then(d) // which may begin the next one
		w.changes--
		w.changed++
	})
}

func (w *World) ask(change smr.Change, then func(smr.Done)) {
	k := &call{}
	k.then = func(d smr.Done) {
		if d.Outcome == smr.Unknown || d.Unsent {
			w.Sim.After(100*time.Millisecond, func() { w.ask(change, then) })
			return
		}
		then(d)
	}
	w.admin.start(smr.Call{Kind: smr.Reconfigure, Change: change}, k)
}

// Join starts a replica with an empty disk and has it added to the group.
func (w *World) Join(id protocol.ID, then func()) {
	if err := w.addReplica(id, true); err != nil {
		w.Sim.Fail("%v", err)
		return
	}
	w.Change(smr.Change{Add: smr.Member{ID: id, Address: "new"}}, func(d smr.Done) {
		if d.Outcome != smr.Committed {
			w.Sim.Fail("replica %d was not added: %v, %s", id, d.Outcome, d.Reason)
			return
		}
		then()
	})
}

// whenBegun calls then when all replicas take part. One that was away since the group began needs a
// majority of those with whom it was to begin: if they are replaced, it has to be replaced too.
func (w *World) whenBegun(then func()) {
	w.askStatus()
	w.Sim.After(time.Millisecond, func() {
		for _, id := range w.replicas {
			if s, ok := w.status[id]; !ok || s.Role == "blank" || s.Applied == 0 {
				if !w.stopped {
					w.Sim.After(roundTrip, func() { w.whenBegun(then) })
				}
				return
			}
		}
		then()
	})
}

// Remove has a replica removed from the group. It is not expected to come back.
func (w *World) Remove(id protocol.ID, then func()) {
	w.gone[id] = true
	w.Change(smr.Change{Remove: id}, func(d smr.Done) {
		if d.Outcome != smr.Committed {
			w.Sim.Fail("replica %d was not removed: %v, %s", id, d.Outcome, d.Reason)
			return
		}
		then()
	})
}

// replace puts a new replica in the place of one whose disk is lost.
func (w *World) replace(id protocol.ID) {
	w.gone[id] = true
	w.fresh++
	fresh := protocol.ID(w.sc.Replicas + w.fresh)
	// The simulator calls this in the middle of a step.
	w.Sim.After(0, func() { w.Remove(id, func() { w.Join(fresh, func() {}) }) })
}

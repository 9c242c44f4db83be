package bfttest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
)

// Scripts returns a script that is several.
func Scripts(all ...func(*World)) func(*World) {
	return func(w *World) {
		for _, s := range all {
			s(w)
		}
	}
}

// changeAgain is how long the administrator waits when a change was refused.
const changeAgain = 100 * time.Millisecond

// Change has the administrator, which is the first client, change the members, again and again
// until it is not refused.
func (w *World) Change(c bft.Change) {
	admin := w.clients[0]
	admin.ask(bft.Call{Members: true}, &call{began: w.Sim.Now(), question: Question{Command: c.Command(),
		Ended: func(_ time.Duration, r *bft.Result) error {
			if r == nil {
				return fmt.Errorf("a change of the members was not executed")
			}
			changed, err := bft.DecodeChanged(r.Value)
			switch {
			case err != nil:
				return err
			case changed.Refused != "":
				w.report.RefusedChanges++
				w.Sim.After(changeAgain, func() { w.Change(c) })
			default:
				w.report.Changes++
			}
			return nil
		}}})
}

// newSigner returns a signer that nobody has had.
func (w *World) newSigner() *bft.Signer {
	w.signers++
	return w.signer(protocol.ID(1000 + w.signers))
}

// Replace returns a script in which a replica, which may be a traitor, loses its disk at a time and
// is replaced by an honest one. The administrator hears of it after a while.
func Replace(place int, at, after time.Duration) func(*World) {
	return func(w *World) {
		id := w.dir.Members[place].ID
		w.Sim.At(at, func() {
			w.Sim.LoseDisk(id)
			m := w.members[id]
			m.cfg.Signer, m.traitor = w.newSigner(), nil
			w.trust(id)
			w.Sim.Restart(id)
			w.Sim.After(after, func() {
				w.Change(bft.Change{Kind: bft.Replace, Party: bft.Party{ID: id, Key: m.cfg.Signer.Key()}})
			})
		})
	}
}

// trust has a replica be judged from now on.
func (w *World) trust(id protocol.ID) {
	if !slices.Contains(w.honest, id) {
		w.honest = append(w.honest, id)
	}
}

// Rotate returns a script in which a replica gets another key, and is started again for that. It
// sleeps from then on, as long as it is said.
func Rotate(place int, at, sleeps time.Duration) func(*World) {
	return func(w *World) {
		id := w.dir.Members[place].ID
		w.Sim.At(at, func() {
			m := w.members[id]
			m.cfg.NextSigner = w.newSigner()
			w.Sim.Crash(id, sim.KeepNone)
			w.Sim.After(sleeps, func() { w.Sim.Restart(id) })
			w.Change(bft.Change{Kind: bft.RotateKeys, Party: bft.Party{ID: id, Key: m.cfg.NextSigner.Key()}})
		})
	}
}

// Add returns a script in which a replica is added.
func Add(id protocol.ID, at time.Duration) func(*World) {
	return func(w *World) {
		w.Sim.At(at, func() {
			if err := w.add(id, w.newSigner(), nil); err != nil {
				w.failed = err
				return
			}
			w.Change(bft.Change{Kind: bft.Add, Party: bft.Party{ID: id, Key: w.members[id].cfg.Signer.Key()}})
		})
	}
}

// Remove returns a script in which a replica is removed. It goes on as before, if it can.
func Remove(id protocol.ID, at time.Duration) func(*World) {
	return func(w *World) {
		w.Sim.At(at, func() {
			w.honest = slices.DeleteFunc(w.honest, func(h protocol.ID) bool { return h == id })
			w.Change(bft.Change{Kind: bft.Remove, Party: bft.Party{ID: id}})
		})
	}
}

// ManyChanges returns a script of random changes: those of keys, of replicas whose disks are lost,
// and of the number of members. If there are traitors only these lose their disks, since who does
// is one of those that may be faulty.
func ManyChanges(seed uint64) func(*World) {
	r := rand.New(rand.NewPCG(seed, 0xe90c))
	return func(w *World) {
		at, traitor, rotated := 300*time.Millisecond, -1, map[int]bool{}
		for i := range w.dir.Members {
			if w.sc.Traitors[i] != nil {
				traitor = i
			}
		}
		for range 1 + r.IntN(3) {
			at += time.Duration(r.IntN(1200)) * time.Millisecond
			switch place := r.IntN(len(w.dir.Members)); r.IntN(4) {
			case 0:
				if traitor >= 0 {
					place, traitor = traitor, -1
				} else if len(w.sc.Traitors) > 0 || rotated[place] {
					continue
				}
				Replace(place, at, time.Duration(r.IntN(500))*time.Millisecond)(w)
				return // it takes a while until the next one may
			case 1:
				id := protocol.ID(len(w.dir.Members) + 1)
				Add(id, at)(w)
				Remove(w.dir.Members[0].ID, at+time.Duration(r.IntN(1000))*time.Millisecond)(w)
				return
			default:
				if w.sc.Traitors[place] == nil && !rotated[place] {
					rotated[place] = true
					Rotate(place, at, time.Duration(r.IntN(800))*time.Millisecond)(w)
				}
			}
		}
	}
}

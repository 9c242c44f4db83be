package bfttest

import (
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
)

// CutOff returns a script that cuts a replica off from everybody for a while.
func CutOff(place int, from, until time.Duration) func(*World) {
	return func(w *World) {
		id := w.dir.Members[place].ID
		each := func(f func(from, to protocol.ID)) func() {
			return func() {
				for _, other := range w.Sim.IDs() {
					if other != id {
						f(id, other)
						f(other, id)
					}
				}
			}
		}
		w.Sim.At(from, each(w.Sim.Cut))
		w.Sim.At(until, each(w.Sim.Mend))
	}
}

// CrashInWrite returns a script in which a replica crashes in its nth call that writes, and comes
// back soon.
func CrashInWrite(place int, n uint64, keep sim.Keep) func(*World) {
	return func(w *World) {
		id := w.dir.Members[place].ID
		w.Sim.CrashInWrite(id, n, keep)
		var watch func()
		watch = func() {
			w.Sim.Restart(id)
			if w.Sim.Stats().Restarts == 0 {
				w.Sim.After(roundTrip, watch)
			}
		}
		w.Sim.After(roundTrip, watch)
	}
}

// AllCrash has all replicas crash at once again and again, with nothing but what is durable.
func AllCrash(every time.Duration) func(*World) {
	return func(w *World) {
		for at := every; at < w.sc.For; at += every {
			w.Sim.At(at, func() {
				for _, m := range w.dir.Members {
					w.Sim.Crash(m.ID, sim.KeepNone)
					w.Sim.Restart(m.ID)
				}
			})
		}
	}
}

package storetest

import (
	"slices"

	"github.com/foresay/foresay/store"
)

// readStep has a transaction of a snapshot read its next key, or some transactions all of them at
// once, and reports whether it waits for that.
func (a *Application) readStep() bool {
	var keys []store.Key
	for _, o := range a.ops[a.at:] {
		if _, seen := a.seen[o.key]; o.read && !seen {
			keys = append(keys, o.key)
			if a.number%3 > 0 {
				break
			}
		}
	}
	if len(keys) == 0 || keys[0] != a.ops[a.at].key && a.number%3 > 0 {
		return false
	}
	slices.Sort(keys)
	a.Ref++
	m := store.Declare{Ref: a.Ref, Reads: keys, Begun: a.declared, General: a.declared == 0}
	if m.General {
		a.declared = a.Ref
	}
	a.stepKeys = keys
	a.world.Sim.Deliver(a.ID, m)
	return true
}

// onReadStep takes what a snapshot has. Some who have read do not commit.
func (a *Application) onReadStep(m store.Declared) {
	w := a.world
	switch {
	case !m.OK:
		a.log.Abort(w.Sim.Now())
		a.end()
		return
	case w.Rand.IntN(20) == 0:
		w.Sim.Deliver(a.ID, store.Abandon{Ref: a.declared})
		a.log.Abort(w.Sim.Now())
		a.end()
		return
	}
	for i, k := range a.stepKeys {
		a.buffer.Saw(k, m.Values[i].Value)
		a.seen[k] = m.Values[i].Value
	}
	a.step()
}

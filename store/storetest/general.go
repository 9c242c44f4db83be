package storetest

import (
	"fmt"
	"slices"

	"github.com/foresay/foresay/store"
)

// general is a transaction that has its keys prepared as it reaches them, once it writes.
type general struct {
	asks          bool // it goes by what leaders say, and else by what it has read
	reads, writes map[store.Key]bool
	step          []store.Key // what it has asked for, and waits for
}

// reach has the keys prepared that a transaction has come to, if it writes, and reports whether it
// waits for what they hold.
func (a *Application) reach() bool {
	g := a.general
	if g.step != nil { // it was refused, or not told, and reads
		g.step = nil
		return false
	}
	m := store.Declare{Begun: a.declared, General: a.declared == 0, Priority: a.priority}
	for i, o := range a.ops[:a.at+1] {
		if o.read && !g.reads[o.key] {
			m.Reads = append(m.Reads, o.key)
		}
		if o.write && i < a.at && !g.writes[o.key] {
			m.Writes = append(m.Writes, o.key)
		}
	}
	if len(m.Writes) == 0 && a.declared == 0 {
		return false
	}
	if k := a.detour(); k != "" && !g.writes[k] && !slices.Contains(m.Writes, k) {
		m.Writes = append(m.Writes, k)
	}
	slices.Sort(m.Reads)
	slices.Sort(m.Writes)
	for _, k := range m.Reads {
		g.reads[k] = true
	}
	for _, k := range m.Writes {
		g.writes[k] = true
	}
	a.Ref++
	if m.Ref = a.Ref; m.General {
		a.declared = a.Ref
	}
	a.world.Sim.Deliver(a.ID, m)
	if g.asks {
		g.step = m.Reads
	}
	return g.asks
}

// detour returns a key that only a run which is discarded writes, "" where there is none: it is
// prepared like the others, and the transaction ends without it.
func (a *Application) detour() store.Key {
	if a.number%4 != 1 {
		return ""
	}
	k := store.Key(fmt.Sprintf("k%d", a.number/4%a.world.Scenario.Keys))
	if slices.ContainsFunc(a.ops, func(o op) bool { return o.key == k }) {
		return ""
	}
	return k
}

// onReached takes what leaders say of a step: some of it may be other than what was read before.
func (a *Application) onReached(m store.Declared) {
	if a.general.step == nil {
		return // it has gone on
	}
	if m.OK {
		step := a.general.step
		if !slices.ContainsFunc(m.Values, func(v store.Held) bool { return v.Large }) {
			a.general.step = nil // else it reads
		}
		for i, k := range step {
			if v := m.Values[i]; !v.Large {
				a.seen[k] = v.Value
			}
		}
		a.buffer = store.Buffer{}
		for k, v := range a.seen {
			a.buffer.Saw(k, v)
		}
	}
	a.step()
}

package view

import (
	"slices"

	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/specfs"
	"github.com/foresay/foresay/specfs/tree"
)

// An epoch is a transaction that is not settled.
type epoch struct {
	number specfs.Number
	layer  *keyspace.Layer
	since  uint64 // the cache's tick when it began
	sent   bool
	steps  []specfs.Step
	// saw has the versions of what it assumes, changed those of what it has changed before it had
	// seen it, both in the order in which that came.
	saw, blind []specfs.Assumption
	is         map[specfs.Part]role
	// wrote are the records that its layer has: of Name parts, and of Everything of objects, as all
	// other versions of an object are in one record.
	wrote map[specfs.Part]bool
}

// inRecord returns the part that names the record which has a part's version.
func inRecord(p specfs.Part) specfs.Part {
	if p.Aspect != specfs.Name {
		p.Aspect = specfs.Everything
	}
	return p
}

// role is what an epoch has to do with a part.
type role uint8

const (
	seen    role = iota + 1 // and perhaps changed
	changed                 // without having been seen
)

func (v *View) onDo(m Do) {
	if v.config.System.Behind && m.Era != v.era {
		return // the program does not know yet that what it stands on is gone
	}
	v.counts.Ops++
	v.asked = append(v.asked, &pending{Do: m})
}

// run executes what can be.
func (v *View) run(env *Env) {
	if v.session == 0 || v.hello {
		return
	}
	for again := true; again; {
		again = false
		for _, p := range slices.Clone(v.asked) {
			if p.epoch == 0 && p.fetch == nil && slices.Contains(v.asked, p) && v.try(env, p) {
				again = true
			}
		}
	}
}

// A witness is what an operation saw and changed.
type witness struct{ saw, changed []specfs.Assumption }

// Saw is part of tree.Witness.
func (w *witness) Saw(a specfs.Assumption) {
	if !slices.Contains(w.saw, a) {
		w.saw = append(w.saw, a)
	}
}

// Changed is part of tree.Witness.
func (w *witness) Changed(a specfs.Assumption) { w.changed = append(w.changed, a) }

// try executes an operation, and reports whether it is answered, or in an epoch.
func (v *View) try(env *Env, p *pending) bool {
	e := v.open()
	if e == nil && len(v.epochs) >= v.config.MaxOpen {
		return false
	}
	if v.welcome.ReadOnly && p.Op.Changes() {
		p.result = specfs.Result{Errno: specfs.EROFS}
		v.answer(env, p, 0)
		return true
	}
	if !v.welcome.Trusted {
		p.Cred = v.welcome.Cred // else the server decides as somebody else
	}
	if op, ok := p.Op.(specfs.Make); ok && op.New == 0 {
		op.New = v.newID()
		p.Op = op
	}
	number := v.last + 1
	var below keyspace.Reader = v.cache
	if len(v.epochs) > 0 {
		below = v.epochs[len(v.epochs)-1].layer
	}
	if e != nil {
		number = e.number
	}
	scratch, w := keyspace.NewLayers(below), &witness{}
	v.cache.missed = nil
	now := v.now(env)
	result := tree.Do(scratch.Push(), tree.Call{Serial: number.Provisional(), Now: now, Cred: p.Cred, Witness: w}, p.Op)
	if len(v.cache.missed) > 0 {
		v.fetch(env, p)
		return false
	}
	if v.believed(env, p, w, result) {
		return true
	}
	if v.config.System.Leases && !p.Op.Changes() {
		return false
	}
	if e == nil {
		e = v.begin()
	}
	scratch.Merge(e.layer)
	e.note(w)
	if p.Op.Changes() {
		e.steps = append(e.steps, specfs.Step{Op: p.Op, Cred: p.Cred, Now: now, Errno: result.Errno})
	}
	p.epoch, p.result = e.number, result
	if v.config.System.Behind {
		v.answer(env, p, 0)
		if len(e.steps) >= v.config.MaxSteps || len(e.saw)+len(e.blind) >= specfs.MaxAssumptions/2 {
			v.cut(env)
		}
		return true
	}
	v.cut(env)
	return true
}

// believed answers an operation that needs no word from the server: it changes nothing, and what it
// saw is held under a lease, and is not a copy that an epoch under way has made.
func (v *View) believed(env *Env, p *pending, w *witness, result specfs.Result) bool {
	if !v.config.System.Leases || v.config.System.Behind || p.Op.Changes() {
		return false
	}
	if env.Now >= v.lease.until {
		v.renew(env)
		return false
	}
	for _, e := range v.epochs {
		if slices.ContainsFunc(w.saw, func(a specfs.Assumption) bool { return e.wrote[inRecord(a.Part)] }) {
			return false
		}
	}
	p.result = result
	v.answer(env, p, 0)
	return true
}

// answer tells a program the result of its operation.
func (v *View) answer(env *Env, p *pending, serial specfs.Version) {
	v.asked = slices.DeleteFunc(v.asked, func(q *pending) bool { return q == p })
	env.Send(protocol.App, Done{Tag: p.Tag, Result: p.result, Epoch: p.epoch, Serial: serial})
}

// newID returns an ID for an object of the client's, of which it knows all.
func (v *View) newID() specfs.ID {
	v.made++
	id := v.session.IDs() + specfs.ID(v.made)
	for _, w := range tree.Made(id) {
		v.cache.cover(w)
	}
	return id
}

// open returns the epoch that takes operations in, nil if there is none.
func (v *View) open() *epoch {
	if n := len(v.epochs); n > 0 && !v.epochs[n-1].sent {
		return v.epochs[n-1]
	}
	return nil
}

func (v *View) begin() *epoch {
	v.last++
	e := &epoch{
		number: v.last, layer: v.layers.Push(), since: v.cache.tick,
		is: map[specfs.Part]role{}, wrote: map[specfs.Part]bool{},
	}
	v.epochs = append(v.epochs, e)
	return e
}

// note takes what an operation has seen and changed into an epoch. A part that the epoch has
// changed blindly, and sees then, it has to be right about.
func (e *epoch) note(w *witness) {
	for _, a := range w.saw {
		n, own := a.Version.Epoch()
		switch own = own && n == e.number; {
		case !own && e.is[a.Part] == 0:
			e.is[a.Part] = seen
			e.saw = append(e.saw, a)
		case own && e.is[a.Part] == changed:
			i := slices.IndexFunc(e.blind, func(b specfs.Assumption) bool { return b.Part == a.Part })
			e.saw = append(e.saw, e.blind[i])
			e.blind = slices.Delete(e.blind, i, i+1)
			e.is[a.Part] = seen
		}
	}
	for _, c := range w.changed {
		e.wrote[inRecord(c.Part)] = true
		switch {
		case e.is[c.Part] != 0:
		case c.Version == 0 && c.Part.Aspect != specfs.Name: // of an object that the operation has made
			e.is[c.Part] = seen
		default:
			e.is[c.Part] = changed
			e.blind = append(e.blind, c)
		}
	}
}

// resolve returns an assumption with its version, as far as that is known.
func (v *View) resolve(a specfs.Assumption) specfs.Assumption {
	if n, ok := a.Version.Epoch(); ok && !v.moved[movedPart{n, a.Part}] {
		a.Version = v.resolved(a.Version)
	}
	return a
}

func (v *View) resolved(version specfs.Version) specfs.Version {
	if n, ok := version.Epoch(); ok && v.serials[n] != 0 {
		return v.serials[n]
	}
	return version
}

// cut ends the open epoch, and sends it.
func (v *View) cut(env *Env) {
	e := v.open()
	if e == nil {
		return
	}
	e.sent = true
	v.counts.Epochs++
	v.send(env, e)
}

func (v *View) send(env *Env, e *epoch) {
	resolved := func(list []specfs.Assumption) []specfs.Assumption {
		out := slices.Clone(list)
		for i := range out {
			out[i] = v.resolve(out[i])
		}
		return out
	}
	env.Send(v.config.Server, specfs.Epoch{
		Number: e.number, Era: v.era, Acked: v.acked, News: v.news,
		Assumes: resolved(e.saw), Blind: resolved(e.blind), Steps: e.steps,
	})
}

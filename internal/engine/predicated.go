package engine

import (
	"github.com/foresay/foresay/internal/spectree"
)

// A predicated call is sent on guesses: its transport tells the server on which, and the server
// refuses the call if they were wrong. The tree says when it may be sent so, see
// spectree/predicated.go. Here is how what it stands on is told: as operations, attempts at them
// and values, which a transport knows as its own requests and their answers.

// Assumption is driver.Assumption.
type Assumption struct {
	Operation *Operation
	Attempt   int // Attempt.Number of the attempt at it
	Value     any // the result that the caller goes on with, which must not be changed
}

// assumptions are what somebody stands on.
type assumptions struct {
	all   []Assumption
	known bool // they stand on nothing else
}

// assume notes what the attempt is sent on. Under mu.
func (a *Attempt) assume() {
	a.assumed = a.call.task.assumptions(a.call.tree.Conditions())
}

// assumptions returns what these conditions are, followed through the tasks that compute futures.
// Under mu.
func (t *task) assumptions(on []spectree.Condition) *assumptions {
	out := &assumptions{all: make([]Assumption, 0, len(on)), known: true}
	for _, d := range on {
		c, ok := d.Call.Data.(*call)
		if !ok || c.op == nil || d.Answer >= len(c.predictions) {
			out.known = false
			continue
		}
		if ft, ok := c.op.Transport.(*futureTransport); ok {
			b := ft.f.basis(c.predictions[d.Answer])
			out.known = out.known && b != nil
			out.all = append(out.all, b.assumptions()...)
			continue
		}
		out.all = append(out.all, Assumption{c.op, int(c.attempts), c.predictions[d.Answer]})
	}
	return out
}

// Assumes returns the predicted results that the caller of a speculative attempt goes on with, the
// newest first, followed through futures to the calls. ok is false if it stands on more than these.
// Of a predicated call that is among them, and was sent for this caller, what it was sent on itself
// is left out: it cannot have that result otherwise.
func (a *Attempt) Assumes() (all []Assumption, ok bool) {
	t := a.call.task
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.call.tree.Effect() == spectree.Predicated {
		if a.assumed == nil {
			return nil, !a.speculative
		}
		return a.assumed.all, a.assumed.known
	}
	use := a.call.tree.First()
	if use == nil {
		return nil, false
	}
	on, ok := use.Assumptions()
	out := t.assumptions(on)
	return out.all, ok && out.known
}

// Refused tells that the server ran nothing, since what the caller assumes is wrong or was not
// carried out either, and ends the attempt at a predicated call. There will be another one if the
// call is to be made all the same.
func (a *Attempt) Refused(reason string) {
	c, t := a.call, a.call.task
	t.mu.Lock()
	if c.attempt == a && !a.finished && !c.abandoned && !t.tree.Over() {
		c.op.CallSite.Engine().Counts().Refused.Add(1)
		t.notUnderWay(a)
		a.finished, a.assumed = true, nil
		c.attempt = nil
		t.tree.Refused(c.tree, reason)
	}
	release := a.resolver == nil && a.cancel != nil
	t.unlock()
	if release {
		a.cancel()
	}
}

// Unknown is Finish with an error that says nothing of whether the call was carried out, or will
// be: nobody learns.
func (a *Attempt) Unknown(err error) {
	a.unsure()
	a.Finish(nil, err)
}

// unsure has the tree know that the attempt's result says nothing about its predictions.
func (a *Attempt) unsure() {
	t := a.call.task
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tree.Unsure(a.call.tree)
}

// basis is what a prediction of a future's stands on: the guesses of the run that offered it.
type basis struct {
	domain  *spectree.Domain // of all of them; nil: there are others
	effects bool             // the run made calls with effects
	on      []Assumption
}

// of returns what the tree must know.
func (b *basis) of() (domain *spectree.Domain, effects bool) {
	if b == nil {
		return nil, false
	}
	return b.domain, b.effects
}

func (b *basis) assumptions() []Assumption {
	if b == nil {
		return nil
	}
	return b.on
}

// standsOn returns what the run's result stands on, or nil if nobody can be told, and whether
// others may go on with the result: what depends on it must not run ahead of effects that the run
// has yet to have, unless servers see to that.
func (t *task) standsOn(r *run) (b *basis, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.tree.Discarded() {
		return nil, false
	}
	if domain, on, ok := r.tree.Stands(); ok {
		if out := t.assumptions(on); out.known {
			return &basis{domain, r.tree.HasEffects(), out.all}, true
		}
	}
	return nil, !r.tree.HasEffects()
}

// basis returns what a prediction stands on, as one of those who offer it says, or did last; nil if
// it is not known.
func (f *future) basis(v any) (last *basis) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, p := range f.predictions {
		if i < len(f.bases) && len(f.bases[i]) > 0 && equalValues(p, v) {
			if last = f.bases[i][0]; f.backers[i] > 0 {
				break
			}
		}
	}
	return last
}

// offerAgain has the result of the run of a use be offered that could not be before: its last
// effect is sent. Under mu.
func (t *task) offerAgain(use *spectree.Use) {
	if t.out == nil || use == nil || !use.Run.Offered() {
		return
	}
	t.todo = append(t.todo, duty{kind: dutyOffer, of: use.Run.Data.(*run)})
}

// outcomeUnknown returns the error of a task that ends while it is not known whether a predicated
// call takes effect, which would end with err. Under mu.
func (t *task) outcomeUnknown(err error) error {
	if !t.tree.Unknown() {
		return err
	}
	if err == nil && t.ending != nil {
		err = t.ending.error(t.named(""))
	}
	return unfinished{err}
}

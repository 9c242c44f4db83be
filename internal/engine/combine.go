package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/foresay/foresay/internal/spectree"
	"github.com/foresay/foresay/internal/usercode"
)

// Any and Quorum go by the members that come first, and which do is chance. Plain code would live
// with that; a task whose code runs again must not come to something else, as calls are under way
// with what the earlier run has made of its members. So a run notes on which members it rested
// (choice), and later runs wait for the same ones, unless that run stood on a wrong guess there.
//
// A member counts only when it stands on no guess of its own: plain code goes by the answers that
// are there by then. Nobody waits for that, since what it has come to is passed on as a prediction
// meanwhile.

// ErrNoQuorum is foresay.ErrNoQuorum.
var ErrNoQuorum = errors.New("foresay: no quorum")

// All is foresay.All.
func All[T any](futures ...*Future[T]) *Future[[]T] {
	if err := present("All", futures); err != nil {
		return refused[[]T](futures, err)
	}
	ctx := context.Background()
	if len(futures) > 0 {
		ctx = futures[0].f.ctx
	}
	return Go(ctx, func(ctx context.Context) ([]T, error) {
		out := make([]T, len(futures))
		for i, f := range futures {
			var err error
			if out[i], err = f.Wait(ctx); err != nil {
				return nil, err
			}
		}
		return out, nil
	})
}

// Any is foresay.Any.
func Any[T any](futures ...*Future[T]) *Future[T] {
	if len(futures) == 0 {
		return refused[T](futures, errors.New("foresay: Any: no futures given"))
	}
	if err := present("Any", futures); err != nil {
		return refused[T](futures, err)
	}
	return combined(futures, nil, func(c *combination) ([]int, error) {
		for _, i := range c.arrived {
			if c.members[i].succeeded() {
				return []int{i}, nil
			}
		}
		if len(c.arrived) < len(c.members) {
			return nil, nil
		}
		return nil, c.errors()
	})
}

// Quorum is foresay.Quorum.
func Quorum[T any](n int, equal func(a, b T) bool, futures ...*Future[T]) *Future[T] {
	if n < 1 || n > len(futures) {
		return refused[T](futures, fmt.Errorf(
			"foresay: Quorum: want %d that agree, of %d futures: n must be within 1 and their number", n, len(futures)))
	}
	if err := present("Quorum", futures); err != nil {
		return refused[T](futures, err)
	}
	same := equalValues
	if equal != nil {
		same = func(a, b any) (agree bool) {
			at, ok := a.(T)
			bt, ok2 := b.(T)
			if ok && ok2 {
				usercode.Contain("Quorum", nil, "equivalence", func() { agree = equal(at, bt) })
			}
			return agree
		}
	}
	return combined(futures, same, func(c *combination) ([]int, error) {
		best := 0
		for _, i := range c.arrived {
			votes := c.agreeing(i, same)
			if len(votes) >= n {
				return votes[:n], nil
			}
			best = max(best, len(votes))
		}
		if open := len(c.members) - len(c.arrived); best+open >= n && open > 0 {
			return nil, nil
		}
		err := fmt.Errorf("%w: %d of %d agree, want %d", ErrNoQuorum, best, len(c.members), n)
		if failures := c.errors(); failures != nil {
			err = fmt.Errorf("%w: %w", err, failures)
		}
		return nil, err
	})
}

// present returns an error that tells which of the futures is nil, if one is.
func present[T any](name string, futures []*Future[T]) error {
	for i, f := range futures {
		if f == nil || f.f == nil {
			return fmt.Errorf("foresay: %s: future %d of %d is nil", name, i+1, len(futures))
		}
	}
	return nil
}

// refused returns a future that has failed, for the code that made the members.
func refused[U, T any](members []*Future[T], err error) *Future[U] {
	out := newFuture(context.Background(), nil)
	for _, m := range members {
		if m != nil && m.f != nil {
			out.ctx, out.run, out.name = m.f.ctx, m.f.run, "refused"
			break
		}
	}
	out.settle(func() { out.err = err })
	return &Future[U]{out}
}

// agreeing returns member i and those that arrived with an equal value, in the
// order of arrival; none if i failed.
func (c *combination) agreeing(i int, same func(a, b any) bool) []int {
	if !c.members[i].succeeded() {
		return nil
	}
	votes := []int{i}
	for _, j := range c.arrived {
		if j != i && c.members[j].succeeded() && same(c.members[i].value, c.members[j].value) {
			votes = append(votes, j)
		}
	}
	return votes
}

// combination is a future that is decided by the results of others as they arrive.
type combination struct {
	out     *future
	members []*future
	// decide returns the members that the result rests on, the first of which
	// has its value; or an error; or neither, as long as it is open.
	decide func(c *combination) (members []int, err error)

	mu      sync.Mutex
	arrived []int   // in the order of arrival
	offers  []offer // in the order of arrival
	hint    *offer  // the prediction that was passed on
	over    bool
}

// offer is a value that a member predicts, or has.
type offer struct {
	member int
	value  any
}

// combined combines one or more futures.
func combined[T any](
	futures []*Future[T], equal func(p, a any) bool, decide func(*combination) ([]int, error),
) *Future[T] {
	c := &combination{decide: decide}
	var names, lanes []string
	for _, f := range futures {
		c.members = append(c.members, f.f)
		names = append(names, f.f.name)
		lanes = append(lanes, f.f.computed...)
	}
	c.out = newFuture(c.members[len(futures)-1].ctx, equal)
	c.out.computed, c.out.members = lanes, c.members
	c.out.run, c.out.owner = c.members[0].run, c.members[0].owner
	c.out.name = "(" + strings.Join(names, ",") + ")"
	foreign := func(m *future) bool { return m.run != c.out.run }
	if slices.ContainsFunc(c.members, foreign) {
		c.out.settle(func() { c.out.err = ErrForeignFuture })
		return &Future[T]{c.out}
	}
	for _, m := range c.members {
		m.waits(1)
	}
	if c.out.run != nil {
		c.out.run.started(c.out)
	}
	for i, m := range c.members {
		m.subscribe(&arrival{c, i})
	}
	return &Future[T]{c.out}
}

// arrival is a combination's subscription to one of its members.
type arrival struct {
	c *combination
	i int
}

func (a *arrival) predicted(v any) { a.c.early(offer{a.i, v}) }

// withdrawn takes the prediction back once no member offers that value any more.
// Another one's takes its place.
func (a *arrival) withdrawn(v any) {
	c := a.c
	c.mu.Lock()
	gone := offer{a.i, v}
	if i := slices.IndexFunc(c.offers, gone.equal); i >= 0 {
		c.offers = slices.Delete(c.offers, i, i+1)
	}
	same := func(o offer) bool { return equalValues(o.value, v) }
	if c.over || c.hint == nil || !same(*c.hint) || slices.ContainsFunc(c.offers, same) {
		c.mu.Unlock()
		return
	}
	c.hint = nil
	if len(c.offers) > 0 {
		next := c.offers[0]
		c.hint = &next
	}
	next := c.hint
	c.mu.Unlock()
	c.out.withdraw(v, nil)
	if next != nil {
		c.out.predict(next.value, nil)
	}
}

func (o offer) equal(p offer) bool { return o.member == p.member && equalValues(o.value, p.value) }

// early passes the first value heard of on as a prediction.
func (c *combination) early(o offer) {
	c.mu.Lock()
	first := !c.over && c.hint == nil
	if !c.over {
		c.offers = append(c.offers, o)
	}
	if first {
		c.hint = &o
	}
	c.mu.Unlock()
	if first {
		c.out.predict(o.value, nil)
	}
}

// completed counts the member. What it came to on guesses of its own is a prediction until they are
// known to be right: plain code takes others that have arrived by then.
func (a *arrival) completed() {
	c := a.c
	if m := c.members[a.i]; a.waits() {
		if m.succeeded() && !m.effects {
			c.early(offer{a.i, m.value})
		}
		return
	}
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return
	}
	c.arrived = append(c.arrived, a.i)
	rests, err := c.outcome()
	c.over = len(rests) > 0
	over, arrived := c.over, slices.Clone(c.arrived)
	c.mu.Unlock()
	m := c.members[a.i]
	switch {
	case over:
		c.out.settle(func() { c.fill(rests, err) })
		for i, m := range c.members {
			m.decided(slices.Contains(arrived, i))
		}
		if c.out.run != nil {
			c.out.run.didWithout(len(arrived) < len(c.members))
			c.out.run.giveUp()
		}
	case m.err == nil && m.failed == nil && !m.effects:
		c.early(offer{a.i, m.value})
	}
}

// waits reports whether the member stands on guesses of its own. Then it is counted later.
func (a *arrival) waits() bool {
	r := a.c.out.run
	if r == nil {
		return false
	}
	r.task.mu.Lock()
	defer r.task.mu.Unlock()
	if a.known() {
		return false
	}
	r.task.mayDoubt()
	r.task.doubts.unsure = append(r.task.doubts.unsure, a)
	return true
}

// known reports whether the member stands on no guess of its own. Under the task's mu.
func (a *arrival) known() bool {
	var lanes []*spectree.Lane
	for _, l := range a.c.members[a.i].lanes {
		lanes = append(lanes, l.tree)
	}
	return a.c.out.run.task.tree.Known(lanes)
}

// seeKnown counts members of which it is known by now what they have come to. Under mu.
func (t *task) seeKnown() {
	if t.doubts == nil || len(t.doubts.unsure) == 0 {
		return
	}
	t.doubts.unsure = slices.DeleteFunc(t.doubts.unsure, func(a *arrival) bool {
		discarded := a.c.out.run.tree.Discarded()
		known := !discarded && a.known()
		if known {
			t.todo = append(t.todo, duty{kind: dutyArrive, of: a})
		}
		return discarded || known
	})
}

// choice is which members a combination rested on in one run, or several.
type choice struct {
	members []int
	bases   []*spectree.Basis // of the members' results, in each of these runs
	arrived []int             // the others went on without anybody who needs them
}

// right reports whether one of the runs was right there, or may have been.
func (ch *choice) right() bool { return slices.ContainsFunc(ch.bases, (*spectree.Basis).Right) }

// outcome returns what the combination has come to, and the members on which that rests, the first
// of which has its value: those that decide returns, or all that have arrived, if it cannot succeed
// any more. It is the same in all runs of a task: where others would do, the members of an earlier
// run are waited for, unless that run stood on a wrong guess there. Those that it did without have
// not arrived: what they have left open nobody needs, as little as then.
func (c *combination) outcome() (members []int, err error) {
	members, err = c.rests(c.arrived)
	r := c.out.run
	if len(members) == 0 || r == nil {
		return members, err
	}
	t := r.task
	for n := 0; ; n++ {
		t.mu.Lock()
		if r.tree.Discarded() { // its members fail by that
			t.mu.Unlock()
			return members, err
		}
		earlier := t.choices[c.out.name]
		if n == len(earlier) {
			if t.choices == nil {
				t.choices = make(map[string][]choice)
			}
			bases := []*spectree.Basis{c.basis(members)}
			t.choices[c.out.name] = append(earlier, choice{members, bases, slices.Clone(c.arrived)})
			t.mu.Unlock()
			return members, err
		}
		right := earlier[n].right()
		t.mu.Unlock()
		if !right {
			continue
		}
		chosen := earlier[n].members
		if slices.ContainsFunc(chosen, func(i int) bool { return !slices.Contains(c.arrived, i) }) {
			return nil, nil
		}
		if again, err := c.rests(chosen); slices.Equal(again, chosen) {
			c.arrived = slices.DeleteFunc(c.arrived, func(i int) bool { return !slices.Contains(earlier[n].arrived, i) })
			t.mu.Lock()
			same := &t.choices[c.out.name][n]
			same.bases = append(same.bases, c.basis(again)) // it may be right where the first was not
			t.mu.Unlock()
			return again, err
		}
	}
}

// rests returns what decide says of these members alone, and on which of them that rests.
func (c *combination) rests(arrived []int) (members []int, err error) {
	alone := &combination{members: c.members, arrived: arrived}
	if members, err = c.decide(alone); err != nil {
		members = slices.Sorted(slices.Values(arrived))
	}
	return members, err
}

// basis returns what the members' results stand on. Under the task's mu.
func (c *combination) basis(members []int) *spectree.Basis {
	var lanes []*spectree.Lane
	for _, i := range members {
		for _, l := range c.members[i].lanes {
			lanes = append(lanes, l.tree)
		}
	}
	return c.out.run.task.tree.Basis(lanes)
}

// fill sets the combined result. It depends on the members that it rests on.
func (c *combination) fill(rests []int, err error) {
	c.out.err = err
	if err == nil {
		c.out.value = c.members[rests[0]].value
	}
	for _, i := range rests {
		m := c.members[i]
		c.out.effects = c.out.effects || m.effects
		c.out.lanes = append(c.out.lanes, m.lanes...)
		c.out.plainEnd = later(c.out.plainEnd, m.plainEnd)
		if m.failed != nil && c.out.failed == nil {
			c.out.failed = m.failed
		}
	}
}

// succeeded reports whether a settled future has a value.
func (f *future) succeeded() bool { return f.err == nil && f.failed == nil }

// errors returns why members failed that have arrived, in their order. A panic is among them, so
// that there is an error wherever none succeeded.
func (c *combination) errors() error {
	var errs []error
	for _, i := range slices.Sorted(slices.Values(c.arrived)) {
		switch m := c.members[i]; {
		case m.failed != nil:
			errs = append(errs, m.failed)
		default:
			errs = append(errs, m.err)
		}
	}
	return errors.Join(errs...)
}

package foresay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// ErrNoQuorum is wrapped by the error of a Quorum of which too many futures
// failed or disagree.
var ErrNoQuorum = errors.New("foresay: no quorum")

// All returns the results of all futures, in order, or the error of the first
// one that failed, in order.
func All[T any](futures ...*Future[T]) *Future[[]T] {
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

// Any returns the result of the first future to succeed, or, if none does, the
// errors of all. The others run on.
func Any[T any](futures ...*Future[T]) *Future[T] {
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

// Quorum returns the first value that n of the futures agree on by equal (nil:
// plain equality; a panic counts as "no"). The first of them to answer is a prediction for it: what
// depends on a quorum goes on with the nearest replica's answer. If too many
// fail or disagree the error wraps ErrNoQuorum. [SpecRPC §4.1]
func Quorum[T any](n int, equal func(a, b T) bool, futures ...*Future[T]) *Future[T] {
	same := equalValues
	if equal != nil {
		same = func(a, b any) (agree bool) {
			at, ok := a.(T)
			bt, ok2 := b.(T)
			if ok && ok2 {
				contain("Quorum", nil, "equivalence", func() { agree = equal(at, bt) })
			}
			return agree
		}
	}
	return combined(futures, same, func(c *combination) ([]int, error) {
		best := 0
		for _, i := range c.arrived {
			votes := c.agreeing(i, same)
			if len(votes) > 0 && len(votes) >= n {
				return votes[:max(n, 1)], nil
			}
			best = max(best, len(votes))
		}
		if open := len(c.members) - len(c.arrived); best+open >= n && open > 0 {
			return nil, nil
		}
		return nil, fmt.Errorf("%w: %d of %d agree, want %d: %w", ErrNoQuorum, best, len(c.members), n, c.errors())
	})
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
	arrived []int // in the order of arrival
	hinted  bool  // a prediction was passed on
	over    bool
}

func combined[T any](futures []*Future[T], equal func(p, a any) bool, decide func(*combination) ([]int, error)) *Future[T] {
	ctx := context.Background()
	c := &combination{decide: decide}
	var names []string
	for _, f := range futures {
		c.members = append(c.members, f.f)
		names = append(names, f.f.name)
		ctx = f.f.ctx
	}
	c.out = newFuture(ctx, equal)
	if len(futures) == 0 {
		c.out.settle(func() { c.out.err = fmt.Errorf("%w: no futures given", ErrNoQuorum) })
		return &Future[T]{c.out}
	}
	c.out.run = c.members[0].run
	c.out.name = "(" + strings.Join(names, ",") + ")"
	c.out.members = c.members
	for i, m := range c.members {
		if m.run != c.out.run {
			c.out.settle(func() { c.out.err = ErrForeignFuture })
			break
		}
		m.subscribe(&arrival{c, i})
	}
	return &Future[T]{c.out}
}

// arrival is a combination's subscription to one of its members.
type arrival struct {
	c *combination
	i int
}

func (a *arrival) predicted(v any) { a.c.early(v) }

func (a *arrival) withdrawn(v any) {
	a.c.out.withdraw(v)
	a.c.mu.Lock()
	a.c.hinted = false // the next value heard of will do
	a.c.mu.Unlock()
}

// early passes the first value heard of on as a prediction.
func (c *combination) early(v any) {
	c.mu.Lock()
	first := !c.over && !c.hinted
	c.hinted = true
	c.mu.Unlock()
	if first {
		c.out.predict(v)
	}
}

func (a *arrival) completed() {
	c := a.c
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return
	}
	c.arrived = append(c.arrived, a.i)
	chosen, err := c.decide(c)
	chosen = c.recorded(chosen)
	c.over = len(chosen) > 0 || err != nil
	over := c.over
	c.mu.Unlock()
	m := c.members[a.i]
	switch {
	case over:
		c.out.settle(func() { c.fill(chosen, err) })
		c.out.disband()
	case m.err == nil && m.failed == nil && !m.effects:
		c.early(m.value)
	}
}

// recorded makes the choice the same in all runs of a task: where several
// members would do, those that an earlier run chose are waited for.
func (c *combination) recorded(members []int) []int {
	r := c.out.run
	if len(members) == 0 || r == nil {
		return members
	}
	t := r.task
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.choices == nil {
		t.choices = make(map[string][]int)
	}
	chosen, ok := t.choices[c.out.name]
	if !ok {
		t.choices[c.out.name] = members
		return members
	}
	for _, i := range chosen {
		if slices.Contains(c.arrived, i) && c.members[i].succeeded() {
			continue
		}
		if len(c.arrived) < len(c.members) {
			return nil
		}
		return members
	}
	return chosen
}

// fill sets the combined result. It depends on the members that it rests on; a
// failure on all.
func (c *combination) fill(chosen []int, err error) {
	c.out.err = err
	if len(chosen) > 0 {
		c.out.value = c.members[chosen[0]].value
	} else {
		chosen = slices.Sorted(slices.Values(c.arrived))
	}
	for _, i := range chosen {
		m := c.members[i]
		c.out.effects = c.out.effects || m.effects
		c.out.lanes = append(c.out.lanes, m.lanes...)
		if m.failed != nil && c.out.failed == nil {
			c.out.failed = m.failed
		}
	}
}

// succeeded reports whether a settled future has a value.
func (f *future) succeeded() bool { return f.err == nil && f.failed == nil }

func (c *combination) errors() error {
	var errs []error
	for _, m := range c.members {
		if isClosed(m.ready) && m.failed == nil {
			errs = append(errs, m.err)
		}
	}
	return errors.Join(errs...)
}

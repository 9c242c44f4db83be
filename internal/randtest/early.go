package randtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// This file is about programs whose own context ends before they do. It ends while the
// program waits for a read that never answers, which may be guessed. Then the program goes on:
// with the context that has ended, and with one that has not, as code that cleans up does. The
// other goroutines have come to their ends by then. So the sequential execution, whose
// context ends at the same time, tells all that is right: results, effects, and hooks.

// earlyEnd is when and how a program's context ends; zero for never.
type earlyEnd struct {
	after      time.Duration
	byDeadline bool
}

// contextEndsAfter is so long that all other calls of a program are answered by then.
const contextEndsAfter = time.Minute

// bound has the context end so.
func (e earlyEnd) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	switch {
	case e.after == 0:
		return ctx, func() {}
	case e.byDeadline:
		return context.WithTimeout(ctx, e.after)
	}
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(e.after, cancel)
	return ctx, func() {
		timer.Stop()
		cancel()
	}
}

// NewEnded returns a scenario of a program whose context ends.
func NewEnded(seed uint64) *Scenario {
	sc := &Scenario{Seed: seed, chance: chance(seed)}
	r := rand.New(rand.NewPCG(seed, 0xe4da))
	sc.knobs = newKnobs(r, false)
	sc.knobs.Tight = false // limits would run out while the read does not answer
	sc.matrix = newMatrix(r, sc.knobs.Servers)
	sc.early = earlyEnd{after: contextEndsAfter, byDeadline: r.IntN(2) == 0}
	g := &generator{Rand: r, servers: sc.knobs.Servers, budget: 25}
	keys := ownKeys(g.servers, 0)
	steps := g.body(keys, 1, r.IntN(4))
	if r.IntN(4) == 0 {
		steps = append(steps, g.crowd())
	}
	end := g.endOfContext(keys)
	if r.IntN(3) == 0 { // beside a goroutine that has come to its end by then
		parts := g.deal(keys, 2)
		g.id++
		end = &step{id: g.id, kind: kindGroup, bodies: [][]*step{{g.endOfContext(parts[0])},
			g.body(parts[1], 2, 1+r.IntN(3))}, then: make([][]*step, 2)}
	}
	sc.tasks = []*task{{name: "t0", links: [][]*step{append(steps, end)}}}
	return sc
}

// endOfContext makes the step during which the program's context ends.
func (g *generator) endOfContext(keys []string) *step {
	g.id++
	s := &step{id: g.id, kind: kindEnd, ends: endTask, count: g.IntN(2)}
	for range 2 {
		var body []*step
		for range 1 + g.IntN(4) {
			switch g.IntN(3) {
			case 0:
				g.id++
				body = append(body, &step{id: g.id, kind: []kind{kindAct, kindMemo, kindHook, kindBarrier, kindSleep}[g.IntN(5)],
					pause: time.Millisecond})
			default:
				body = append(body, g.calls(keys, 1)...)
			}
		}
		s.bodies = append(s.bodies, body)
	}
	return s
}

// contextEnds waits for the end of the program's context, and goes on.
func (x *execution) contextEnds(ctx context.Context, e *ender, digest string) (string, error) {
	err := e.reads(ctx)
	if err == nil {
		err = e.never(ctx, "/never")
	}
	if err != nil {
		return digest, err
	}
	e.ended(ctx)
	for _, seen := range e.seen {
		digest = x.note(e.at, digest, seen)
	}
	for i, body := range e.s.bodies { // a scenario made smaller may have one of the two
		if i == 1 {
			ctx = context.WithoutCancel(ctx)
		}
		if digest, err = x.body(ctx, fmt.Sprintf("%s/%d", e.at, i), body, digest); err != nil {
			return digest, err
		}
	}
	return digest, nil
}

// RunEnded checks so many of them.
func RunEnded(t *testing.T, seeds int) {
	t.Helper()
	run(t, seeds, NewEnded)
}

package randtest

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// This file is about goroutines that share a context and start Groups with it, in which
// there are effects. Each asks for other keys, so that a replay, in which the goroutines
// come in another order, can tell them apart by what they ask for. Several may sleep for the
// same time, and come to their Groups at one moment.

// addCrowds adds such steps to a program. They are drawn apart from the others, so that
// what a seed means otherwise stays as it is.
func (sc *Scenario) addCrowds() {
	r := rand.New(rand.NewPCG(sc.Seed, 0xc70d))
	g := &generator{Rand: r, servers: sc.knobs.Servers, faults: sc.Faults, id: 9000}
	for _, t := range sc.tasks {
		for i := range t.links {
			if r.IntN(3) == 0 {
				t.links[i] = g.addCrowd(t.links[i])
			}
		}
	}
}

// addCrowd puts a step in some place of a body, or of one within.
func (g *generator) addCrowd(steps []*step) []*step {
	at := g.IntN(len(steps) + 1)
	if at < len(steps) {
		switch s := steps[at]; s.kind {
		case kindBranch, kindRepeat, kindDo, kindGroup, kindFutures, kindQuorum, kindAny:
			if i := g.IntN(len(s.bodies)); g.IntN(3) == 0 {
				if s.kind == kindRepeat {
					g.repeats++
					defer func() { g.repeats-- }()
				}
				s.bodies[i] = g.addCrowd(s.bodies[i])
				return steps
			}
		}
	}
	g.budget = 20
	return slices.Insert(slices.Clone(steps), at, g.crowd())
}

// crowd makes such a step.
func (g *generator) crowd() *step {
	g.id++
	s := &step{id: g.id, kind: kindCrowd}
	n := 2 + g.IntN(2)
	var keys []string
	for i := range 3 * n {
		keys = append(keys, keyOf(g.IntN(g.servers), classOwn, 1000+20*s.id+i))
	}
	for _, part := range g.deal(keys, n) {
		s.bodies = append(s.bodies, g.goroutine(part))
	}
	return s
}

// goroutine makes the steps of one of the goroutines, which uses these keys: some calls
// with the shared context, a Group, and some more calls.
func (g *generator) goroutine(keys []string) []*step {
	var steps []*step
	if g.IntN(2) == 0 {
		g.id++
		steps = append(steps, &step{id: g.id, kind: kindSleep, pause: time.Duration(1+g.IntN(15)) * 733 * time.Microsecond})
	}
	steps = append(steps, g.calls(keys, g.IntN(3))...)
	if g.IntN(5) > 0 {
		g.id++
		group := &step{id: g.id, kind: kindGroup}
		for _, part := range g.deal(keys, 1+g.IntN(2)) {
			group.bodies = append(group.bodies, g.body(part, 2, 1+g.IntN(3)))
		}
		group.then = make([][]*step, len(group.bodies))
		steps = append(steps, group)
	}
	return append(steps, g.calls(keys, g.IntN(3))...)
}

// calls makes reads and writes of these keys.
func (g *generator) calls(keys []string, n int) []*step {
	var steps []*step
	for range n {
		g.id++
		s := &step{id: g.id, kind: []kind{kindGet, kindGet, kindPut, kindAppend}[g.IntN(4)], keys: g.pick(keys)}
		if s.kind != kindGet {
			s.value = g.value()
		}
		steps = append(steps, s)
	}
	return steps
}

// NewCrowded returns a scenario of goroutines on one context and little else.
func NewCrowded(seed uint64) *Scenario {
	sc := &Scenario{Seed: seed, chance: chance(seed)}
	r := rand.New(rand.NewPCG(seed, 0xc70e))
	sc.knobs = newKnobs(r, false)
	sc.matrix = newMatrix(r, sc.knobs.Servers)
	g := &generator{Rand: r, servers: sc.knobs.Servers, budget: 40}
	steps := g.calls(ownKeys(g.servers, 0), g.IntN(3))
	steps = append(steps, g.crowd())
	steps = append(steps, g.calls(ownKeys(g.servers, 0), 1+g.IntN(2))...)
	if g.IntN(3) == 0 {
		steps = append(steps, g.crowd())
		steps = append(steps, g.calls(ownKeys(g.servers, 0), 1)...)
	}
	sc.tasks = []*task{{name: "t0", links: [][]*step{steps}}}
	return sc
}

// RunCrowded checks so many of them.
func RunCrowded(t *testing.T, seeds int) {
	t.Helper()
	run(t, seeds, NewCrowded)
}

// NewFaultyCrowds returns a scenario with faults and with such goroutines.
func NewFaultyCrowds(seed uint64) *Scenario {
	sc := NewScenario(seed, true)
	sc.addCrowds()
	return sc
}

// RunFaultyCrowds checks so many of them.
func RunFaultyCrowds(t *testing.T, seeds int) {
	t.Helper()
	run(t, seeds, NewFaultyCrowds)
}

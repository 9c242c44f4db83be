package spectree

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/internal/seed"
)

// execution is one program, executed by a shell and compared with the naive
// model. All of it follows from the seed and the index.
type execution struct {
	seed, index uint64
	nondet      bool // the program's path depends on which run it is
	drops       bool // it may give up waiting, which few programs do otherwise
	predicated  bool // most of its calls are predicated
	unchecked   bool // do not look at the tree's invariants, only at what it does
	rescue      bool // have who is stuck go on
	stats       *stats
	trace       *strings.Builder
}

// execute returns what is wrong.
func (e execution) execute() string {
	rng := rand.New(rand.NewPCG(e.seed, e.index))
	strict := e.index%16 == 4 && !e.nondet
	p := generate(rng, e.nondet, strict)
	p.drops = p.drops || e.drops
	if e.index%8 == 5 && !e.nondet { // by numbers of its own, so that the other programs stay as they are
		p.hide(rand.New(rand.NewPCG(e.seed, ^e.index)))
	}
	if strict {
		p.strict(rand.New(rand.NewPCG(e.seed, ^e.index)))
	}
	if e.predicated {
		p.predicate(rand.New(rand.NewPCG(e.seed, ^e.index)))
	}
	s := newShell(p, rng)
	s.rescue = e.rescue
	if e.index%4 == 3 {
		s.doubts = rand.New(rand.NewPCG(e.seed, ^e.index))
	}
	s.stats, s.trace, s.check, s.thorough = e.stats, e.trace, !e.unchecked, e.index%8 == 0
	if s.stats == nil {
		s.stats = new(stats)
	}
	if e.trace != nil {
		p.print(e.trace)
		fmt.Fprintf(e.trace, "%+v\n", s.t.cfg)
	}
	s.run()
	s.judge()
	s.stats.programs++
	s.stats.steps += s.time
	s.stats.runs += len(s.runs)
	return s.problem
}

// judge compares what happened with what may happen.
func (s *shell) judge() {
	if s.problem != "" {
		return
	}
	if !s.t.Over() {
		s.fail("stuck")
		return
	}
	s.nothingPending()
	switch {
	case s.winner != nil:
		s.compare()
	case s.refuted:
		s.stats.refuted++
		if len(s.applied) > 0 {
			s.fail("%d effects although the caller was wrong", len(s.applied))
		}
	case s.ended:
		s.stats.ended++
	case s.diverged:
		s.stats.diverged++
		// Goroutines that share a lane may swap equal calls, and with them answers
		// that depend on when they came, or that differ and count as equal.
		if swapped := (s.p.shares || s.p.lends) && (s.p.clocks || s.p.tolerant); !swapped && !s.dropped && !s.p.nondet &&
			!s.hurried {
			s.fail("diverged")
		}
	default:
		s.fail("the task ended without an outcome")
	}
}

func (s *shell) nothingPending() {
	if err := s.t.check(); err != nil && s.check {
		s.fail("invariant, in the end: %v", err)
	}
	for _, c := range s.calls {
		if c.state != answered && c.state != aborted {
			s.fail("call %d is pending in the end, in state %d", c.c.ID, c.state)
		}
		if c.speculative && !c.confirmed && !c.abandoned {
			s.fail("call %d was sent speculatively and learns nothing", c.c.ID)
		}
	}
	for _, r := range s.runs {
		if !r.exited || !r.discarded && r != s.winner {
			s.fail("run %d is pending in the end", r.run.ID)
		}
	}
	if s.t.running != 0 {
		s.fail("%d goroutines are counted in the end", s.t.running)
	}
}

// place is where in the program a step was made.
type place struct {
	path  uint64
	index int
}

// compare holds the winner's steps and the effects on the world against those
// of the naive model.
func (s *shell) compare() {
	m := &model{p: s.p, world: newWorld(), logs: make(map[uint64]*replayed)}
	places := make(map[*shellCall]place)
	for _, th := range s.winner.threads {
		log := &replayed{acc: th.acc}
		m.logs[th.path] = log
		for i, st := range th.steps {
			log.steps = append(log.steps, st.step)
			if st.use == nil || st.dropped {
				continue
			}
			c := st.use.Call.Data.(*shellCall)
			if c.local == nil && c.site.kind != actOnce && c.q != st.request {
				s.fail("call %d counts as another request", c.c.ID)
			}
			if _, twice := places[c]; !twice {
				places[c] = place{th.path, i}
			} else if c.site.kind != actOnce {
				s.fail("call %d answers two calls of a run", c.c.ID)
			}
		}
	}
	for c := range places {
		if c.local == nil && c.state == answered && !c.settled {
			s.fail("call %d counts and is not settled: confirmed %v, abandoned %v", c.c.ID, c.confirmed, c.abandoned)
		}
	}
	exact := !s.dropped && !s.p.shares && !s.p.lends && !s.p.nondet
	for _, c := range s.calls {
		if _, ok := places[c]; !ok && (c.changed || c.settled && exact) {
			s.fail("call %d counts although the winner did not make it: settled %v, changed the world %v", c.c.ID, c.settled,
				c.changed)
		}
	}
	if s.p.nondet {
		return // no two executions are the same
	}
	m.run()
	if m.problem != "" {
		s.fail("%s", m.problem)
		return
	}
	s.compareEffects(m, places)
	if !s.p.shares && !s.p.lends {
		s.ordered()
	}
}

func (s *shell) compareEffects(m *model, places map[*shellCall]place) {
	if n := len(m.effects) + m.acts; n != len(s.applied) {
		s.fail("%d effects, sequentially %d", len(s.applied), n)
		return
	}
	at := make(map[place]int)
	for i, c := range s.applied {
		at[places[c]] = i
	}
	for _, e := range m.effects {
		i, ok := at[e.place]
		if !ok {
			s.fail("an effect of thread %o is missing", e.path)
			return
		}
		for _, before := range e.after {
			if j := at[m.effects[before].place]; j > i {
				s.fail("two effects are swapped: calls %d and %d", s.applied[i].c.ID, s.applied[j].c.ID)
			}
		}
	}
}

// ordered checks that calls on ordered sites were executed one after the other.
func (s *shell) ordered() {
	for _, th := range s.winner.threads {
		var earlier []*shellCall
		for _, st := range th.steps {
			if st.use == nil || st.dropped {
				continue
			}
			c := st.use.Call.Data.(*shellCall)
			if c.local != nil || !c.site.ordered {
				continue
			}
			for _, o := range earlier {
				if !disjoint(o.c.spec.Conflict, c.c.spec.Conflict) && c.executedAt < o.answeredAt {
					s.fail("ordered call %d was executed before call %d was answered", c.c.ID, o.c.ID)
				}
			}
			earlier = append(earlier, c)
		}
	}
}

// setting returns a number from the environment.
func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// runPrograms executes n programs or a share of them, or the one that FORESAY_PROGRAM
// names, with the seed FORESAY_SEED. make soak counts the seed up.
func runPrograms(t *testing.T, n int, e execution) {
	e.seed, e.stats = seed.First(t, 1), new(stats)
	first, last := uint64(0), uint64(seed.Count(t, n))
	if os.Getenv("FORESAY_PROGRAM") != "" {
		first = setting(t, "FORESAY_PROGRAM", 0)
		last = first + 1
	}
	for e.index = first; e.index < last; e.index++ {
		problem := e.execute()
		if problem == "" {
			continue
		}
		t.Errorf("%s\nreplay: FORESAY_SEED=%d FORESAY_PROGRAM=%d go test -count=1 -run '^%s$' ./internal/spectree",
			problem, e.seed, e.index, t.Name())
		if os.Getenv("FORESAY_PROGRAM") != "" {
			e.trace = new(strings.Builder)
			e.execute()
			t.Log(e.trace)
		}
		return
	}
	t.Logf("%+v", *e.stats)
	s := e.stats
	for what, n := range map[string]int{
		"replays": s.runs - s.programs, "adopted calls": s.adopted, "predictions": s.accepted, "refusals": s.refused,
		"effects": s.effects, "callers refuted": s.refuted, "barriers": s.barriers, "dropped calls": s.dropped,
		"calls that were not made": s.skipped, "calls that gave way": s.gaveWay,
		"doubters": s.doubted, "calls that relatives hold up": s.hurried, "lanes that others hold up": s.heldUp,
		"doubters that gave up": s.insisted, "variants": s.variants,
		"withdrawn predictions": s.withdrawn,
	} {
		if last-first > 5000 && !(what == "variants" && e.nondet) && n < s.programs/2000 { // of fewer programs it is chance
			t.Errorf("only %d %s in %d programs", n, what, s.programs)
		}
	}
}

// TestRandomPrograms checks [docs/architecture.md], guarantees 1, 2, 3 and 5, on
// deterministic programs.
func TestRandomPrograms(t *testing.T) {
	runPrograms(t, 100_000, execution{})
}

// TestRandomDrops checks the same on programs all of which may give up waiting, or come to calls
// with contexts that have ended.
func TestRandomDrops(t *testing.T) {
	runPrograms(t, 40_000, execution{drops: true})
}

// TestRandomPredicated checks the same on programs most of whose calls are predicated.
func TestRandomPredicated(t *testing.T) {
	runPrograms(t, 50_000, execution{predicated: true})
}

// TestRandomNondeterminism checks that what took effect is what the winner did,
// or that the task has no winner, even if the function does not keep to the rules.
func TestRandomNondeterminism(t *testing.T) {
	runPrograms(t, 25_000, execution{nondet: true})
}

// TestGoOn has tasks that are stuck go on without speculation. None is, unless a bug is planted
// that keeps what waits for itself: then they must come to their right ends all the same, and only
// that they were stuck shows.
func TestGoOn(t *testing.T) {
	e := execution{seed: seed.First(t, 1), unchecked: true, rescue: true, stats: new(stats)}
	for ; e.index < 5000; e.index++ {
		if problem := e.execute(); problem != "" {
			if plant.Planted() {
				t.Skipf("going on does not help: program %d: %s", e.index, problem)
			}
			t.Fatalf("program %d: %s", e.index, problem)
		}
	}
	if e.stats.stalls > 0 {
		t.Errorf("%d stalls in %d programs", e.stats.stalls, e.stats.programs)
	}
}

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }

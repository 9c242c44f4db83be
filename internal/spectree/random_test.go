package spectree

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// execute generates the program of a seed, has it executed by a shell and
// compares with the naive model. It returns what is wrong.
func execute(seed, index uint64, nondet, check bool, m mutation, st *stats, trace *strings.Builder) string {
	rng := rand.New(rand.NewPCG(seed, index))
	p := generate(rng, nondet)
	s := newShell(seed, index, p, rng, m)
	s.stats, s.trace, s.check = st, trace, check
	if trace != nil {
		fmt.Fprintf(trace, "limits %+v\n", s.t.cfg)
		for i, site := range p.sites {
			fmt.Fprintf(trace, "site %d %+v\n", i, site)
		}
		p.main.print(trace, "")
	}
	s.run()
	s.judge()
	st.programs++
	st.steps += s.time
	st.runs += len(s.runs)
	st.maxRuns = max(st.maxRuns, len(s.runs))
	return s.problem
}

func (b *block) print(w *strings.Builder, indent string) {
	names := [...]string{"call", "skip", "fork", "spawn", "join", "await", "sibling", "barrier", "nondet", "end"}
	for _, in := range b.code {
		fmt.Fprintf(w, "%s%s site=%d dyn=%v arg=%d n=%d child=%d keys=%v\n", indent, names[in.op], in.site, in.dynamic, in.arg, in.n, in.child, in.keys)
		if in.block != nil {
			in.block.print(w, indent+"    ")
		}
	}
}

// judge compares what happened with what may happen.
func (s *shell) judge() {
	if s.problem != "" {
		return
	}
	if err := s.t.check(); err != nil {
		s.fail("invariant, in the end: %v", err)
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
		if !s.dropped && !s.p.nondet && !s.p.shares {
			s.fail("diverged")
		}
	default:
		s.fail("stuck")
	}
}

func (s *shell) nothingPending() {
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

// compare runs the naive model along the winner's steps.
func (s *shell) compare() {
	m := &model{p: s.p, world: newWorld(), logs: make(map[uint64]*replayed), nondet: s.winner.run.ID}
	type place struct {
		path  uint64
		index int
	}
	places := make(map[*shellCall]place)
	for _, th := range s.winner.threads {
		log := &replayed{acc: th.acc}
		for i, st := range th.steps {
			log.steps = append(log.steps, st.step)
			if st.use != nil && !st.dropped {
				if c := st.use.Call.Data.(*shellCall); c.local == nil {
					if _, twice := places[c]; twice && c.site.kind != actOnce {
						s.fail("call %d answers two calls of a run", c.c.ID)
					} else if !twice {
						places[c] = place{th.path, i}
					}
				}
			}
		}
		m.logs[th.path] = log
	}
	m.run()
	if m.problem != "" {
		s.fail("%s", m.problem)
		return
	}
	for _, c := range s.calls {
		if _, ok := places[c]; !ok && !s.dropped && !s.p.shares && (c.settled || c.changed) {
			s.fail("call %d counts although the winner did not make it: settled %v, changed the world %v", c.c.ID, c.settled, c.changed)
		}
	}
	if n := len(m.effects) + m.acts; n != len(s.applied) {
		s.fail("%d effects, sequentially %d", len(s.applied), n)
		return
	}
	at := make(map[place]int)
	for i, c := range s.applied {
		if _, ok := places[c]; !ok {
			s.fail("call %d changed the world although the winner did not make it", c.c.ID)
		}
		at[places[c]] = i
	}
	for _, e := range m.effects {
		i, ok := at[place{e.path, e.index}]
		if !ok {
			s.fail("an effect of thread %o is missing", e.path)
			return
		}
		for _, before := range e.after {
			if j, ok := at[place{m.effects[before].path, m.effects[before].index}]; ok && j > i {
				s.fail("two effects are swapped: calls %d and %d", s.applied[i].c.ID, s.applied[j].c.ID)
			}
		}
	}
	if !s.p.shares {
		s.ordered()
	}
}

// ordered checks that calls on ordered sites were executed one after the other.
func (s *shell) ordered() {
	for _, th := range s.winner.threads {
		var last []*shellCall
		for _, st := range th.steps {
			if st.use == nil || st.dropped {
				continue
			}
			c := st.use.Call.Data.(*shellCall)
			if c.local != nil || !c.site.ordered {
				continue
			}
			for _, o := range last {
				if !disjoint(o.c.spec.Conflict, c.c.spec.Conflict) && c.executedAt < o.answeredAt {
					s.fail("ordered call %d was executed before call %d was answered", c.c.ID, o.c.ID)
				}
			}
			last = append(last, c)
		}
	}
}

func seedOf(t testing.TB) uint64 {
	v := os.Getenv("FORESAY_SEED")
	if v == "" {
		return 1
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		t.Fatalf("FORESAY_SEED: %v", err)
	}
	return n
}

func TestRandomPrograms(t *testing.T) {
	seed := seedOf(t)
	n := uint64(120000)
	st := &stats{}
	first := uint64(0)
	if v := os.Getenv("FORESAY_PROGRAM"); v != "" {
		first, _ = strconv.ParseUint(v, 10, 64)
		n = first + 1
	}
	if v := os.Getenv("N"); v != "" {
		n, _ = strconv.ParseUint(v, 10, 64)
	}
	bad := 0
	kinds := map[string]int{}
	for i := first; i < n; i++ {
		if problem := execute(seed, i, false, true, 0, st, nil); problem != "" {
			bad++
			k := strings.Map(func(r rune) rune {
				if r >= '0' && r <= '9' {
					return -1
				}
				return r
			}, problem)
			kinds[k]++
			if kinds[k] == 1 {
				t.Errorf("%s\nreplay: FORESAY_SEED=%d FORESAY_PROGRAM=%d", problem, seed, i)
				if v := os.Getenv("FORESAY_PROGRAM"); v != "" {
					var b strings.Builder
					execute(seed, i, false, true, 0, st, &b)
					t.Log(b.String())
				}
			}
		}
	}
	t.Logf("%d of %d bad %v\n%+v", bad, n, kinds, *st)
}

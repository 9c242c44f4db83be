package spectree

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/foresay/foresay/internal/race"
	"github.com/foresay/foresay/internal/seed"
)

// explorer has a shell take all ways that a small program can take, one after the
// other. A way is the moves that were made, each by its number among those that
// were possible; ways that lead to a state that was met are not followed.
type explorer struct {
	way     []int // to be taken
	taken   int   // moves so far
	pending [][]int
	prints  *fingerprints
	met     map[uint64]struct{}
	again   bool // the state was met: the way ends here
}

// move is something that may happen next.
type move struct {
	name string
	make func()
}

// alone reports whether what the thread does next is the same whatever else
// happens first: its run is discarded, or it starts a goroutine.
func (t *shellThread) alone() bool {
	if t.run.discarded {
		return true
	}
	op := t.next().op
	return t.state == ready && (op == opFork || op == opSpawn)
}

// moves returns what may happen next in a small program.
func (s *shell) moves() []move {
	var out []move
	add := func(f func(), name string, args ...any) { out = append(out, move{fmt.Sprintf(name, args...), f}) }
	for _, r := range s.runs {
		if r.exited {
			continue
		}
		if r.live == 0 {
			if r.discarded {
				return []move{{"alone", func() { s.exit(r) }}}
			}
			add(func() { s.exit(r) }, "run %d returns", r.run.ID)
		}
		for i, th := range r.threads {
			if th.runnable() {
				if th.alone() {
					return []move{{"alone", func() { s.stepThread(th) }}}
				}
				add(func() { s.stepThread(th) }, "run %d thread %d goes on", r.run.ID, i)
			}
			if s.p.drops && th.mayDrop() {
				add(func() { s.dropAs(th) }, "run %d thread %d gives up", r.run.ID, i)
			}
		}
	}
	for _, c := range s.calls {
		if s.canMove(c) {
			add(func() { s.proceed(c) }, "call %d goes on", c.c.ID)
		}
		if len(c.coming) > 0 && c.state < executed {
			add(func() { s.predictNext(c) }, "call %d is predicted", c.c.ID)
		}
		if c.state == inFlight && c.refusals < s.p.refusals {
			add(func() { c.refusals++; s.refuse(c) }, "call %d is refused", c.c.ID)
		}
	}
	if s.t.Over() {
		return out
	}
	out = append(out, s.doubtMoves()...)
	if s.caller {
		add(s.confirmCaller, "the caller is confirmed")
		add(s.refuteCaller, "the caller is refuted")
	}
	if len(out) == 0 && s.t.Orphans() > 0 {
		add(func() { s.wait() }, "the grace ends")
	}
	return out
}

// doubtMoves returns which doubters may be started, and which may give up.
func (s *shell) doubtMoves() (out []move) {
	for _, r := range s.runs {
		if r.discarded {
			continue
		}
		for i, th := range r.threads {
			if c := r.run.doubts(); c != nil && th.mayDrop() && th.use.Call == c {
				out = append(out, move{fmt.Sprintf("run %d thread %d cancels call %d", r.run.ID, i, c.ID), func() { s.dropAs(th) }})
			}
		}
		for _, u := range r.run.uses {
			if u.Overtaken() && !u.hurried {
				out = append(out, move{fmt.Sprintf("run %d hurries call %d", r.run.ID, u.Call.ID), func() { s.t.Hurry(u) }})
			}
			if s.stats.doubted < s.p.doubts && u.Doubtful() {
				out = append(out, move{fmt.Sprintf("run %d doubts call %d", r.run.ID, u.Call.ID), func() {
					s.stats.doubted++
					s.t.Doubt([]*Use{u})
				}})
			}
		}
	}
	for _, l := range s.heldUp() {
		out = append(out, move{fmt.Sprintf("run %d hurries lane %q", l.run.ID, l.id), func() { s.t.HurryLane(l) }})
	}
	return out
}

// proceed lets a call go on until somebody learns of it.
func (s *shell) proceed(c *shellCall) {
	if s.stepCall(c); c.state == executed && !c.staged() {
		s.stepCall(c)
	}
}

// predictNext has the next of a call's predictions come.
func (s *shell) predictNext(c *shellCall) {
	off := c.coming[0]
	c.coming = c.coming[1:]
	s.predict(c, s.world.peek(s.p, c.q).answer+off)
}

// stepExplored makes the move that the way has next, or the first one if it
// ends here, and notes the others.
func (s *shell) stepExplored() bool {
	e := s.explorer
	moves := s.moves()
	if len(moves) == 0 {
		return false
	}
	n := 0
	switch {
	case e.taken < len(e.way):
		n = e.way[e.taken]
		s.check = e.taken == len(e.way)-1 // what came before was looked at
	default:
		s.check = true
		at := e.prints.of(s)
		if _, ok := e.met[at]; ok {
			e.again = true
			return false
		}
		e.met[at] = struct{}{}
		for i := 1; i < len(moves); i++ {
			e.pending = append(e.pending, append(e.way[:len(e.way):len(e.way)], i))
		}
		e.way = append(e.way, 0)
	}
	e.taken++
	s.log("%s", moves[n].name)
	moves[n].make()
	return true
}

// explore takes all ways of a program, but meets no more states than so many. It
// returns how many it met, and what is wrong with the way that it took last.
func explore(p *program, cfg Config, states int, trace *strings.Builder) (met int, problem string) {
	e := &explorer{prints: newFingerprints(), met: make(map[uint64]struct{}), pending: [][]int{nil}}
	rng := rand.New(rand.NewPCG(1, 1)) // so that a bound does not leave out all ways that begin otherwise
	for len(e.pending) > 0 && len(e.met) < states {
		i, last := rng.IntN(len(e.pending)), len(e.pending)-1
		e.way, e.pending[i] = e.pending[i], e.pending[last]
		e.pending = e.pending[:last]
		e.taken, e.again = 0, false
		s := newExplored(p, cfg, e)
		if s.run(); !e.again {
			s.judge()
		}
		if s.problem == "" {
			continue
		}
		if trace != nil {
			way := e.way
			e.taken, e.pending = 0, nil
			again := newExplored(p, cfg, e)
			e.way, again.trace = way, trace
			p.print(trace)
			again.run()
		}
		return len(e.met), s.problem
	}
	return len(e.met), ""
}

func newExplored(p *program, cfg Config, e *explorer) *shell {
	cfg.Replayable = true
	return &shell{p: p, world: newWorld(), t: New(cfg), caller: cfg.CallerOpen, explorer: e, check: true, thorough: true,
		patient: p.patient, busy: p.patient, stats: new(stats)}
}

// small are programs of few calls around what runs wait for.
func small() []struct {
	name string
	p    *program
	cfg  Config
} {
	sites := []site{
		{kind: readKey}, {kind: addKey, effect: Immediate}, {kind: addKey, effect: Staged}, {kind: readKey, ordered: true},
		{kind: readKey, ordered: true, nospec: true}, {kind: actOnce, effect: Immediate, observed: true, nospec: true},
	}
	prog := func(main *block, set ...func(*program)) *program {
		p := &program{sites: sites, main: main}
		for _, f := range set {
			f(p)
		}
		return p
	}
	const read, write, stage, ordered, plain, once = 0, 1, 2, 3, 4, 5
	in := func(code ...instr) *block { return &block{append(code, instr{op: opEnd})} }
	do := func(site, key uint8, offers ...int) instr {
		return instr{op: opCall, site: site, keys: []uint8{key}, offers: offers, arg: 1}
	}
	fork := func(op opcode, child uint8, b *block, guesses ...int) instr {
		return instr{op: op, child: child, block: b, n: uint8(len(guesses))}
	}
	wait := func(op opcode, child uint8) instr { return instr{op: op, child: child} }
	barrier := instr{op: opBarrier}
	patient := func(p *program) { p.patient = true }
	shares := func(p *program) { p.shares = true }
	refusals := func(p *program) { p.refusals = 1 }
	late := func(p *program) { p.late = true }
	doubts := func(p *program) { p.doubts = 2 }
	blind := func(p *program) { p.blind = true }
	open := Config{Limits: ample, CallerOpen: true}
	closed := Config{Limits: ample}
	narrow := Config{Limits: Limits{Depth: 4, Width: 2, Replays: 3, Runs: 4}}
	return []struct {
		name string
		p    *program
		cfg  Config
	}{
		{"an early write, and equal reads behind a wrong guess", prog(in(
			do(write, 2), fork(opFork, 0, in(do(read, 3, 0), do(stage, 4))), do(read, 5, 1), do(read, 0, 0), do(read, 0, 0),
			wait(opJoin, 0))), closed},
		{"a held call that a replay has chosen", prog(in(
			do(write, 2), do(read, 3, 1), do(read, 4, 1, 0), do(read, 5, 0), do(read, 3, 1), do(read, 0, 0), do(read, 0, 0)),
			patient), narrow},
		{"a barrier behind guesses in two lanes", prog(in(
			fork(opFork, 0, in(do(read, 3, 0), do(stage, 4, 0), barrier)), do(read, 5, 1), do(stage, 2, 0), barrier,
			wait(opJoin, 0))), closed},
		{"a guess at what another lane computes", prog(in(
			fork(opFork, 0, in(do(read, 3, 0), barrier), 0, 1, 2, 3), wait(opAwait, 0), do(stage, 2, 0)), refusals), closed},
		{"a guess at what another lane writes", prog(in(
			fork(opFork, 0, in(do(read, 3, 0), do(write, 4)), 0, 1, 2, 3), wait(opAwait, 0), do(stage, 2, 0)), refusals),
			closed},
		{"a guess at what a lane writes that is not known", prog(in(
			do(read, 5, 0), fork(opFork, 0, in(do(read, 3, 0), do(write, 4)), 0, 1, 2, 3), do(read, 0, 0), wait(opAwait, 0),
			do(read, 1, 0)), blind), closed},
		{"the caller's word", prog(in(do(read, 3, 0), do(stage, 4, 0), do(stage, 4, 1), barrier), refusals), open},
		{"ordered reads of goroutines that share a lane", prog(in(
			do(read, 5, 1, 0), fork(opSpawn, 0, in(do(plain, 3))), do(ordered, 2, 0), wait(opJoin, 0)), shares), closed},
		{"ordered reads in turn of goroutines that share a lane", prog(in(
			fork(opSpawn, 0, in(do(ordered, 2, 1, 0))), do(ordered, 3), do(ordered, 4), wait(opJoin, 0)), shares, late), closed},
		{"one act of two lanes", prog(in(
			fork(opFork, 0, in(do(read, 3, 1), do(once, 6))), do(read, 4, 0), do(once, 6), wait(opJoin, 0), do(stage, 2, 0))),
			closed},
		{"a guess that is doubted", prog(in(do(read, 3, 1, 0), do(read, 4, 0), do(stage, 5, 0), barrier), doubts), narrow},
		{"a guess that is doubted beside a write", prog(in(
			fork(opFork, 0, in(do(read, 3, 0), do(stage, 4))), do(write, 5, 0), wait(opJoin, 0), do(write, 2)), doubts), closed},
		{"a guess that is doubted behind another one", prog(in(
			do(read, 3, 1, 0), fork(opFork, 0, in(do(read, 4, 0), barrier)), do(read, 5, 0), wait(opJoin, 0), do(write, 2)),
			doubts), open},
		{"writes behind siblings", prog(in(do(read, 3, 1, 0), do(stage, 4, 0), do(write, 5)), refusals), narrow},
	}
}

// TestAllWaysOfSmallPrograms follows all interleavings of small programs: in each
// state that can be reached each wait leads to something that is under way, and
// each way comes to the end that a sequential execution would. FORESAY_STATES
// bounds how many states of each are met.
func TestAllWaysOfSmallPrograms(t *testing.T) {
	states := int(setting(t, "FORESAY_STATES", 4000))
	if race.Enabled {
		states /= 10
	}
	for _, tt := range small() {
		t.Run(tt.name, func(t *testing.T) {
			var trace strings.Builder
			met, problem := explore(tt.p, tt.cfg, states, &trace)
			if problem != "" {
				t.Errorf("%s\n%s", problem, trace.String())
			}
			t.Logf("%d states", met)
		})
	}
}

// TestAllWaysOfRandomPrograms is the same for programs made up at random, of a
// few calls each.
func TestAllWaysOfRandomPrograms(t *testing.T) {
	states, programs := int(setting(t, "FORESAY_STATES", 300)), 60
	if race.Enabled {
		programs /= 10
	}
	first := seed.First(t, 1)
	sum, whole := 0, 0
	for i := range programs {
		p := generateSmall(rand.New(rand.NewPCG(first, uint64(i))))
		var trace strings.Builder
		met, problem := explore(p, Config{Limits: Limits{Depth: 4, Width: 3, Replays: 4, Runs: 6}, CallerOpen: i%4 == 0},
			states, &trace)
		if problem != "" {
			t.Fatalf("program %d: %s\n%s", i, problem, trace.String())
		}
		sum += met
		if met < states {
			whole++
		}
	}
	t.Logf("%d programs, %d of them whole, %d states", programs, whole, sum)
}

// generateSmall makes a program of few calls, of which it says what is guessed.
func generateSmall(r *rand.Rand) *program {
	g := &generator{Rand: r, p: &program{}, left: 3 + r.IntN(3)}
	for range 3 {
		s := g.site(false)
		s.tolerance = 0
		g.p.sites = append(g.p.sites, s)
	}
	g.p.tolerant, g.p.patient, g.p.refusals = false, r.IntN(3) == 0, r.IntN(2)
	g.p.late, g.p.drops = r.IntN(2) == 0, r.IntN(4) == 0
	if g.p.shares = r.IntN(3) == 0; g.p.shares {
		for i := range g.p.sites {
			g.p.sites[i].ordered = g.p.sites[i].ordered || g.p.sites[i].kind == readKey
		}
	}
	g.p.main = &block{}
	g.block(g.p.main, []uint8{0, 1, 2, 3, 4, 5})
	g.offer(g.p.main)
	return g.p
}

// offer says what is guessed about each call of the block.
func (g *generator) offer(b *block) {
	for i := range b.code {
		in := &b.code[i]
		for range g.IntN(3) {
			in.offers = append(in.offers, []int{0, 0, 1, 2}[g.IntN(4)])
		}
		if in.block != nil {
			g.offer(in.block)
		}
	}
}

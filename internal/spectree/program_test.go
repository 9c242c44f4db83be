package spectree

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A program is what a user's function is to the engine: deterministic given the
// results of its calls, the requests of which depend on earlier results. Its
// goroutines touch disjoint keys while they run at the same time, so that all
// its sequential executions have one result.
type program struct {
	sites []site
	main  *block
	// What it contains, and what may therefore happen.
	shares    bool // goroutines that share a lane make calls with side effects
	tolerant  bool // some site takes values for equal that differ
	lends     bool // goroutines make calls in the lane of the one that started them
	blind     bool // the tree is not told which lanes compute what is waited for
	acts      bool // some site has Once
	clocks    bool // some site's answers depend on when it runs
	nondet    bool // its path depends on which run it is
	drops     bool // it may give up waiting
	doubts    int  // so often somebody doubts a guess of a small program
	barriers  bool
	callWidth int // predictions offered with a call, at most
	// Of programs of which all ways are followed: what is sent for a speculative
	// caller waits, predictions come after their calls, and how often a call is refused.
	patient  bool
	late     bool
	refusals int
}

type callSiteKind uint8

const (
	readKey  callSiteKind = iota // answers the key's value
	addKey                       // changes the value, answers the new one
	putKey                       // sets the value, answers the old one, or refuses and changes nothing
	readTime                     // answers how many calls were executed before
	actOnce                      // like putKey, once per task
)

// site is how the calls of one place in a program behave.
type site struct {
	kind      callSiteKind
	effect    Effect
	ordered   bool
	conflict  bool // its conflict key is the key that it touches
	tolerance int  // how far an answer may be from the prediction that it matches
	observed  bool
	nospec    bool
	wrong     int // of 8 predictions
	quick     bool
	session   uint8 // whose servers check what predicated calls stand on
	hidden    bool  // the argument is no part of what identifies the call: see hide
	opaque    bool  // and cannot be compared either
}

func (s *site) equal(prediction, actual int) bool {
	d := prediction - actual
	return -s.tolerance <= d && d <= s.tolerance
}

type opcode uint8

const (
	opCall    opcode = iota
	opSkip           // n instructions if bit 0 of the accumulator shifted by arg is 0
	opFork           // block runs in a lane of its own
	opSpawn          // block runs in a goroutine that shares the lane
	opJoin           // waits for a child
	opAwait          // waits for a child in a lane of its own, takes predictions
	opSibling        // waits like opAwait for a child that the parent forked before
	opBarrier
	opNondet // adds the run's number to the accumulator
	opEnd
)

type instr struct {
	op      opcode
	site    uint8
	dynamic bool // key and argument depend on the accumulator
	outer   bool // made in the lane of the thread that forked this one's
	dead    bool // made with a context that has ended: see end
	arg     uint8
	n       uint8
	child   uint8
	guess   bool // the child's result is guessed right if the guesser can
	keys    []uint8
	offers  []int // predictions, by how far they are off, if all ways are followed
	block   *block
}

type block struct{ code []instr }

const (
	maxKeys      = 10
	maxArgs      = 4
	maxCallSites = 6
	maxChildren  = 5
	sharedKeys   = 2 // keys that nobody writes
	onceKeys     = 2 // keys that only actOnce writes, the last ones
	lentKeys     = 2 // those before, which only calls in another's lane write, one each
)

// opNames are the identities of operations.
var opNames = func() (names [maxCallSites][maxKeys][maxArgs]string) {
	for s := range maxCallSites {
		for k := range maxKeys {
			for a := range maxArgs {
				names[s][k][a] = fmt.Sprintf("s%d k%d a%d", s, k, a)
			}
		}
	}
	return
}()

var keyNames = [maxKeys]string{"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9"}

// generator makes programs.
type generator struct {
	*rand.Rand
	p     *program
	left  int // calls yet to be made up
	depth int
	lent  int // calls that may yet be made in another's lane
	// sharing is how many goroutines are above that share the lane.
	sharing int
}

func generate(r *rand.Rand, nondet, shares bool) *program {
	g := &generator{Rand: r, p: &program{nondet: nondet}, left: 3 + r.IntN(8) + r.IntN(2)*r.IntN(24)}
	p := g.p
	p.callWidth = r.IntN(4)
	p.drops = r.IntN(8) == 0
	tolerant, shares := r.IntN(3) == 0, r.IntN(8) == 0 || shares
	for range 2 + r.IntN(maxCallSites-1) {
		p.sites = append(p.sites, g.site(tolerant))
	}
	p.shares = shares
	var keys []uint8
	for k := range uint8(maxKeys - onceKeys - lentKeys) {
		keys = append(keys, k)
	}
	p.main = &block{}
	g.block(p.main, keys)
	if g.chance(1, 8) {
		g.lent = lentKeys
		g.lend(p.main, false)
	}
	p.blind = g.chance(1, 4)
	return p
}

// lend has threads that have a lane of their own make some calls with side effects in
// the lane of the one that forked it.
func (g *generator) lend(b *block, forked bool) {
	for i := range b.code {
		in := &b.code[i]
		if s := &g.p.sites[in.site]; in.op == opCall && forked && g.lent > 0 && s.effect != None && s.kind != actOnce &&
			g.chance(2, 3) {
			g.lent--
			in.outer, in.keys, g.p.lends = true, []uint8{uint8(maxKeys - onceKeys - lentKeys + g.lent)}, true
		}
		if in.block != nil && in.n == 0 { // what is guessed about a result is right or wrong by what its lane stands on
			g.lend(in.block, in.op == opFork)
		}
	}
}

// hide has some sites' calls come in variants, as those with a token that an interceptor takes from
// a context. Goroutines that share a lane may swap such calls: engines that compare find out, or
// pin, which is more than a shell does.
func (p *program) hide(r *rand.Rand) {
	if p.shares || p.lends {
		return
	}
	for i := range p.sites {
		s := &p.sites[i]
		s.hidden = s.kind != actOnce && r.IntN(2) == 0
		s.opaque = s.hidden && r.IntN(2) == 0
	}
}

// predicate has many sites be of sessions whose servers check what their calls stand on: exactly,
// so that what counts as equal is equal.
func (p *program) predicate(r *rand.Rand) {
	sessions := 1 + r.IntN(2)
	for i := range p.sites {
		if s := &p.sites[i]; s.kind != actOnce && s.kind != readTime && r.IntN(4) != 0 {
			s.effect, s.session = Predicated, uint8(r.IntN(sessions))
			s.tolerance, s.conflict, s.ordered = 0, false, false
		}
	}
}

// strict has a program whose goroutines share lanes be one that must not diverge: equal answers are
// the same, and do not depend on when they come. In half of the programs reads are ordered, and
// calls are left out whose contexts have ended.
func (p *program) strict(r *rand.Rand) {
	p.tolerant, p.clocks, p.drops = false, false, false
	ordered := r.IntN(2) == 0
	for i := range p.sites {
		s := &p.sites[i]
		if s.tolerance = 0; s.kind == readTime {
			s.kind = readKey
		}
		s.ordered = s.ordered || ordered && s.kind == readKey
	}
	if r.IntN(2) == 0 {
		p.end(r, p.main)
	}
}

// end has calls be made with contexts that have ended, in each run: they are left out. Those of
// which goroutines that share a lane may make an equal one are not.
func (p *program) end(r *rand.Rand, b *block) {
	for i := range b.code {
		in := &b.code[i]
		own := in.op == opCall && p.sites[in.site].kind != actOnce && !in.outer && in.keys[0] >= sharedKeys
		in.dead = own && r.IntN(8) == 0
		if in.block != nil {
			p.end(r, in.block)
		}
	}
}

func (g *generator) chance(n, of int) bool { return g.IntN(of) < n }

func (g *generator) site(tolerant bool) site {
	s := site{wrong: []int{0, 2, 5, 8}[g.IntN(4)], conflict: g.chance(1, 3), quick: g.chance(1, 3)}
	switch n := g.IntN(16); {
	case n < 6:
		s.kind = readKey
	case n < 10:
		s.kind = addKey
	case n < 13:
		s.kind = putKey
	case n < 15:
		s.kind, s.conflict = readTime, false
	default:
		s.kind, s.conflict = actOnce, false
	}
	switch s.kind {
	case readKey, readTime:
		s.ordered = g.chance(1, 4)
	case addKey, putKey:
		s.effect = []Effect{Staged, Immediate}[g.IntN(2)]
		s.ordered = g.chance(1, 8)
	case actOnce:
		s.effect, s.observed, s.nospec = Immediate, true, true
	}
	if tolerant && s.kind != readTime && s.kind != actOnce {
		s.tolerance = g.IntN(3)
	}
	s.observed = s.observed || g.chance(1, 10)
	s.nospec = s.nospec || g.chance(1, 10)
	g.p.tolerant = g.p.tolerant || s.tolerance > 0
	g.p.clocks = g.p.clocks || s.kind == readTime
	g.p.acts = g.p.acts || s.kind == actOnce
	return s
}

// block fills b with code that touches the given keys and returns those that
// nobody touches any more when the code has ended.
func (g *generator) block(b *block, keys []uint8) []uint8 {
	n := 1 + g.IntN(6)
	if g.depth == 0 {
		n += 3
	}
	var open []opened // children not waited for
	children := 0
	for range n {
		if g.left <= 0 {
			break
		}
		switch k := g.IntN(24); {
		case k < 14:
			g.call(b, keys)
		case k < 17:
			at := len(b.code)
			b.code = append(b.code, instr{op: opSkip, arg: uint8(g.IntN(4))})
			for range 1 + g.IntN(2) {
				g.call(b, keys)
			}
			b.code[at].n = uint8(len(b.code) - at - 1)
		case k < 21 && g.depth < 3 && children < maxChildren:
			var mine []uint8
			mine, keys = g.split(keys)
			o := g.start(b, mine, children, open)
			children++
			open = append(open, o)
			if g.chance(1, 2) {
				open, keys = g.wait(b, open, keys)
			}
		case k < 22 && g.chance(1, 2):
			b.code = append(b.code, instr{op: opBarrier})
			g.p.barriers = true
		case k < 23 && g.p.nondet:
			b.code = append(b.code, instr{op: opNondet})
		case len(open) > 0:
			open, keys = g.wait(b, open, keys)
		}
	}
	for len(open) > 0 && g.chance(4, 5) {
		open, keys = g.wait(b, open, keys)
	}
	b.code = append(b.code, instr{op: opEnd})
	return keys
}

type opened struct {
	child int
	spawn bool
	keys  []uint8 // free again once it is waited for
}

func (g *generator) split(keys []uint8) (mine, rest []uint8) {
	for _, k := range keys {
		switch {
		case k < sharedKeys:
			mine, rest = append(mine, k), append(rest, k)
		case g.chance(1, 2):
			mine = append(mine, k)
		default:
			rest = append(rest, k)
		}
	}
	return mine, rest
}

func (g *generator) start(b *block, keys []uint8, child int, open []opened) opened {
	o := opened{child: child, spawn: g.p.shares && g.chance(2, 3)}
	for _, e := range open { // who shares a lane must not number its lanes
		o.spawn = o.spawn || e.spawn
	}
	o.spawn = o.spawn || g.sharing > 0
	in := instr{op: opFork, child: uint8(child), block: &block{}, guess: g.chance(1, 2), arg: uint8(g.IntN(4)),
		n: uint8(g.IntN(3))}
	if o.spawn {
		in.op = opSpawn
	}
	at := len(b.code)
	b.code = append(b.code, in)
	g.depth++
	sharing := g.sharing
	if g.sharing++; !o.spawn {
		g.sharing = 0
	}
	if len(open) > 0 && !o.spawn && g.chance(1, 3) {
		if e := open[g.IntN(len(open))]; !e.spawn {
			in.block.code = append(in.block.code, instr{op: opSibling, child: uint8(e.child)})
		}
	}
	o.keys = g.block(in.block, keys)
	g.depth--
	g.sharing = sharing
	b.code[at] = in
	return o
}

// wait has b wait for one of its children.
func (g *generator) wait(b *block, open []opened, keys []uint8) ([]opened, []uint8) {
	i := g.IntN(len(open))
	o := open[i]
	in := instr{op: opJoin, child: uint8(o.child)}
	if !o.spawn && g.chance(1, 2) {
		in.op = opAwait
	}
	b.code = append(b.code, in)
	for _, k := range o.keys {
		if k >= sharedKeys {
			keys = append(keys, k)
		}
	}
	return append(open[:i:i], open[i+1:]...), keys
}

func (g *generator) call(b *block, keys []uint8) {
	g.left--
	in := instr{op: opCall, site: uint8(g.IntN(len(g.p.sites))), dynamic: g.chance(1, 2), arg: uint8(g.IntN(maxArgs))}
	s := &g.p.sites[in.site]
	for _, k := range keys {
		if s.effect == None || k >= sharedKeys {
			in.keys = append(in.keys, k)
		}
	}
	if s.kind == actOnce {
		in.keys = []uint8{uint8(maxKeys - onceKeys + g.IntN(onceKeys))}
		in.dynamic = false
		in.arg = 1
	}
	if len(in.keys) == 0 {
		return
	}
	if !in.dynamic {
		in.keys = in.keys[g.IntN(len(in.keys)):][:1]
	}
	b.code = append(b.code, in)
	if g.chance(1, 6) { // the same once more
		b.code = append(b.code, in)
	}
}

// request is a call's identity: a program's own way to say what it wants.
type request struct{ site, key, arg uint8 }

func (p *program) opOf(q request) string {
	if p.sites[q.site].kind == actOnce {
		return keyNames[q.key]
	}
	if p.sites[q.site].hidden {
		return opNames[q.site][q.key][0]
	}
	return opNames[q.site][q.key][q.arg]
}

// thread is one goroutine of a program that is executed: by a run, or by the
// naive model.
type thread struct {
	block *block
	pc    int
	acc   uint32
	path  uint64 // which of the program's threads it is, in every execution the same
}

func (t *thread) mix(v int) { t.acc = (t.acc^uint32(v+77))*2654435761 + 12345; t.acc ^= t.acc >> 15 }

// result is what somebody who waits for the thread learns.
func (t *thread) result() int { return int(t.acc>>7) & 3 }

// next returns the instruction that needs the executor.
func (t *thread) next() *instr {
	for {
		in := &t.block.code[t.pc]
		if in.op != opSkip {
			return in
		}
		t.pc++
		if t.acc>>in.arg&1 == 0 {
			t.pc += int(in.n)
		}
	}
}

func (t *thread) request(in *instr) request {
	q := request{site: in.site, arg: in.arg, key: in.keys[0]}
	if in.dynamic {
		q.key = in.keys[int(t.acc>>3)%len(in.keys)]
		q.arg = uint8(t.acc>>9) % maxArgs
	}
	return q
}

func (t *thread) start(in *instr) thread {
	return thread{block: in.block, acc: t.acc + uint32(in.child)*101 + 1, path: t.path<<3 | uint64(in.child) + 1}
}

// print writes the program down for a failure's trace.
func (p *program) print(w *strings.Builder) {
	for i, s := range p.sites {
		fmt.Fprintf(w, "site %d: %+v\n", i, s)
	}
	p.main.print(w, "")
}

func (b *block) print(w *strings.Builder, indent string) {
	names := [...]string{"call", "skip", "fork", "spawn", "join", "await", "sibling", "barrier", "nondet", "end"}
	for _, in := range b.code {
		fmt.Fprintf(w, "%s%s site=%d dynamic=%v outer=%v dead=%v arg=%d n=%d child=%d keys=%v\n", indent, names[in.op],
			in.site, in.dynamic, in.outer, in.dead, in.arg, in.n, in.child, in.keys)
		if in.block != nil {
			in.block.print(w, indent+"\t")
		}
	}
}

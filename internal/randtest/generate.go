package randtest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// generator makes programs.
type generator struct {
	*rand.Rand
	servers int
	faults  bool // leave out what has more than one right outcome when something fails
	hedges  bool // endings are hedges
	timed   bool // leave out what waits for its turn in a task, and not without: calls of goroutines that share a lane
	id      int
	budget  int // steps that may still be made
	repeats int // around the steps that are made
}

// own returns the keys that programs write, of task n.
func ownKeys(servers, task int) []string {
	var keys []string
	for s := range servers {
		for i := range 3 {
			keys = append(keys, keyOf(s, classOwn, 10*task+i))
		}
	}
	return keys
}

// tasks makes a program: one task mostly, or two that use different keys.
func (g *generator) tasks() []*task {
	n := 1
	if g.IntN(6) == 0 {
		n = 2
	}
	var out []*task
	for i := range n {
		g.budget = 4 + g.IntN(18)
		t := &task{name: fmt.Sprintf("t%d", i)}
		links := 1
		if g.IntN(4) == 0 {
			links = 2 + g.IntN(2)
		}
		keys := ownKeys(g.servers, i)
		for l := range links {
			t.links = append(t.links, g.body(keys, 0, max(2, g.budget/(links-l))))
		}
		out = append(out, t)
	}
	return out
}

// body makes up to n steps, which may write the given keys.
func (g *generator) body(keys []string, depth, n int) []*step {
	var steps []*step
	for range n {
		if g.budget <= 0 && len(steps) > 0 {
			break
		}
		g.budget--
		steps = g.again(append(steps, g.step(keys, depth)))
	}
	return steps
}

type weight struct {
	kind kind
	n    int
}

// weights says how often each kind occurs.
func (g *generator) weights(depth int) []weight {
	w := []weight{
		{kindGet, 12}, {kindPut, 7}, {kindAppend, 7}, {kindObserved, 1}, {kindRelay, 9},
		{kindAct, 2}, {kindOnce, 1}, {kindMemo, 2}, {kindHook, 5}, {kindBarrier, 1}, {kindSleep, 2}, {kindTrap, 2},
	}
	if depth < 3 {
		w = append(w, weight{kindBranch, 4}, weight{kindRepeat, 2}, weight{kindDo, 1}, weight{kindGroup, 2},
			weight{kindFutures, 2}, weight{kindQuorum, 1}, weight{kindAny, 1})
		if !g.timed {
			w = append(w, weight{kindShared, 2})
		}
		if !g.faults && !g.timed {
			w = append(w, weight{kindContend, 1})
			if g.repeats == 0 { // their keys are theirs alone
				w = append(w, weight{kindLoose, 2})
			}
		}
	}
	return w
}

func (g *generator) kind(depth int) kind {
	w := g.weights(depth)
	sum := 0
	for _, x := range w {
		sum += x.n
	}
	n := g.IntN(sum)
	for _, x := range w {
		if n -= x.n; n < 0 {
			return x.kind
		}
	}
	panic("randtest: no kind")
}

func (g *generator) step(keys []string, depth int) *step {
	g.id++
	s := &step{id: g.id, kind: g.kind(depth)}
	switch s.kind {
	case kindGet, kindObserved:
		s.keys = g.readable(keys)
		s.tenant = g.IntN(4) == 0
		s.limit = g.IntN(4) == 0
		s.dead = !g.faults && g.IntN(20) == 0
	case kindPut, kindAppend:
		s.keys = g.pick(keys)
		s.value = g.value()
		s.limit = g.IntN(4) == 0
		s.dead = !g.faults && g.IntN(20) == 0
	case kindRelay:
		s.relay = g.relay(keys, g.IntN(2) == 0, 0)
		s.limit = g.IntN(4) == 0
	case kindSleep:
		s.pause = time.Duration(1+g.IntN(15)) * 731 * time.Microsecond
	default:
		g.compound(s, keys, depth)
	}
	return s
}

// compound fills in the steps that have bodies.
func (g *generator) compound(s *step, keys []string, depth int) {
	switch s.kind {
	case kindBranch:
		s.bodies = [][]*step{g.body(keys, depth+1, g.IntN(4)), g.body(keys, depth+1, 1+g.IntN(3))}
	case kindRepeat:
		s.count = 2 + g.IntN(2)
		g.repeats++
		s.bodies = [][]*step{g.body(keys, depth+1, 1+g.IntN(2))}
		g.repeats--
	case kindLoose:
		g.loose(s, depth)
	case kindDo:
		s.bodies = [][]*step{g.body(keys, depth+1, 1+g.IntN(3))}
	case kindGroup, kindFutures:
		for _, part := range g.deal(keys, 2+g.IntN(2)) {
			s.bodies = append(s.bodies, g.body(part, depth+1, 1+g.IntN(3)))
			var then []*step
			if s.kind == kindFutures && g.IntN(2) == 0 {
				then = g.body(part, depth+1, 1+g.IntN(2))
			}
			s.then, s.parts = append(s.then, then), append(s.parts, part)
		}
		if s.kind == kindGroup {
			g.astray(s)
		}
		s.cancels = s.kind == kindFutures && s.id%2 == 0
	case kindShared:
		same := g.IntN(2) == 0
		for i := range 2 + g.IntN(3) {
			if same && i > 0 {
				s.bodies = append(s.bodies, s.bodies[0])
				continue
			}
			s.bodies = append(s.bodies, g.reads(keys))
		}
	case kindContend:
		s.count = 2 + g.IntN(2)
		s.lanes = g.IntN(2) == 0
		s.keys = []string{keyOf(g.IntN(g.servers), classContended, s.id)}
	case kindQuorum, kindAny:
		s.keys = []string{keyOf(0, classReplica, g.IntN(2))}
		s.cancels = s.id%2 == 0
		s.bodies = [][]*step{g.body(keys, depth+1, 1+g.IntN(2))}
	}
}

// reads makes steps that are calls without effects.
func (g *generator) reads(keys []string) []*step {
	var steps []*step
	for range 1 + g.IntN(2) {
		g.id++
		s := &step{id: g.id, kind: kindGet, keys: g.readable(keys)}
		if g.IntN(4) == 0 {
			s.kind, s.keys, s.relay = kindRelay, nil, g.relay(keys, false, 0)
		}
		steps = append(steps, s)
	}
	return steps
}

// relay makes a relay. Its calls go to servers further on in the alphabet only,
// so that servers never wait for each other in a circle.
func (g *generator) relay(keys []string, write bool, depth int) *relay {
	r := &relay{server: min(g.IntN(g.servers), g.IntN(g.servers)), write: write}
	if depth > 0 {
		r.server = g.servers - 1
	}
	var reachable []string
	for _, k := range keys {
		if serverOf(k) >= r.server {
			reachable = append(reachable, k)
		}
	}
	for range 1 + g.IntN(3) {
		if depth == 0 && r.server < g.servers-1 && g.IntN(5) == 0 {
			r.ops = append(r.ops, op{kind: kindRelay, relay: g.relay(keys, write && g.IntN(2) == 0, depth+1)})
			continue
		}
		o := op{kind: kindGet, key: keyOf(r.server+g.IntN(g.servers-r.server), classConstant, g.IntN(2))}
		if len(reachable) > 0 {
			o.key = reachable[g.IntN(len(reachable))]
			if write && g.IntN(3) > 0 {
				o.kind = kindPut + kind(g.IntN(2))
				o.value = g.value()
			}
		}
		r.ops = append(r.ops, o)
	}
	return r
}

// readable picks what a read reads.
func (g *generator) readable(keys []string) []string {
	server := g.IntN(g.servers)
	switch n := g.IntN(12); {
	case n == 0 && !g.faults:
		return []string{keyOf(server, classSecret, 0)}
	case n < 4:
		return []string{keyOf(server, classConstant, g.IntN(2))}
	}
	return g.pick(keys)
}

// pick picks one key, or several of which the digest picks.
func (g *generator) pick(keys []string) []string {
	out := []string{keys[g.IntN(len(keys))]}
	if g.IntN(5) == 0 {
		out = append(out, keys[g.IntN(len(keys))])
	}
	return out
}

// value picks what is written: few different constants, so that equal calls
// occur, or what the program computed.
func (g *generator) value() string {
	if g.IntN(2) == 0 {
		return ""
	}
	return fmt.Sprintf("v%d", g.IntN(2))
}

// deal hands keys out to n lanes.
func (g *generator) deal(keys []string, n int) [][]string {
	n = min(n, len(keys))
	parts := make([][]string, n)
	for i, k := range g.Perm(len(keys)) {
		parts[i%n] = append(parts[i%n], keys[k])
	}
	return parts
}

// chance draws numbers that depend on a seed and on what they are for, and on
// nothing else: not on how often anything was drawn before.
type chance uint64

// draw returns 64 bits for a purpose.
func (c chance) draw(purpose ...string) uint64 {
	h := mix(uint64(c))
	for _, p := range purpose {
		for i := range len(p) {
			h = (h ^ uint64(p[i])) * 0x100000001b3
		}
		h = mix(h + uint64(len(p)))
	}
	return h
}

// below returns a number in [0, n).
func (c chance) below(n int, purpose ...string) int { return int(c.draw(purpose...) % uint64(n)) }

// percent reports true in p of 100 cases.
func (c chance) percent(p int, purpose ...string) bool { return c.below(100, purpose...) < p }

// mix is the finaliser of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// fold adds a result to the digest of all results so far.
func fold(digest, result string) string {
	h := chance(0x5eed).draw(digest, result)
	return strconv.FormatUint(h>>32, 36)
}

// choose picks one of n by a digest.
func choose(digest string, n int) int { return chance(0xc4005e).below(n, digest) }

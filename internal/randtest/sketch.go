package randtest

import (
	"testing"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/wan"
)

// sketch is a small program around one rule. Random programs meet such things
// now and then; here each meets many worlds.
type sketch struct {
	name  string
	steps []*step
	then  []*step // a further link, if any

	clock, drifts bool // see Scenario
	sure          bool // all is guessed, and rightly
	guessed       bool // all is guessed
	staged        bool // all is staged, calls on different keys commute, and a Confirm is lost
	silent        bool // the network fails for good once a call was made on a guess
	ordered       bool // all sites are ordered
	plain         bool // the servers know nothing of speculation and say so late, all is guessed
	paused        bool // all is staged and guessed rightly, and a process stands still after a call on a guess
	calm          bool // not for worlds with faults: it goes on after errors, or has no one right outcome
}

func call(k kind, key string) *step { return &step{kind: k, keys: []string{key}} }

func limited(s *step) *step { s.limit = true; return s }

func ended(s *step) *step { s.cancels = true; return s }

func asSomebody(s *step) *step { s.tenant = true; return s }

func branches(k kind, bodies ...[]*step) *step {
	return &step{kind: k, bodies: bodies, then: make([][]*step, len(bodies))}
}

func continued(s *step, then ...[]*step) *step { s.then = then; return s }

func body(steps ...*step) []*step { return steps }

func repeat(n int, steps ...*step) *step {
	return &step{kind: kindRepeat, count: n, bodies: [][]*step{steps}}
}

func replicated(k kind, steps ...*step) *step {
	return &step{kind: k, keys: []string{"aq0"}, bodies: [][]*step{steps}}
}

func contend(lanes bool) *step {
	return &step{kind: kindContend, keys: []string{"bc0"}, count: 2, lanes: lanes}
}

func loose(how loosely, bodies ...[]*step) *step {
	return &step{kind: kindLoose, how: how, bodies: bodies}
}

func relayed(write bool, ops ...op) *step {
	return &step{kind: kindRelay, relay: &relay{server: 0, write: write, ops: ops}}
}

func special(k kind) *step { return &step{kind: k} }

// sketches returns the programs. Most of them were found by random programs to
// break an engine that was not finished.
func sketches() []sketch {
	get := func(key string) *step { return call(kindGet, key) }
	put := func(key string) *step { return call(kindPut, key) }
	add := func(key string) *step { return call(kindAppend, key) }
	once := special(kindOnce)
	once.id = -1 // the same in all lanes
	act, hook, barrier, trap := special(kindAct), special(kindHook), special(kindBarrier), special(kindTrap)
	hedged := endHedge.step()
	hedged.count = 1
	dead := func(s *step) *step { s.dead = true; return s }
	alike := func(key string) []*step { return body(get("br0"), get("br1"), add(key), add(key), get(key)) }
	return []sketch{
		{name: "an act behind a guess", steps: body(get("ak0"), act, get("bk0"), act)},
		{name: "an act in a handler behind a guess",
			steps: body(relayed(true, op{kind: kindGet, key: "bk0"}, op{kind: kindAppend, key: "ak0"}), get("ak0"))},
		{name: "a quorum and what follows", steps: body(replicated(kindQuorum, get("ak0")), put("ak0"), get("bk0"))},
		{name: "the first of several and what follows", steps: body(replicated(kindAny, add("bk0")), put("ak0"), get("br0"),
			put("ak0"))},
		{name: "a quorum in a context of its own",
			steps: body(get("br0"), ended(replicated(kindQuorum, get("ak0"), put("ak0"))),
				ended(replicated(kindAny, add("bk0"))), get("ak0"))},
		{name: "futures in a context of their own", steps: body(ended(branches(kindFutures,
			body(get("br0"), get("ak0"), add("ak0")), body(get("bk0"), relayed(true, op{kind: kindGet, key: "bk0"},
				op{kind: kindAppend, key: "bk1"})))), get("ak0"), put("bk0"))},
		{name: "a future with a guess and an effect",
			steps: body(branches(kindFutures, body(get("ak0"), get("ak0"), add("ak0"))))},
		{name: "a future with a guess and a barrier",
			steps: body(branches(kindGroup, body(branches(kindFutures, body(barrier)))))},
		{name: "futures that nobody waits for", calm: true,
			steps: body(loose(unwaited, body(get("ar0"), put("ak2")), body(put("bk2"))), get("br0"))},
		{name: "futures of which one fails", calm: true,
			steps: body(loose(allFails, body(get("ar0")), body(get("br1"), put("bk2"))), get("br0"), put("ak0"))},
		{name: "writes that Any does without", calm: true,
			steps: body(get("ar0"), loose(anyHasFirst, body(put("ak2"), put("ak2")), body(), body(put("bk2"))))},
		{name: "futures in futures", steps: body(
			branches(kindFutures, body(branches(kindFutures, body(get("ak0"), add("bk0")), body(get("br0")))),
				body(put("ak1"))))},
		{name: "a wrong future among right ones",
			steps: body(get("br0"), continued(branches(kindFutures, body(get("bk2")), body(put("bk1"))), body(trap), nil),
				put("ak0"))},
		{name: "hooks of a future and of what follows it",
			steps: body(continued(branches(kindFutures, body(hook, get("ak0"))), body(hook)), hook)},
		{name: "a time limit behind a guess", steps: body(get("ak0"), limited(add("bk0")), limited(get("bk0")))},
		{name: "a time limit behind a pin", steps: body(branches(kindShared, body(get("ak0")), body(get("bk0"))),
			relayed(false, op{kind: kindGet, key: "bk0"}), limited(add("ak0")))},
		{name: "equal reads behind a write", steps: body(get("bk2"), limited(put("bk0")), get("ak0"), get("ak0"))},
		{name: "equal writes one after the other", steps: body(repeat(3, limited(add("bk0")), get("br1")), get("bk0"))},
		{name: "equal writes at once on one context", calm: true, steps: body(contend(false), get("ak0"))},
		{name: "equal writes at once in lanes", calm: true, steps: body(get("br0"), contend(true), put("ak0"))},
		{name: "reads on one context and a write", calm: true,
			steps: body(branches(kindShared, body(get("br0"), get("bk0")), body(get("br0"))), put("bk0"), contend(true))},
		{name: "a context that has ended", calm: true, steps: body(get("ak0"), dead(put("ak0")), dead(get("br0")),
			put("bk0"))},
		{name: "a read that runs out of time", calm: true, steps: body(get("br0"), ending(endLimit).step(), put("ak0"))},
		{name: "a read that a timer cancels", calm: true, steps: body(get("br0"), ending(endTimer).step(), put("ak0"))},
		{name: "goroutines that write with the outer context",
			steps: body(branches(kindGroup, body(get("br0"), written(0, "ak1")), body(get("bk0"), written(0, "bk1"))))},
		{name: "writes everywhere", steps: body(get("br0"), put("ak0"), put("bk0"), add("ak1"), get("ar0"), add("bk1"),
			put("ak0"), add("bk0"))},
		{name: "staged writes of which one is lost", staged: true, steps: body(get("br0"), put("ak0"), put("bk0"), add("ak1"),
			add("bk1"))},
		{name: "staged writes, and a pause", paused: true, steps: body(get("br0"), put("ak0"), get("ar0"), put("bk0"),
			add("ak1"), add("bk1"))},
		{name: "a client that goes silent", silent: true, sure: true, steps: body(get("br0"), get("ak0"), get("bk0"),
			put("ak0"))},
		{name: "goroutines that share a context, in order", ordered: true, steps: body(branches(kindShared,
			body(relayed(false, op{kind: kindGet, key: "bk0"})), body(get("bk1"))), put("bk0"), get("ak0"), put("ak0"))},
		{name: "goroutines that share a context, then a tenant",
			steps: body(branches(kindShared, body(get("ar0")), body(get("ak0")), body(get("br0")), body(get("bk0"))),
				asSomebody(get("ak1")), asSomebody(get("bk1")))},
		{name: "goroutines of tenants that share a context", steps: body(get("br0"), branches(kindShared,
			body(get("ar0"), asSomebody(get("ak1"))), body(get("ak0"), asSomebody(get("ak1"))),
			body(get("bk0"), asSomebody(get("ak1")))), get("bk1"))},
		{name: "tenants that come to one place in turn", steps: body(branches(kindGroup,
			body(branches(kindShared, body(get("ar0"), asSomebody(get("ak1"))),
				body(relayed(false, op{kind: kindGet, key: "bk0"}), relayed(false, op{kind: kindGet, key: "bk0"}),
					asSomebody(get("ak1"))))),
			body(relayed(false, op{kind: kindGet, key: "bk0"}), relayed(false, op{kind: kindGet, key: "bk1"}),
				relayed(false, op{kind: kindGet, key: "bk1"}), get("ak2"))))},
		{name: "writes around a read that a timer ends, in order", ordered: true, calm: true,
			steps: body(add("ak2"), endTimer.step(), get("ar1"), put("ak2"), get("ar0"))},
		{name: "a hedge, in order", ordered: true, guessed: true, calm: true, steps: body(get("br0"), get("ak0"), continued(
			branches(kindFutures, body(get("ar0"), hedged)), body(get("bk0"))), get("bk0"))},
		{name: "lanes, then a tenant", steps: body(
			branches(kindGroup, body(get("ar0"), continued(branches(kindFutures, body(get("ak0"))),
				body(asSomebody(get("bk0"))))),
				body(get("ak0"))), asSomebody(get("ak1")))},
		{name: "answers that the code changes", steps: body(relayed(false, op{kind: kindGet, key: "bk0"}), get("br0"),
			put("bk1"),
			relayed(false, op{kind: kindGet, key: "bk1"}, op{kind: kindGet, key: "br0"}), get("ar0"), put("ak0"))},
		{name: "a write between reads", steps: body(get("ak0"), put("ak0"), get("ak0"), add("ak0"), get("ak0"))},
		{name: "a branch that writes or does not",
			steps: body(get("br0"), branches(kindBranch, body(put("ak0")), body(get("bk0"))), get("ak0"), add("ak0"))},
		{name: "a relay that reads what was written",
			steps: body(put("bk0"), relayed(false, op{kind: kindGet, key: "bk0"}, op{kind: kindGet, key: "ak0"}), add("ak0"))},
		{name: "relays that write", steps: body(relayed(true, op{kind: kindPut, key: "bk0"}, op{kind: kindAppend, key: "ak0"},
			op{kind: kindGet, key: "bk0"}),
			relayed(true, op{kind: kindAppend, key: "bk0"}), get("bk0"))},
		{name: "links of a chain", steps: body(put("ak0"), hook, get("bk0")), then: body(get("ak0"), add("ak0"), hook,
			barrier, get("br0"))},
		{name: "a chain over futures", steps: body(special(kindMemo), put("bk0")),
			then: body(continued(branches(kindFutures, body(get("bk2")), body(put("bk1"))), body(trap), nil))},
		{name: "what the interceptor denies", calm: true, steps: body(get("ar0"), get("bs0"), get("as0"), put("ak0"))},
		{name: "what the caller looks at", steps: body(put("ak0"), call(kindObserved, "ak0"), put("bk0"),
			call(kindObserved, "bk0"))},
		{name: "a future that writes and what follows it", sure: true,
			steps: body(continued(branches(kindFutures, body(get("br0"), put("ak0"))), body(get("ak0"))), get("ak0"))},
		{name: "one act in several lanes", steps: body(get("br0"), branches(kindGroup, body(once, get("ak0"), once),
			body(get("bk0"), once)), get("ar0"), put("ak0"))},
		{name: "readings of clocks", calm: true, clock: true, steps: body(get("ar0"), get("aw0"), get("br0"), get("aw0"),
			get("bw0"), branches(kindBranch, body(get("br1"), get("aw0")), body(get("ar1"))),
			get("bw0"), relayed(false, op{kind: kindGet, key: "bk0"}), branches(kindBranch, body(get("bw0")), nil), get("aw0"),
			get("aw0"))},
		{name: "writes that differ each time", calm: true, drifts: true, steps: body(get("ar0"), special(kindDrift),
			get("br0"), get("ar1"), add("bk0"), get("ar0"))},
		{name: "lanes that do the same beside plain servers", calm: true, plain: true, steps: body(get("br0"), get("ar0"),
			branches(kindGroup, alike("ak0"), alike("bk0"), alike("ak1"), alike("bk1")), get("ak0"), get("bk0"))},
		{name: "lanes that write and sleep", steps: body(
			branches(kindGroup, body(get("br0"), put("ak0"), &step{kind: kindSleep, pause: time.Millisecond}, get("ak0")),
				body(add("bk0"), get("ar0"), add("bk0"))), get("ak0"), get("bk0"))},
	}
}

// scenario returns the sketch in the world of a seed.
func (sk sketch) scenario(seed uint64, faults bool) *Scenario {
	sc := NewScenario(seed, faults)
	id := 0
	number := func(steps []*step) []*step {
		steps = cloneSteps(steps)
		var walk func(steps []*step)
		walk = func(steps []*step) {
			for _, s := range steps {
				if id++; s.id == 0 {
					s.id = id
				}
				if s.kind == kindDrift {
					s.keys = []string{"ak0"}
				}
				for _, b := range append(append([][]*step(nil), s.bodies...), s.then...) {
					walk(b)
				}
			}
		}
		walk(steps)
		return steps
	}
	sc.tasks = []*task{{name: "t0", links: [][]*step{number(sk.steps)}}}
	sc.clock, sc.drifts = sk.clock, sk.drifts
	if sk.clock {
		sc.knobs.Loose, sc.knobs.Ordered = false, true
	}
	if sk.sure {
		sc.knobs.Guessed, sc.knobs.Right = 200, 100
	}
	if sk.guessed {
		sc.knobs.Guessed = 200
	}
	if sk.ordered {
		sc.knobs.Ordered = true
	}
	if sk.plain {
		sc.knobs.Plain, sc.knobs.RefuseLate, sc.knobs.SendPlainly = [maxServers]bool{true, true, true}, true, false
		sc.knobs.Guessed, sc.knobs.Right, sc.knobs.Learnt, sc.knobs.Timing.Many = 200, 100, 0, true
		sc.knobs.Stubborn, sc.knobs.Uneven, sc.knobs.Tight, sc.knobs.Limits = seed%4 != 0, true, false, control.Limits{}
	}
	if sk.silent && faults {
		sc.faults = sc.faults[:1]
		f := sc.faults[0]
		f.server = int(seed % 2)
		f.kind, f.event, f.nth, f.at, f.lasts, f.oneWay = faultBlackhole, eventRequested, 1, 0, 0, false
		f.link = wan.Path{From: clientSite, To: siteOf(f.server)}
	}
	if sk.staged {
		sc.knobs.stage()
		if faults {
			sc.faults = sc.faults[:1]
			f := sc.faults[0]
			f.kind, f.event, f.nth, f.at, f.server = faultReset, eventConfirmLost, 1, 0, int(seed%2)
			f.link = wan.Path{From: clientSite, To: siteOf(f.server)}
		}
	}
	if sk.paused {
		sc.knobs.stage()
		sc.knobs.Guessed, sc.knobs.Right = 200, 100
		if faults {
			f := sc.standStill(int(seed % 2))
			f.event, f.nth, f.at = eventRequested, 1, 0
			sc.knobs.Lease = time.Minute
		}
	}
	if sk.then != nil {
		sc.tasks[0].links = append(sc.tasks[0].links, number(sk.then))
	}
	return sc
}

// RunSketches checks each sketch in so many worlds, in half of which something
// fails.
func RunSketches(t *testing.T, worlds int) {
	for _, sk := range sketches() {
		t.Run(sk.name, func(t *testing.T) {
			n := 0
			for s := range Seeds(t, worlds) {
				sc := sk.scenario(s, n%2 == 1 && !sk.calm)
				if res := sc.Check(t, Mutation{}, false); len(res.Wrong) > 0 {
					t.Errorf("replay with\n\n  %s=%d go test -count=1 -run '%s' ./specgrpc\n\n%s", seed.Variable, s, t.Name(), res)
					return
				}
				n++
			}
		})
	}
}

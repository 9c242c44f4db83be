package randtest

import (
	"slices"
	"testing"
)

// Shrink returns a smaller scenario that fails as well: fewer steps, fewer
// settings that differ from the default. It tries each candidate a few times,
// for goroutines of one instant run in any order.
func (sc *Scenario) Shrink(t *testing.T, m Mutation) *Scenario {
	t.Helper()
	s := &shrinker{t: t, m: m, best: sc, left: 2000}
	for s.progress = true; s.progress && s.left > 0; {
		s.progress = false
		s.tasks()
		s.steps()
		s.settings()
	}
	return s.best
}

type shrinker struct {
	t        *testing.T
	m        Mutation
	best     *Scenario
	left     int // checks that may still be made
	progress bool
}

// try keeps a candidate that fails.
func (s *shrinker) try(c *Scenario) bool {
	if c.crashes() {
		return false
	}
	for range 3 {
		if s.left--; s.left < 0 {
			return false
		}
		if len(c.Check(s.t, s.m, false).Wrong) > 0 {
			s.best, s.progress = c, true
			return true
		}
	}
	return false
}

// crashes reports whether a goroutine of the code's own comes to a trap: plain Go code would end
// the process there, whatever Foresay does. Programs have traps where it contains panics.
func (sc *Scenario) crashes() bool {
	return slices.ContainsFunc(sc.tasks, func(t *task) bool {
		return slices.ContainsFunc(slices.Concat(t.links...), func(s *step) bool { return s.crashes(false) })
	})
}

// crashes is that of a step; own says that a goroutine of the code's own carries it out.
func (s *step) crashes(own bool) bool {
	switch s.kind {
	case kindTrap:
		return own
	case kindCrowd, kindShared:
		own = true
	case kindBranch, kindRepeat: // are carried out by who comes there
	default:
		own = false
	}
	return slices.ContainsFunc(slices.Concat(s.bodies, s.then), func(b []*step) bool {
		return slices.ContainsFunc(b, func(c *step) bool { return c.crashes(own) })
	})
}

func (s *shrinker) tasks() {
	for i := 0; i < len(s.best.tasks) && len(s.best.tasks) > 1; {
		c := s.best.clone()
		c.tasks = append(c.tasks[:i], c.tasks[i+1:]...)
		if !s.try(c) {
			i++
		}
	}
	for i := 0; i < len(s.best.faults) && len(s.best.faults) > 1; {
		c := s.best.clone()
		c.faults = append(c.faults[:i:i], c.faults[i+1:]...)
		if !s.try(c) {
			i++
		}
	}
	for t := range s.best.tasks {
		for i := 0; i < len(s.best.tasks[t].links) && len(s.best.tasks[t].links) > 1; {
			c := s.best.clone()
			l := c.tasks[t].links
			c.tasks[t].links = append(l[:i], l[i+1:]...)
			if !s.try(c) {
				i++
			}
		}
	}
}

// steps removes steps, or puts what they contain in their place.
func (s *shrinker) steps() {
	for n := 0; ; {
		removed, inlined := s.best.clone(), s.best.clone()
		if !removed.edit(n, func(list []*step, i int) []*step { return append(list[:i:i], list[i+1:]...) }) {
			return
		}
		if s.try(removed) {
			continue
		}
		inlines := inlined.edit(n, func(list []*step, i int) []*step {
			out := append([]*step(nil), list[:i]...)
			for j, b := range list[i].bodies {
				out = append(out, b...)
				if j < len(list[i].then) {
					out = append(out, list[i].then[j]...)
				}
				if list[i].kind == kindBranch {
					break
				}
			}
			return append(out, list[i+1:]...)
		})
		if inlines && len(s.best.find(n).bodies) > 0 && s.try(inlined) {
			continue
		}
		s.simpler(n)
		n++
	}
}

// simpler takes from a step what it may do without.
func (s *shrinker) simpler(n int) {
	changes := []func(st *step) bool{
		func(st *step) bool { return st.limit && set(&st.limit, false) },
		func(st *step) bool { return st.dead && set(&st.dead, false) },
		func(st *step) bool { return st.cancels && set(&st.cancels, false) },
		func(st *step) bool { return st.tenant && set(&st.tenant, false) },
		func(st *step) bool { return len(st.keys) > 1 && set(&st.keys, st.keys[:1]) },
		func(st *step) bool { return st.count > 2 && set(&st.count, 2) },
		func(st *step) bool {
			return st.relay != nil && len(st.relay.ops) > 1 &&
				set(&st.relay, &relay{st.relay.server, st.relay.write, st.relay.ops[1:]})
		},
		func(st *step) bool {
			last := len(st.bodies) - 1
			return last > 0 && st.kind != kindBranch && st.kind != kindLoose && set(&st.bodies, st.bodies[:last:last])
		},
		func(st *step) bool {
			return len(st.bodies) > 1 && st.kind != kindBranch && st.kind != kindLoose && set(&st.bodies, st.bodies[1:]) &&
				(len(st.then) < 2 || set(&st.then, st.then[1:]))
		},
	}
	for _, change := range changes {
		c := s.best.clone()
		if st := c.find(n); st != nil && change(st) {
			s.try(c)
		}
	}
}

func set[T any](at *T, v T) bool {
	*at = v
	return true
}

// settings puts settings back to what is usual.
func (s *shrinker) settings() {
	changes := []func(k *knobs) bool{
		func(k *knobs) bool { return k.Loose && set(&k.Loose, false) },
		func(k *knobs) bool { return k.Stubborn && set(&k.Stubborn, false) },
		func(k *knobs) bool { return k.Tight && set(&k.Tight, false) },
		func(k *knobs) bool { return k.Conflict && set(&k.Conflict, false) },
		func(k *knobs) bool { return k.Ordered && set(&k.Ordered, false) },
		func(k *knobs) bool { return k.ServerPredictions && set(&k.ServerPredictions, false) },
		func(k *knobs) bool { return k.OwnKey && set(&k.OwnKey, false) },
		func(k *knobs) bool { return k.Off && set(&k.Off, false) },
		func(k *knobs) bool { return k.SendPlainly && set(&k.SendPlainly, false) },
		func(k *knobs) bool { return k.Plain != [maxServers]bool{} && set(&k.Plain, [maxServers]bool{}) },
		func(k *knobs) bool { return k.Uneven && set(&k.Uneven, false) },
		func(k *knobs) bool { return k.RefuseLate && set(&k.RefuseLate, false) },
		func(k *knobs) bool { return k.Early != 0 && set(&k.Early, 0) },
		func(k *knobs) bool { return k.Learnt != 0 && set(&k.Learnt, 0) },
		func(k *knobs) bool { return k.Streams != 0 && set(&k.Streams, 0) },
		func(k *knobs) bool { return k.HalfOpen != [2]int{} && set(&k.HalfOpen, [2]int{}) },
		func(k *knobs) bool { return k.Lease != 0 && set(&k.Lease, 0) },
		func(k *knobs) bool {
			l := k.Limits
			l.Depth, l.Width, l.Replays, l.Runs, l.AdoptGrace = 0, 0, 0, 0, 0
			return l != k.Limits && set(&k.Limits, l)
		},
		func(k *knobs) bool {
			l := k.HandlerLimit
			l.Depth, l.Width, l.Replays, l.Runs, l.AdoptGrace = 0, 0, 0, 0, 0
			return l != k.HandlerLimit && set(&k.HandlerLimit, l)
		},
		func(k *knobs) bool { return k.ClientStages != 0 && set(&k.ClientStages, 0) },
		func(k *knobs) bool {
			return k.Stages != [maxServers]methods{} && set(&k.Stages, [maxServers]methods{})
		},
		func(k *knobs) bool {
			return k.Replayable != [maxServers]methods{} && set(&k.Replayable, [maxServers]methods{})
		},
	}
	for _, change := range changes {
		c := s.best.clone()
		if change(&c.knobs) {
			s.try(c)
		}
	}
}

// clone returns a copy whose program may be changed.
func (sc *Scenario) clone() *Scenario {
	c := *sc
	c.tasks = nil
	for _, t := range sc.tasks {
		n := &task{name: t.name}
		for _, l := range t.links {
			n.links = append(n.links, cloneSteps(l))
		}
		c.tasks = append(c.tasks, n)
	}
	return &c
}

func cloneSteps(steps []*step) []*step {
	var out []*step
	for _, s := range steps {
		n := *s
		n.bodies, n.then = nil, nil
		for _, b := range s.bodies {
			n.bodies = append(n.bodies, cloneSteps(b))
		}
		for _, b := range s.then {
			n.then = append(n.then, cloneSteps(b))
		}
		out = append(out, &n)
	}
	return out
}

// edit applies f to the list that holds the n-th step, in the order of the
// text, and reports whether there is one.
func (sc *Scenario) edit(n int, f func(list []*step, i int) []*step) bool {
	for _, t := range sc.tasks {
		for i := range t.links {
			if editList(&t.links[i], &n, f) {
				return true
			}
		}
	}
	return false
}

func editList(list *[]*step, n *int, f func(list []*step, i int) []*step) bool {
	for i, s := range *list {
		if *n == 0 {
			*list = f(*list, i)
			return true
		}
		*n--
		for j := range s.bodies {
			if editList(&s.bodies[j], n, f) {
				return true
			}
			if j < len(s.then) && editList(&s.then[j], n, f) {
				return true
			}
		}
	}
	return false
}

func (sc *Scenario) find(n int) (found *step) {
	sc.edit(n, func(list []*step, i int) []*step {
		found = list[i]
		return list
	})
	return found
}

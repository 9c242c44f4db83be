package randtest

import (
	"math/rand/v2"
	"slices"
)

// This file is about goroutines of a Group that run the same code, each on keys of its own, as
// those of a fan-out do: what they read of constants is equal, and what they write is not.

// twin has the lanes of some Groups do what the first one does. It draws from numbers of its own,
// so that what else a seed decides stays.
func (sc *Scenario) twin() {
	r := rand.New(rand.NewPCG(sc.Seed, 0x7513))
	for _, t := range sc.tasks {
		for i := range t.links {
			sc.twinIn(r, t.links[i])
		}
	}
}

func (sc *Scenario) twinIn(r *rand.Rand, steps []*step) {
	for _, s := range steps {
		if s.kind == kindGroup && r.IntN(2) == 0 && twinned(s) {
			constant := keyOf(r.IntN(sc.knobs.Servers), classConstant, r.IntN(2))
			for i := range s.bodies {
				first := &step{id: 8000 + s.id, kind: kindGet, keys: []string{constant}}
				s.bodies[i] = slices.Insert(s.bodies[i], 0, first)
			}
			continue
		}
		for _, b := range slices.Concat(s.bodies, s.then) {
			sc.twinIn(r, b)
		}
	}
}

// twinned puts the code of the first lane into all lanes, each with keys of its own, and reports
// whether they have keys for it.
func twinned(s *step) bool {
	var copies [][]*step
	for _, keys := range s.parts {
		steps := cloneSteps(s.bodies[0])
		if !moved(steps, keys) {
			return false
		}
		copies = append(copies, steps)
	}
	if len(copies) != len(s.bodies) {
		return false
	}
	s.bodies = copies
	return true
}

// moved has steps use these keys in place of those of the same servers that tasks write.
func moved(steps []*step, keys []string) bool {
	for _, s := range steps {
		switch s.kind {
		case kindGet, kindPut, kindAppend, kindObserved, kindRelay, kindBranch, kindRepeat, kindSleep, kindHook:
		default:
			return false // it has keys, or a name, that are its own
		}
		s.keys = slices.Clone(s.keys)
		for i := range s.keys {
			if !move(&s.keys[i], keys) {
				return false
			}
		}
		if s.relay != nil {
			r, ok := s.relay.moved(keys)
			if s.relay = r; !ok {
				return false
			}
		}
		for _, b := range slices.Concat(s.bodies, s.then) {
			if !moved(b, keys) {
				return false
			}
		}
	}
	return true
}

func (r *relay) moved(keys []string) (*relay, bool) {
	out := *r
	out.ops = slices.Clone(r.ops)
	for i := range out.ops {
		o := &out.ops[i]
		if o.relay != nil {
			var ok bool
			if o.relay, ok = o.relay.moved(keys); !ok {
				return nil, false
			}
		} else if !move(&o.key, keys) {
			return nil, false
		}
	}
	return &out, true
}

// move replaces a key that tasks write by one of these of the same server.
func move(key *string, keys []string) bool {
	if (*key)[1] != classOwn {
		return true
	}
	i := slices.IndexFunc(keys, func(k string) bool { return serverOf(k) == serverOf(*key) })
	if i < 0 {
		return false
	}
	*key = keys[i]
	return true
}

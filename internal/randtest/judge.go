package randtest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/foresay/foresay"
)

// judge compares a speculative execution with the sequential one, and returns
// what is wrong with it.
func (sc *Scenario) judge(o *oracle, want, got *outcome) []string {
	v := &verdict{sc: sc, want: want, got: got, ok: true}
	for i, t := range sc.tasks {
		err := got.errs[i]
		if err != nil {
			v.ok = false
		}
		switch {
		case err != nil && (sc.drifts || t.races()) && errors.Is(err, foresay.ErrDiverged), err != nil && sc.Faults &&
			!sc.onlyPauses():
		case err != nil:
			v.wrong("%s: %v", t.name, err)
		case got.digests[i] != want.digests[i] && !sc.clock && !sc.drifts:
			v.wrong("%s: the result is %s, want %s", t.name, got.digests[i], want.digests[i])
		}
	}
	v.tokens()
	v.acks()
	v.late(o)
	for _, r := range got.reports {
		if r.Stalls > 0 {
			v.wrong("%s was stuck %d times", r.Task, r.Stalls)
		}
	}
	v.list = append(v.list, got.journal.broken...)
	switch {
	case sc.clock:
		v.readings()
		return v.list
	case sc.drifts:
		v.repeated()
		return v.list
	}
	v.effects()
	v.notes("commit hooks", want.journal.hooks, got.journal.hooks)
	v.notes("acts", want.journal.acts, got.journal.acts)
	v.pairs(o)
	return v.list
}

type verdict struct {
	sc        *Scenario
	want, got *outcome
	ok        bool // all tasks came to their end
	list      []string
}

func (v *verdict) wrong(format string, args ...any) {
	v.list = append(v.list, fmt.Sprintf(format, args...))
}

// same checks a list of what happened: it is the one wanted, or its beginning
// if the program did not come to its end.
func (v *verdict) same(what string, want, got []string) {
	if v.ok && !slices.Equal(want, got) || !hasPrefix(want, got) {
		v.wrong("%s:\n  want %q\n  got  %q", what, want, got)
	}
}

// effects compares what took effect at the servers, key by key, and in one
// order if the program is sequential.
func (v *verdict) effects() {
	sequential := v.sc.sequential()
	for i := range v.want.effects {
		want, got := byKey(v.want.effects[i]), byKey(v.got.effects[i])
		for _, key := range sorted(want, got) {
			if key[1] == classPrivate { // what is written depends on who came first
				if len(got[key]) > len(want[key]) || v.ok && len(got[key]) < len(want[key]) {
					v.wrong("effects on %s: want %q, got %q", key, want[key], got[key])
				}
				continue
			}
			if key[1] == classOptional && hasPrefix(want[key], got[key]) {
				continue
			}
			v.same("effects on "+key, want[key], got[key])
		}
		if sequential && !v.sc.knobs.Conflict {
			v.same("effects at "+serverName(i), list(v.want.effects[i]), list(v.got.effects[i]))
		}
	}
	if sequential && !v.sc.mixes() {
		want, got := list(slices.Concat(v.want.effects...)), list(slices.Concat(v.got.effects...))
		want = want[:min(len(want), len(got))]
		slices.Sort(want)
		slices.Sort(got)
		v.same("the program's first effects", want, got)
	}
}

// races reports whether goroutines that share a context race for equal effects.
// Which of them is which in another run is open; a task that has to know is
// stopped.
func (t *task) races() bool {
	return t.has(func(s *step) bool { return s.kind == kindContend && !s.lanes })
}

// shares reports whether goroutines of the task share a context.
func (t *task) shares() bool {
	return t.races() || t.has(func(s *step) bool { return s.kind == kindShared || s.kind == kindCrowd })
}

// has reports whether a step of the task is such a one.
func (t *task) has(such func(s *step) bool) bool {
	var among func(steps []*step) bool
	among = func(steps []*step) bool {
		return slices.ContainsFunc(steps, func(s *step) bool {
			return such(s) || slices.ContainsFunc(slices.Concat(s.bodies, s.then), among)
		})
	}
	return slices.ContainsFunc(t.links, among)
}

// sequential reports whether the program does one thing after the other.
func (sc *Scenario) sequential() bool {
	for _, link := range sc.tasks[0].links {
		if concurrent(link) {
			return false
		}
	}
	return len(sc.tasks) == 1
}

// mixes reports whether a handler writes here and elsewhere: what it stages here
// takes effect after what it writes there.
func (sc *Scenario) mixes() bool {
	var mixes func(steps []*step) bool
	mixes = func(steps []*step) bool {
		return slices.ContainsFunc(steps, func(s *step) bool {
			return s.relay != nil && s.relay.mixes() || slices.ContainsFunc(slices.Concat(s.bodies, s.then), mixes)
		})
	}
	return slices.ContainsFunc(sc.tasks[0].links, mixes)
}

// readings checks that confirmed code did not see the clock go back. Reads of
// different keys may be declared to commute.
func (v *verdict) readings() {
	last := make(map[string]uint64)
	for _, r := range v.got.journal.clock {
		key := "any"
		if v.sc.knobs.Conflict {
			key = r.key
		}
		if r.version < last[key] {
			v.wrong("the clock goes back: %v", v.got.journal.clock)
		}
		last[key] = r.version
	}
}

// repeated checks that nothing took effect more often than in a sequential
// execution, although the program is another one in each run.
func (v *verdict) repeated() {
	want, got := make(map[string]int), make(map[string]int)
	for _, e := range slices.Concat(v.want.effects...) {
		want[e.key]++
	}
	for _, e := range slices.Concat(v.got.effects...) {
		if got[e.key]++; got[e.key] > want[e.key] {
			v.wrong("%s takes effect %d times, at most %d are right", e.key, got[e.key], want[e.key])
		}
	}
}

// list returns effects in the order in which they happened in the world.
func list(effects []effect) []string {
	var out []string
	effects = slices.SortedFunc(slices.Values(effects), func(a, b effect) int { return cmp.Compare(a.seq, b.seq) })
	for _, e := range effects {
		out = append(out, e.String())
	}
	return out
}

func sorted(a, b map[string][]string) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// notes compares what the program's own hooks or acts did, lane by lane.
func (v *verdict) notes(what string, want, got []note) {
	w, g := byLane(want), byLane(got)
	for _, lane := range sorted(w, g) {
		v.same(what+" in "+lane, w[lane], g[lane])
	}
}

// tokens checks that each pair of hooks ended in one way.
func (v *verdict) tokens() {
	for _, t := range v.got.journal.tokens {
		if t.commits+t.rollbacks != 1 {
			v.wrong("hooks of %s: %d commits and %d rollbacks, want one of both", t.at, t.commits, t.rollbacks)
		}
	}
}

// acks checks that what confirmed code was told took effect.
func (v *verdict) acks() {
	logs := make(map[string][]effect)
	for _, e := range slices.Concat(v.got.effects...) {
		logs[e.key] = append(logs[e.key], e)
	}
	for _, a := range v.got.journal.acks {
		log := logs[a.key]
		if n := int(a.version); n < 1 || n > len(log) || log[n-1].what != a.what {
			v.wrong("an acknowledged effect is lost: %v; the key's effects: %v", a, log)
		}
	}
}

// pairs checks what predictors learnt and interceptors saw: the first are
// actual results of the right program, the second are what servers answered. Where
// goroutines share a context a run may make a certain read anew. A server takes that for
// right although the run is not, and its predictors learn what is true by then.
func (v *verdict) pairs(o *oracle) {
	shared := slices.ContainsFunc(v.sc.tasks, (*task).shares)
	for _, p := range v.got.journal.learnt {
		if _, served := v.got.journal.served[p]; !o.saw(p) && !(shared && served) {
			v.wrong("a predictor learnt what no right code was told: %q", p)
		}
	}
	for _, p := range v.got.journal.carried {
		if _, ok := v.got.journal.served[p]; !ok {
			v.wrong("an interceptor saw what no server answered: %q", p)
		}
	}
}

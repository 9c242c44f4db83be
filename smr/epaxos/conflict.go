package epaxos

import (
	"maps"
	"slices"
	"strconv"

	"github.com/foresay/foresay/smr/kit"
)

// An Interferer is a state machine that knows which of its commands commute. A replica whose state
// machine is none takes all commands to conflict, and then all replicas execute all of them in one
// order.
type Interferer interface {
	// Footprint returns the keys that a command or a query is about. Two commands whose keys are
	// disjoint have the same results and lead to the same state in either order. ok is false for
	// one that conflicts with everything. It depends on nothing but its argument.
	Footprint(command []byte) (keys []string, ok bool)
}

// footprint is what a command conflicts by: with all, or with those that share a key.
type footprint struct {
	all  bool
	keys []string
}

// meets reports whether two footprints conflict.
func (f footprint) meets(o footprint) bool {
	if f.all || o.all {
		return true
	}
	return slices.ContainsFunc(f.keys, func(k string) bool { return slices.Contains(o.keys, k) })
}

// footprint returns what a command conflicts by. The commands of a session conflict, so that its
// table of answers is the same everywhere, and its commands are executed in order. What changes the
// sessions or the members conflicts with all.
//
// Sessions are part of it even if the keys are disjoint. Calls 6 and 7 of a session, executed in
// one order here and in the other there, would leave different tables of answers. The
// tables tell which calls are repetitions, so from then on replicas would not execute the same.
func (r *replica) footprint(c *command) footprint {
	if c.Kind != work || r.interferer == nil {
		return footprint{all: true}
	}
	var f footprint
	for _, e := range c.Entries {
		keys, ok := r.interferer.Footprint(e.Command)
		if e.Kind != kit.Command || !ok {
			return footprint{all: true}
		}
		for _, k := range keys {
			// The first letter keeps a key from being taken for a session.
			f.keys = append(f.keys, "k"+k)
		}
		f.keys = append(f.keys, "s"+strconv.FormatUint(uint64(e.Session), 36))
	}
	slices.Sort(f.keys)
	f.keys = slices.Compact(f.keys)
	return f
}

// conflictIndex tells by key which instances were heard of last.
//
// One index per row is all that it keeps, because a dependency stands for its row up to there. So
// it need not know which of the instances below conflict, and stays right if the latest one is
// decided to be nothing. Instances that conflict with everything are kept apart, as they belong to
// every key, keys that nobody has used yet among them.
type conflictIndex struct {
	byKey   map[string]deps
	barrier deps // that conflict with all
	top     deps // of all
}

func newConflictIndex(n int) conflictIndex {
	return conflictIndex{byKey: map[string]deps{}, barrier: make(deps, n), top: make(deps, n)}
}

// note takes in an instance whose command is known.
func (x *conflictIndex) note(row int, index uint64, f footprint) {
	x.top[row] = max(x.top[row], index)
	if f.all {
		x.barrier[row] = max(x.barrier[row], index)
	}
	for _, k := range f.keys {
		d := x.byKey[k]
		if d == nil {
			d = make(deps, len(x.top))
			x.byKey[k] = d
		}
		d[row] = max(d[row], index)
	}
}

// conflicts returns, of each row, the last instance that conflicts.
func (x *conflictIndex) conflicts(f footprint) deps {
	if f.all {
		return x.top.clone()
	}
	d := x.barrier.clone()
	for _, k := range f.keys {
		d.join(x.byKey[k])
	}
	return d
}

// forget drops what is only about instances up to some.
//
// A key whose instances are all within the newest checkpoint needs no entry. The checkpoint is in
// barrier, so every later command depends on it, and it depends on all of them.
func (x *conflictIndex) forget(stable deps) {
	maps.DeleteFunc(x.byKey, func(_ string, d deps) bool {
		for i, v := range d {
			if v > stable[i] {
				return false
			}
		}
		return true
	})
}

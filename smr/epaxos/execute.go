package epaxos

import (
	"cmp"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// frame is an instance of which the search looks at what it depends on.
type frame struct {
	i   *instance
	row int // where it looks
}

// search finds the strongly connected components of what is decided, those first that others depend
// on [EPaxos §4.3.2], without recursion: a chain of dependencies may be long. As dependencies are
// all of a row up to an index, the search goes through each row once, in order, whoever depends on
// it: its time is that of what it visits, and not of all dependencies of that, of which there are
// as many as pairs where everything conflicts.
//
// A search is needed because dependencies have cycles: of two commands that are proposed at the
// same time, each may be told to depend on the other. No replica can execute one of them "after
// what it depends on". But decided dependencies are the same everywhere, so the components are too,
// and it is enough to have one rule for the order within a component.
type search struct {
	root   *instance
	frames []frame
	stack  []*instance
	count  uint64
	seen   []uint64 // by row: all up to there were visited or are executed
	open   []uint64 // by row: those before it are not on the stack
}

// execute executes what can be executed now, of what was decided since the last time.
//
// It does not nest. A search keeps its marks (number, low, onStack) in the instances, so a second
// one within the first would overwrite them. What is decided meanwhile joins woken, and the loop
// gets to it. A pass ends what earlier passes found to be blocked: decisions have been made since
// then.
func (r *replica) execute(env *protocol.Env[smr.Message]) {
	if r.executing {
		return
	}
	r.executing = true
	before := r.generation
	r.pass++
	for len(r.woken) > 0 && r.generation == before {
		i := r.woken[0]
		r.woken = r.woken[1:]
		if i.decided() && !i.executed {
			r.executeFrom(env, i)
		}
	}
	r.executing = false
	if r.generation != before {
		r.woken = nil
		r.execute(env)
	}
}

// executeFrom executes an instance with all that it depends on, if all that is decided.
//
// It gives up as soon as one of them is not decided, even if everything else could be executed.
// That one may be decided to depend on the root in turn. Then it belongs to the root's component,
// perhaps with a lower stamp, and replicas that heard of it in time execute it before the root.
func (r *replica) executeFrom(env *protocol.Env[smr.Message], root *instance) {
	s := &search{root: root, seen: make([]uint64, len(r.rows)), open: make([]uint64, len(r.rows))}
	s.push(root)
	before := r.generation
	for len(s.frames) > 0 {
		f := &s.frames[len(s.frames)-1]
		o := r.nextDependency(s, f)
		switch {
		case o == nil:
			if !r.pop(env, s) {
				return
			}
		case !o.decided() || o.blocked == r.pass:
			r.block(s, root, o)
			return
		default:
			s.push(o)
		}
		if r.generation != before {
			return
		}
	}
}

func (s *search) push(i *instance) {
	s.count++
	i.number, i.low, i.onStack = s.count, s.count, true
	s.stack = append(s.stack, i)
	s.frames = append(s.frames, frame{i: i})
}

// nextDependency returns the next instance that is depended on and was not visited, nil if there is
// none. It notes on the way which of those on the stack are depended on.
//
// The search visits a row from its start and notes how far it is. So the next instance to visit is
// always behind that mark, no matter which instance depends on it. Only the root breaks that order:
// it is visited first, wherever in its row it stands, and is therefore compared by itself.
func (r *replica) nextDependency(s *search, f *frame) *instance {
	for ; f.row < len(r.rows); f.row++ {
		w, last := &r.rows[f.row], f.i.deps[f.row]
		seen := &s.seen[f.row]
		for *seen = max(*seen, w.done); *seen < last; {
			*seen++
			if o := w.at(*seen); o != nil && !o.executed && o != s.root {
				return o
			}
		}
		if o := s.lowest(w, f.row, last); o != nil {
			f.i.low = min(f.i.low, o.number)
		}
	}
	if f.i.deps.has(s.root) { // the only one that was not visited in the order of its row
		f.i.low = min(f.i.low, s.root.number)
	}
	return nil
}

// lowest returns the first of a row that is on the stack, if it is not behind last. All up to last
// have been visited. It is the one that was visited first, but for the root.
//
// The mark "open" only moves on. An instance leaves the stack when it is executed, and does not
// come back in the same search.
func (s *search) lowest(w *row, at int, last uint64) *instance {
	open := &s.open[at]
	for *open = max(*open, w.done+1); *open <= last; *open++ {
		if o := w.at(*open); o != nil && o.onStack {
			return o
		}
	}
	return nil
}

// block ends a search: something is not decided. What was on the way to it is looked at again when
// it is.
func (r *replica) block(s *search, root, by *instance) {
	if by.decided() {
		// It is decided, but an earlier search of this pass found it blocked. Nothing wakes those
		// who wait for a decided instance, so the root waits for the one that is really missing.
		by = by.blockedBy
	}
	for _, i := range s.stack {
		i.blocked, i.blockedBy = r.pass, by
		i.number, i.onStack = 0, false
	}
	// The root alone waits. Its next search comes past all others on the stack again.
	by.waiters = append(by.waiters, root)
}

// pop ends the look at an instance, and executes the component of which it is the root, if it is
// one. It reports whether the search may go on.
func (r *replica) pop(env *protocol.Env[smr.Message], s *search) bool {
	i := s.frames[len(s.frames)-1].i
	s.frames = s.frames[:len(s.frames)-1]
	if len(s.frames) > 0 {
		parent := s.frames[len(s.frames)-1].i
		parent.low = min(parent.low, i.low)
	}
	if i.low < i.number {
		return true
	}
	k := slices.Index(s.stack, i)
	component := slices.Clone(s.stack[k:])
	s.stack = s.stack[:k]
	for _, o := range component {
		o.number, o.onStack = 0, false
	}
	return r.executeComponent(env, component)
}

// order is that in which instances are executed that depend on each other: by their stamps, so that
// what was proposed after another one was known comes after it. What ends a period comes last: all
// else that is in the component belongs to the period.
//
// Any order would do that follows from what was decided along with the instances; the order of
// arrival is different at each replica. Stamps are chosen since a caller can rely on them: a
// command whose token a later call carries has the lower stamp. A checkpoint has to be last, or the
// snapshot that is taken at it would lack commands of its component that reach says it has. A
// change of the members comes even behind that: it voids everything that is behind it, and commands
// of its component may have been acknowledged as durable.
func order(a, b *instance) int {
	rank := func(i *instance) int {
		switch {
		case i.nothing:
			return 0
		case i.cmd.Kind == checkpoint:
			return 1
		case i.cmd.changes():
			return 2
		}
		return 0
	}
	stamp := func(i *instance) uint64 {
		if i.nothing {
			return 0
		}
		return i.cmd.Stamp
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(stamp(a), stamp(b)), cmp.Compare(a.id.Row, b.id.Row),
		cmp.Compare(a.id.Index, b.id.Index))
}

// executeComponent executes instances that depend on each other. It reports whether the generation
// goes on.
func (r *replica) executeComponent(env *protocol.Env[smr.Message], component []*instance) bool {
	// By now everything that these depend on is executed, so their dependencies tell what the state
	// contains. Nothing is left out of it: two replicas may have executed different nothings when
	// they come to a checkpoint, and their snapshots are to be the same.
	slices.SortFunc(component, order)
	var last *instance
	for _, i := range component {
		if !i.nothing {
			r.reach.join(i.deps)
			r.reach[i.row] = max(r.reach[i.row], i.id.Index)
		}
	}
	for _, i := range component {
		i.executed = true
		w := &r.rows[i.row]
		for next := w.at(w.done + 1); next != nil && next.executed; next = w.at(w.done + 1) {
			w.done++
		}
		if i.nothing {
			continue
		}
		if i.cmd.Kind == checkpoint {
			last = i
		}
		if ended := r.apply(env, i); ended {
			return false
		}
	}
	if last != nil {
		r.takeSnapshot(env, last)
	}
	return true
}

// apply executes the command of an instance, and reports whether a generation ends with it.
func (r *replica) apply(env *protocol.Env[smr.Message], i *instance) (ended bool) {
	p := r.mine[i.id]
	delete(r.mine, i.id)
	r.high = max(r.high, smr.Slot(i.cmd.Stamp))
	if i.cmd.Kind != work {
		r.State.Apply(r.nextSlot(i.cmd), kit.Entry{Kind: kit.NoOp})
		if p != nil {
			r.answer(env, p.reads)
		}
		return false
	}
	// Compared before and after: a change that was asked for twice has no effect the second time,
	// and ending a generation would void all that is under way.
	before := r.State.Members()
	for _, e := range i.cmd.Entries {
		reply := r.State.Apply(r.nextSlot(i.cmd), e)
		if p != nil {
			r.executed(env, e, reply)
		}
	}
	if i.cmd.changes() && !slices.Equal(before, r.State.Members()) {
		r.endGeneration(env)
		return true
	}
	return false
}

// nextSlot returns the slot of the next entry: above the last one, and not below the stamp, which a
// client may have been told.
//
// So slots depend on the order of execution, even where the commands commute. With stamps 5 and 9,
// x before y gives the slots 5 and 9; y before x gives 9 and 10.
func (r *replica) nextSlot(c *command) smr.Slot {
	r.since++
	return max(r.State.Applied()+1, smr.Slot(c.Stamp))
}

// level returns a slot that all replicas come to that have executed the same since the snapshot, in
// whichever order. No entry has a higher one.
//
// The highest stamp and the number of entries do not depend on the order. In the example of
// nextSlot both replicas come to 9 + 2 = 11.
func (r *replica) level() smr.Slot { return max(r.high, r.even) + r.since }

// evenOut skips to a slot that is the same at all replicas that have executed the same.
func (r *replica) evenOut() {
	r.State.Skip(r.level() + 1)
	r.even, r.high, r.since = r.State.Applied(), 0, 0
}

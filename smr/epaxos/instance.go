package epaxos

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// instance is what a replica knows of one.
type instance struct {
	id    instanceID
	row   int // of the proposer, among the members
	phase phase
	// ballot is promised: nothing below it is done. voted is the ballot in which it was accepted.
	// They are two, as a promise is not a vote: whoever recovers later must not take what was
	// accepted in a low ballot for a vote in the ballot that was promised since.
	ballot, voted kit.Ballot
	// as proposed; nil if not known. It stays when nothing is accepted in its place: in another
	// ballot it may still be decided.
	cmd     *command
	foot    footprint // of cmd
	nothing bool      // what was accepted or decided is nothing
	init    deps      // as proposed; nil if not known
	deps    deps

	settling bool // it was decided here on the fast path, and is not known to be on the disk yet: nobody is told
	executed bool
	logged   bool       // there is a record of it
	age, due int        // beats since it was heard of, and when it is to be recovered
	hint     kit.Ballot // that somebody has promised
	waits    uint64     // the most replicas that are known to have agreed with it at once, while its recovery waited
	try      *attempt   // to decide it, by this replica

	// Of the search for what can be executed.
	number, low uint64
	onStack     bool
	blocked     uint64 // in which pass it was found to depend on something that is not decided
	blockedBy   *instance
	waiters     []*instance // to be looked at when this one is decided
}

// decided reports whether the instance can be executed as far as it is concerned itself.
func (i *instance) decided() bool { return i.phase == phaseCommitted && !i.settling }

// known reports whether the replica knows what the instance is: a command, or decided to be
// nothing.
func (i *instance) known() bool { return i.cmd != nil || i.phase == phaseCommitted }

// agrees reports whether the replica agreed with what was proposed, at once.
//
// An acceptor that added a dependency did not agree, though it pre-accepted: the fast path decides
// the proposal as it was made. Once an instance was accepted its dependencies may be a union that
// happens to equal the proposal, so the phase counts as well.
func agrees(p phase, init, deps deps) bool {
	return p == phasePreAccepted && len(init) > 0 && slices.Equal(init, deps)
}

// row is the instances that one replica proposes.
type row struct {
	base uint64      // those up to it are forgotten. Invariant: base <= known, done.
	list []*instance // from base+1 on
	// known and done: all up to there are decided, or executed. Invariant: done <= known.
	known, done uint64
	seen        uint64 // what all up to there are is known
}

func (w *row) top() uint64 { return w.base + uint64(len(w.list)) }

// at returns an instance, nil if it is forgotten or was not heard of.
func (w *row) at(index uint64) *instance {
	if index <= w.base || index > w.top() {
		return nil
	}
	return w.list[index-w.base-1]
}

// forget drops the instances up to one.
func (w *row) forget(to uint64) {
	if to <= w.base {
		return
	}
	w.list = slices.Delete(w.list, 0, int(min(to-w.base, uint64(len(w.list)))))
	w.base = to
	w.known, w.done = max(w.known, to), max(w.done, to)
}

// position returns where a replica is among the members, -1 if it is none.
func (r *replica) position(id protocol.ID) int {
	return slices.IndexFunc(r.group, func(m smr.Member) bool { return m.ID == id })
}

// find returns the instance of an ID, nil if it is forgotten, not possible, or too far ahead.
func (r *replica) find(id instanceID) *instance {
	p := r.position(id.Row)
	if p < 0 {
		return nil
	}
	w := &r.rows[p]
	if id.Index > w.done+maxAhead {
		return nil
	}
	for w.top() < id.Index {
		w.list = append(w.list, &instance{id: instanceID{id.Row, w.top() + 1}, row: p})
	}
	return w.at(id.Index)
}

// hear makes room for all that is depended on, and reports whether it is possible.
//
// Each of them gets a place, so that it is recovered if nobody else brings it to an end. Otherwise
// a proposer that crashed after one of its PreAccepts had arrived would block all that depends on
// the instance for ever.
func (r *replica) hear(d deps) bool {
	if len(d) != len(r.rows) {
		return false
	}
	for p, index := range d {
		if index > r.rows[p].done+maxAhead {
			return false
		}
	}
	for p, index := range d {
		if index > r.rows[p].top() {
			r.find(instanceID{r.group[p].ID, index})
		}
	}
	return true
}

// setCommand notes what an instance is, and reports whether that was not known. Conflicts with a
// proposal are noticed from then on, whatever comes of it.
func (r *replica) setCommand(i *instance, c *command) (fresh bool) {
	if i.nothing = c.Kind == nothing; i.nothing || i.cmd != nil {
		return false
	}
	i.cmd, i.foot = c, r.footprint(c)
	r.stamp = max(r.stamp, c.Stamp)
	r.index.note(i.row, i.id.Index, i.foot)
	if c.changes() {
		r.fences = append(r.fences, i)
	}
	return true
}

// value returns what was accepted or decided.
func (i *instance) value() *command {
	if i.nothing {
		return &command{Kind: nothing}
	}
	return i.cmd
}

// fenced reports whether a change of the members may come before a proposal, as far as this replica
// knows: there is one that is not executed, or something that the proposal depends on and nobody
// knows. A dependency covers a row up to an index, what was lost on the way included. Somebody has
// to have looked at each instance that is covered: the proposer vouches for its own dependencies,
// who adds to them for what is added. A change that none of a quorum knows could be recovered as it
// was proposed, without the proposal, which would be void though it was acknowledged.
func (r *replica) fenced(i *instance, vouched deps) bool {
	r.fences = slices.DeleteFunc(r.fences, func(f *instance) bool { return f.executed })
	return slices.ContainsFunc(r.fences, func(f *instance) bool { return f != i }) || r.blind(i.deps, vouched)
}

// blind reports whether there are instances above some dependencies and within others of which this
// replica does not know what they are.
//
// Such an instance may be a change of the members whose PreAccept was lost on the way here.
func (r *replica) blind(d, vouched deps) bool {
	for p := range r.rows {
		w := &r.rows[p]
		w.seen = max(w.seen, w.base)
		for w.seen < w.top() && w.at(w.seen+1).known() {
			w.seen++
		}
		first := w.seen + 1
		if p < len(vouched) {
			first = max(first, vouched[p]+1)
		}
		for x := first; x <= d[p]; x++ {
			if o := w.at(x); o == nil || !o.known() {
				return true
			}
		}
	}
	return false
}

// save writes an instance down as it is. The command is left out if it is on disk already.
func (r *replica) save(env *protocol.Env[smr.Message], i *instance, whole bool) {
	r.Tempo.Busy()
	rec := instanceRecord{ID: i.id, Phase: uint8(i.phase), Ballot: i.ballot, Voted: i.voted, Nothing: i.nothing,
		Init: i.init, Deps: i.deps}
	if whole || !i.logged {
		rec.Cmd = i.cmd
	}
	env.Append(rec)
	if !i.logged {
		i.logged = true
		r.logged++
	}
}

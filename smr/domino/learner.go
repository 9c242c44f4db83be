package domino

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
)

// learner is what a replica knows to be decided. Nothing of it is on disk: it follows from what
// acceptors have there.
type learner struct {
	executed smr.Slot // all up to it is decided and executed
	shared   track
	control  track
	owners   []*track // of the members, in their order
	contests []*contest
	decided  bySlot // items that are decided and not executed
	change   smr.Slot
	last     smr.Slot // of the items that were executed
	untold   smr.Slot // from where on the coordinator has not told the others what it has learned; 0: it has
	broken   error    // two decisions for one slot: the protocol is wrong
}

// track is what is known of one track's slots.
type track struct {
	id trackID
	// w is the slot up to which all of the track is decided, itself included, and known: items are
	// in learner.decided or executed.
	w smr.Slot
	// known are parts that are decided beyond a gap, in order.
	known []closeSlots
	// queue are the owner's proposals above w, in order.
	queue []numbered
	idle  int // ticks since w rose
}

// numbered is a proposal with its number in the owner's stream.
type numbered struct {
	number uint64
	item
}

// contest is what acceptors have voted for in one slot of the shared track. Without two clients
// that used the same slot there is one candidate.
type contest struct {
	slot       smr.Slot
	candidates []candidate
}

type candidate struct {
	item
	by quorum.Votes
}

func newLearner() learner {
	return learner{shared: track{id: shared}, control: track{id: control}}
}

// track returns a track; one of a replica that is no member is a new one, which nobody looks at.
func (l *learner) track(id trackID) *track {
	switch id {
	case shared:
		return &l.shared
	case control:
		return &l.control
	}
	for _, o := range l.owners {
		if o.id == id {
			return o
		}
	}
	return &track{id: id}
}

// regroup makes tracks for the members. Those of new ones begin where they became members, which is
// what was executed.
func (l *learner) regroup(group []protocol.ID) {
	var owners []*track
	for _, id := range group {
		o := l.track(trackOf(id))
		o.w = max(o.w, l.executed)
		owners = append(owners, o)
	}
	l.owners = owners
}

// limit returns the slot up to which it is known who the members are: no change of them is
// undecided, or decided and not executed, below it.
func (l *learner) limit() smr.Slot {
	if l.change != 0 {
		return l.change
	}
	return l.control.w
}

// ready returns the slot up to which everything is decided.
func (l *learner) ready() smr.Slot {
	w := min(l.shared.w, l.limit())
	for _, o := range l.owners {
		w = min(w, o.w)
	}
	return w
}

// lastDecided returns the last item's slot up to which everything is decided.
func (l *learner) lastDecided() smr.Slot {
	if ready := l.decided.within(l.executed, l.ready()); len(ready) > 0 {
		return ready[len(ready)-1].Slot
	}
	return l.last
}

// nextUsed returns the first slot above one in which there is an item, or may be, 0 if there is
// none.
func (l *learner) nextUsed(after smr.Slot) smr.Slot {
	next := smr.Slot(math.MaxUint64)
	if i, _ := l.find(after + 1); i < len(l.contests) {
		next = min(next, l.contests[i].slot)
	}
	if i, _ := l.decided.search(after + 1); i < len(l.decided) {
		next = min(next, l.decided[i].Slot)
	}
	for _, o := range l.owners {
		i, _ := slices.BinarySearchFunc(o.queue, after+1, func(n numbered, s smr.Slot) int { return cmp.Compare(n.Slot, s) })
		if i < len(o.queue) {
			next = min(next, o.queue[i].Slot)
		}
	}
	if next == math.MaxUint64 {
		return 0
	}
	return next
}

// decide notes what is decided for a slot.
//
// A second, different decision for a slot means that a rule was broken, and replicas may have
// executed either. Check reports it; to take one of them here would only hide it.
func (l *learner) decide(i item) {
	if was, ok := l.decided.get(i.Slot); ok && !was.equal(i) {
		l.broken = fmt.Errorf("domino: slot %d is decided twice: %v and %v", i.Slot, was.Entries, i.Entries)
	}
	l.decided.add(i)
}

// findChange looks for a decided change of the members that is not executed.
func (l *learner) findChange() {
	l.change = 0
	for _, i := range l.decided {
		if digitOf(i.Slot) == controlDigit {
			l.change = i.Slot
			return
		}
	}
}

func (l *learner) find(s smr.Slot) (int, bool) {
	return slices.BinarySearchFunc(l.contests, s, func(c *contest, s smr.Slot) int { return cmp.Compare(c.slot, s) })
}

// vote notes an acceptor's vote in the shared track.
func (l *learner) vote(by protocol.ID, item item) {
	if item.Slot <= l.shared.w {
		return
	}
	i, found := l.find(item.Slot)
	if !found {
		l.contests = slices.Insert(l.contests, i, &contest{slot: item.Slot})
	}
	c := l.contests[i]
	for k := range c.candidates {
		// An acceptor votes once in a slot. A second vote is a copy, and one for something else is
		// not to be believed: counted for both, it could make two supermajorities.
		if c.candidates[k].by.Has(by) {
			return
		}
	}
	for k := range c.candidates {
		if c.candidates[k].equal(item) {
			c.candidates[k].by.Add(by)
			return
		}
	}
	c.candidates = append(c.candidates, candidate{item: item})
	c.candidates[len(c.candidates)-1].by.Add(by)
}

// add puts a proposal of the track's owner behind the others.
//
// Owners propose in rising slots. Whatever is not above the last one is a copy.
func (o *track) add(number uint64, item item) {
	if n := len(o.queue); item.Slot > o.w && (n == 0 || o.queue[n-1].Slot < item.Slot) {
		o.queue = append(o.queue, numbered{number, item})
	}
}

// tally counts the members' votes for the candidates, and those that have passed the slot without
// one.
func (c *contest) tally(group []protocol.ID, closed func(protocol.ID) smr.Slot) (votes []int, passed int) {
	votes = make([]int, len(c.candidates))
	for k := range c.candidates {
		votes[k] = c.candidates[k].by.Among(group)
	}
	for _, id := range group {
		if closed(id) >= c.slot && !slices.ContainsFunc(c.candidates, func(v candidate) bool { return v.by.Has(id) }) {
			passed++
		}
	}
	return votes, passed
}

// learn decides what can be decided, executes what can be executed, and goes on from there.
func (r *replica) learn(env *protocol.Env[smr.Message]) {
	l := &r.learner
	for r.role == member {
		before := l.executed
		r.jump(&l.control)
		r.learnShared(env)
		for _, o := range l.owners {
			r.learnTrack(env, o)
		}
		if r.execute(env, l.ready()); l.executed == before {
			return
		}
	}
}

// jump takes over what is known to be decided right above w.
func (r *replica) jump(o *track) bool {
	jumped := false
	for len(o.known) > 0 && o.known[0].Low <= o.w {
		jumped = o.rise(o.known[0].High) || jumped
		o.known = o.known[1:]
	}
	return jumped
}

// jumpTrack is jump for a member's track. The replica's own proposals that were decided to be
// no-ops are proposed again.
func (r *replica) jumpTrack(env *protocol.Env[smr.Message], o *track) bool {
	before := o.queue
	jumped := r.jump(o)
	if o.id == trackOf(r.Cfg.ID) {
		for _, x := range before[:len(before)-len(o.queue)] {
			if _, ok := r.learner.decided.get(x.Slot); !ok {
				r.queue = append(r.queue, x.Entries...)
				r.soon(env)
			}
		}
	}
	return jumped
}

// rise notes that all up to a slot is decided.
func (o *track) rise(to smr.Slot) bool {
	if to <= o.w {
		return false
	}
	o.w, o.idle = to, 0
	n := 0
	for n < len(o.queue) && o.queue[n].Slot <= to {
		n++
	}
	o.queue = o.queue[n:]
	return true
}

// bound is how far the track's slots may be looked at one by one: who the members are is known, and
// nothing is known to be decided.
//
// Beyond the limit nobody knows yet how many acceptors there are, so no number of votes means
// anything there.
func (r *replica) bound(o *track) smr.Slot {
	limit := r.learner.limit()
	if len(o.known) > 0 {
		limit = min(limit, o.known[0].Low)
	}
	return limit
}

// counts reports whether the replica counts votes of the shared track.
func (r *replica) counts() bool { return r.opt.AllLearn || r.coord.phase == leading }

func (r *replica) closedBy(id protocol.ID) smr.Slot { return r.peers[id].claims.Closed }

// closedByAll returns the slot that so many of the members have passed.
func (r *replica) closedByAll(count int) smr.Slot {
	closed := make([]smr.Slot, 0, maxMembers)
	for _, id := range r.group {
		closed = append(closed, r.closedBy(id))
	}
	return quorum.KthLargest(closed, count)
}

// learnShared decides slots of the shared track by votes in ballot 0.
//
// A command's votes count as soon as they are here. A no-op has no votes: it takes acceptors that
// have passed the slot, since one that has not may vote in it yet. That is why a slot near which
// nobody votes is decided only when the claims come past it.
func (r *replica) learnShared(env *protocol.Env[smr.Message]) {
	l := &r.learner
	o := &l.shared
	low := o.w
	for r.jump(o); r.counts(); {
		closed, bound := r.closedByAll(r.rule.noOp), r.bound(o)
		if bound <= o.w {
			break
		}
		i, _ := l.find(o.w + 1)
		if i == len(l.contests) || l.contests[i].slot > min(closed+stride, bound) {
			to := min(closed, bound)
			if i < len(l.contests) {
				to = min(to, l.contests[i].slot-1)
			}
			if o.rise(to); !r.jump(o) {
				break
			}
			continue
		}
		c := l.contests[i]
		o.rise(min(closed, c.slot-1))
		votes, passed := c.tally(r.group, r.closedBy)
		if k := slices.IndexFunc(votes, func(v int) bool { return v >= r.rule.command }); k >= 0 {
			l.decide(c.candidates[k].item)
		} else if passed < r.rule.noOp {
			break
		}
		o.rise(c.slot)
	}
	if !r.opt.AllLearn && r.coord.phase == leading && o.w > low {
		r.tellShared(env, low)
	} else if r.coord.phase != leading {
		l.untold = 0
	}
	r.settleContests(env)
}

// tellShared tells the others what was learned of the shared track above a slot. That nothing was
// used waits if the coordinator is about to rest: it would wake them.
func (r *replica) tellShared(env *protocol.Env[smr.Message], low smr.Slot) {
	l := &r.learner
	if l.untold != 0 {
		low = l.untold
	}
	items := slices.Clone(l.decided.within(low, l.shared.w)) // also those that it decided itself
	items = slices.DeleteFunc(items, func(i item) bool { return digitOf(i.Slot) != sharedDigit })
	if len(items) == 0 && r.Lull.Silent() {
		l.untold = low
		return
	}
	l.untold = 0
	r.tellLearned(env, closeSlots{shared, low, l.shared.w, items})
}

// settleContests tells clients what became of their commands in slots that are decided, and forgets
// these.
func (r *replica) settleContests(env *protocol.Env[smr.Message]) {
	l := &r.learner
	n, _ := l.find(l.shared.w + 1)
	for _, c := range l.contests[:n] {
		won, _ := l.decided.get(c.slot)
		for k := range c.candidates {
			v := &c.candidates[k]
			if v.by.Among(r.group) >= r.rule.command {
				continue // the client counts votes itself
			}
			if r.coord.phase == leading || v.Answer == r.Cfg.ID {
				r.sendOutcome(env, v.item, v.equal(won))
			}
		}
	}
	l.contests = slices.Delete(l.contests, 0, n)
}

func (r *replica) sendOutcome(env *protocol.Env[smr.Message], i item, committed bool) {
	if len(i.Entries) > 0 {
		env.Send(i.Entries[0].Client, outcome{i.Entries[0].Session, i.Slot, committed})
	}
}

// learnTrack decides slots of a member's track. What it has not proposed up to its claim, nobody
// ever proposes there: only it may propose anything but no-ops.
func (r *replica) learnTrack(env *protocol.Env[smr.Message], o *track) {
	id := protocol.ID(o.id)
	for r.jumpTrack(env, o); ; {
		skipped, bound := r.peers[id].claims.Skipped, r.bound(o)
		if len(o.queue) == 0 || o.queue[0].Slot > bound {
			to := min(skipped, bound)
			if len(o.queue) > 0 {
				to = min(to, o.queue[0].Slot-1)
			}
			if o.rise(to); !r.jumpTrack(env, o) {
				return
			}
			continue
		}
		x := o.queue[0]
		if r.holding(id, x) < r.rule.classic {
			o.rise(min(skipped, x.Slot-1, bound))
			return
		}
		r.learner.decide(x.item)
		if o.rise(x.Slot); id == r.Cfg.ID && !r.opt.Direct {
			r.sendPlaced(env, x.item, true)
		}
	}
}

// holding returns how many members have accepted a proposal.
//
// Above Revoked only: Count says how much of the owner's stream has arrived, and what arrived after
// a revocation was not accepted. The coordinator may have been told that there was nothing, and
// have decided a no-op with that.
func (r *replica) holding(owner protocol.ID, x numbered) int {
	n := 0
	for _, id := range r.group {
		if h := r.peers[id].holds[owner]; h.Count >= x.number && x.Slot > h.Revoked {
			n++
		}
	}
	return n
}

// know notes that a part of a track is decided, by whatever way.
func (r *replica) know(c closeSlots) {
	l := &r.learner
	if c.High <= l.executed {
		return
	}
	for _, i := range c.Items {
		if i.Slot > l.executed {
			l.decide(i)
		}
		if c.Track == control && i.Slot > l.executed && (l.change == 0 || i.Slot < l.change) {
			l.change = i.Slot
		}
	}
	o := l.track(c.Track)
	if c.High <= o.w {
		return
	}
	at, _ := slices.BinarySearchFunc(o.known, c.Low, func(k closeSlots, s smr.Slot) int { return cmp.Compare(k.Low, s) })
	o.known = slices.Insert(o.known, at, closeSlots{Track: c.Track, Low: c.Low, High: c.High})
}

package domino

import (
	"cmp"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// phase is how far a replica is with coordinating.
type phase uint8

const (
	following phase = iota
	preparing       // has asked for promises
	leading
)

// coordinator is what a replica needs to coordinate, or to try. Nothing of it is on disk: what the
// next coordinator has to know, the acceptors have.
type coordinator struct {
	phase    phase
	ballot   kit.Ballot
	above    kit.Ballot // the highest ballot heard of; the next one is above it
	ticks    int        // since it began to prepare
	waiting  bool       // the campaign timer is set
	hold     int        // ticks for which this replica leaves others alone to become the coordinator
	promises map[protocol.ID]*promised
	sent     stream[closeSlots]
	flows    map[protocol.ID]*flow
	busy     map[trackID]uint64 // number of each track's last decision, until that is learned
	again1   uint64             // number of the last decision of an earlier ballot that is made again
	revoking map[protocol.ID]*revocation
	changes  []kit.Entry // of the members, that clients ask for
	joiner   protocol.ID // the joining replica that has asked last for what was executed
	joined   smr.Slot    // the slot after which it asked
}

// promised is an acceptor's promise, as far as its messages have come. It counts when it is whole:
// a part that is missing may be of what an earlier ballot has decided.
type promised struct {
	executed smr.Slot
	got      map[uint64]bool
	count    uint64
	parts    []part
}

func (p *promised) whole() bool { return p != nil && uint64(len(p.got)) == p.count }

// tickCoordinator looks whether there is a coordinator, and does what one has to do now and then.
//
// A coordinator that hears less than a majority steps down, as nothing it proposes can be decided.
// If it is the one that was cut off, the others have elected another by the time it is back.
func (r *replica) tickCoordinator(env *protocol.Env[smr.Message]) {
	c := &r.coord
	switch c.phase {
	case following:
		c.hold = max(0, c.hold-1)
		if r.leader() == 0 && c.hold == 0 && r.countAlive() >= r.rule.classic {
			r.campaignSoon(env)
		}
	case preparing:
		if c.ticks++; c.ticks > candidateFor {
			r.stepDown()
		} else if c.ticks%2 == 0 {
			r.sendPrepare(env)
		}
	case leading:
		if r.countAlive() < r.rule.classic {
			r.stepDown()
			return
		}
		r.tickTracks(env)
		r.tickFlows(env)
	}
}

// campaignSoon tries to coordinate after a random time, so that not all try at once.
func (r *replica) campaignSoon(env *protocol.Env[smr.Message]) {
	if c := &r.coord; !c.waiting {
		c.waiting = true
		env.After(r.Tempo.Times(campaignSpan*env.Rand.Float64()), campaignTimer{})
	}
}

// campaign tries to coordinate.
func (r *replica) campaign(env *protocol.Env[smr.Message]) {
	c := &r.coord
	c.waiting = false
	if r.role != member || c.phase != following || r.leader() != 0 || c.hold > 0 {
		return
	}
	r.prepare(env)
}

// prepare begins phase 1, in a ballot above all that this replica has promised, heard of or used. A
// replica that used one ballot twice, with a crash in between, could make two sequences of
// decisions in it. It does not: it leads only when it has promised the ballot itself (maybeLead),
// and its decisions wait for its disk, so none is told before that promise is there.
func (r *replica) prepare(env *protocol.Env[smr.Message]) {
	c := &r.coord
	c.ballot = kit.NewBallot(max(r.acceptor.promised, c.above, c.ballot), r.Cfg.ID)
	c.above = c.ballot
	c.phase, c.ticks, c.promises = preparing, 0, map[protocol.ID]*promised{}
	r.sendPrepare(env)
}

func (r *replica) sendPrepare(env *protocol.Env[smr.Message]) {
	for _, id := range r.group {
		if !r.coord.promises[id].whole() {
			r.Admission.Send(env, id, prepare{Ballot: r.coord.ballot})
		}
	}
}

// stepDown ends coordinating, or trying to. Changes of the members that clients asked for are
// forgotten, so that the desk takes them when they are asked for again: whether one of them will be
// decided is up to the next coordinator.
func (r *replica) stepDown() {
	c := &r.coord
	for _, e := range c.changes {
		r.Desk.Forget(e)
	}
	for _, m := range c.sent.tail {
		for _, i := range m.Items {
			if m.Track == control && i.Answer == r.Cfg.ID {
				r.Desk.Forget(i.Entries[0]) // perhaps nobody has accepted it
			}
		}
	}
	c.phase, c.promises, c.changes = following, nil, nil
	c.sent, c.flows = stream[closeSlots]{}, nil
	clear(c.busy)
	clear(c.revoking)
}

// regroup has a coordinator begin anew among changed members. Its ballot was prepared among the old
// ones, for slots that they decide. All slots above the change are the new ones' to decide.
func (c *coordinator) regroup(env *protocol.Env[smr.Message], r *replica) {
	if c.phase == following {
		return
	}
	changes := c.changes
	c.changes = nil
	r.stepDown()
	c.changes = changes
	r.prepare(env)
}

// onPrepare promises a ballot and tells what coordinators of lower ballots had this acceptor
// accept. It does not tell the votes in ballot 0: they are in the streams, and claims say which of
// them are final.
func (r *replica) onPrepare(env *protocol.Env[smr.Message], from protocol.ID, m prepare) {
	a := &r.acceptor
	if m.Ballot.Owner() != from {
		return
	}
	if m.Ballot < a.promised {
		r.Admission.Send(env, from, refusal{Promised: a.promised})
		return
	}
	// A candidate that was cut off must not depose a coordinator that works. To say nothing is
	// safe: no answer is never a promise. What was promised before is told again.
	if leader := r.leader(); leader != 0 && leader != from && m.Ballot > a.promised {
		return
	}
	if m.Ballot > a.promised {
		a.promise(env, m.Ballot)
		if from != r.Cfg.ID {
			// The candidate gets time to come to lead. Else candidates would overtake each other
			// for ever.
			r.stepDown()
			r.coord.hold = holdTicks
		}
		r.soon(env)
	}
	r.sendPromise(env, from)
}

// sendPromise tells a candidate what was accepted before, in as many messages as it takes. Of what
// was executed the acceptor has forgotten its votes. It says how far that is instead, and the
// candidate has to know it by other means: an empty answer for these slots would be read as no
// vote.
func (r *replica) sendPromise(env *protocol.Env[smr.Message], to protocol.ID) {
	a := &r.acceptor
	m := promise{Ballot: a.promised, Executed: r.learner.executed}
	var all [][]part
	size := kit.MessageBytes
	for _, p := range a.parts(m.Executed) {
		for _, c := range p.pieces() {
			n := 32
			for i := range c.Items {
				n += c.Items[i].sizeBytes()
			}
			if size += n; size > kit.MessageBytes {
				all, size = append(all, nil), n
			}
			all[len(all)-1] = append(all[len(all)-1], part{p.Ballot, c})
		}
	}
	if len(all) == 0 {
		all = append(all, nil)
	}
	m.Count = uint64(len(all))
	for i, parts := range all {
		m.Number, m.Parts = uint64(i), parts
		r.Admission.Send(env, to, m)
	}
}

// onRefusal gives an attempt up: an acceptor has promised a higher ballot and takes nothing in this
// one any more.
func (r *replica) onRefusal(env *protocol.Env[smr.Message], m refusal) {
	c := &r.coord
	if m.Promised <= r.acceptor.promised && m.Promised <= c.ballot {
		return
	}
	c.above = max(c.above, m.Promised)
	if c.phase != following {
		r.stepDown()
		c.hold = 1
	}
}

// onPromise collects the messages of a promise.
func (r *replica) onPromise(env *protocol.Env[smr.Message], from protocol.ID, m promise) {
	c := &r.coord
	if c.phase != preparing || m.Ballot != c.ballot || m.Number >= m.Count {
		return
	}
	// A promise that is told again after the acceptor has executed more is cut into other parts.
	// Parts of the two do not make one.
	p := c.promises[from]
	if p == nil || p.executed != m.Executed || p.count != m.Count {
		p = &promised{executed: m.Executed, count: m.Count, got: map[uint64]bool{}}
		c.promises[from] = p
	}
	if !p.got[m.Number] {
		p.got[m.Number] = true
		p.parts = append(p.parts, m.Parts...)
	}
	r.maybeLead(env)
}

// maybeLead begins to coordinate when a majority has promised, this replica has promised no higher
// ballot, and it has executed all that any of that majority has: of that they tell no votes. It
// first decides again, in its own ballot, what coordinators of lower ballots may have decided. Only
// then does it close anything else (idle waits for again1).
//
// Catching up comes first: an acceptor that has executed all up to 50 tells nothing of these slots.
// A candidate that has executed up to 40 would find no votes for 41 to 50, and decide no-ops where
// commands were executed.
func (r *replica) maybeLead(env *protocol.Env[smr.Message]) {
	c := &r.coord
	if c.phase != preparing {
		return
	}
	count := 0
	var parts []part
	for _, id := range r.group {
		if p := c.promises[id]; p.whole() {
			count++
			parts = append(parts, p.parts...)
			if p.executed > r.learner.executed {
				r.fetch(env, id)
				return
			}
		}
	}
	if count < r.rule.classic || r.acceptor.promised != c.ballot {
		return
	}
	c.phase = leading
	c.sent, c.flows = stream[closeSlots]{through: r.learner.executed}, map[protocol.ID]*flow{}
	clear(c.busy)
	clear(c.revoking)
	for _, id := range r.group {
		c.flows[id] = &flow{Flow: kit.NewFlow[uint64](1)}
	}
	for _, again := range merge(parts, r.learner.executed) {
		for _, piece := range again.pieces() {
			r.decide(env, piece)
		}
	}
	c.again1 = c.sent.last()
	r.tickTracks(env)
	r.soon(env)
}

// merge returns what has to be proposed again, given what acceptors have accepted: for each slot
// what was accepted in the highest ballot. As in Paxos that is the only thing that may have been
// decided in ballots 1 and up. A closeSlots speaks for all slots of its span, for those without an
// item it says no-op, so spans of different ballots are cut where they overlap.
func merge(parts []part, executed smr.Slot) []closeSlots {
	var out []closeSlots
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.Track, b.Track) })
	for len(parts) > 0 {
		n := 1
		for n < len(parts) && parts[n].Track == parts[0].Track {
			n++
		}
		out = append(out, mergeTrack(parts[:n], executed)...)
		parts = parts[n:]
	}
	return out
}

// mergeTrack is merge for one track. It cuts the slots at all ends of spans, so that each piece
// lies within or outside of each span as a whole. Slots that no span covers stay out: no
// coordinator has decided them, but ballot 0 may have.
func mergeTrack(parts []part, executed smr.Slot) []closeSlots {
	bounds := []smr.Slot{}
	for _, p := range parts {
		bounds = append(bounds, max(p.Low, executed), max(p.High, executed))
	}
	slices.Sort(bounds)
	bounds = slices.Compact(bounds)
	var out []closeSlots
	for i := 1; i < len(bounds); i++ {
		low, high := bounds[i-1], bounds[i]
		best := -1
		for k, p := range parts {
			if p.Low <= low && p.High >= high && (best < 0 || p.Ballot > parts[best].Ballot) {
				best = k
			}
		}
		if best < 0 {
			continue
		}
		items := slices.Clone(bySlot(parts[best].Items).within(low, high))
		if n := len(out); n > 0 && out[n-1].High == low {
			out[n-1].High = high
			out[n-1].Items = append(out[n-1].Items, items...)
		} else {
			out = append(out, closeSlots{parts[best].Track, low, high, items})
		}
	}
	return out
}

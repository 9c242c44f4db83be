package domino

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// watched are commands whose client asked to be told when they are ordered: decided, and so that no
// call that begins later can get an earlier slot.
type watched struct {
	slot    smr.Slot
	client  protocol.ID
	session kit.SessionID
	seqs    []kit.Seq
}

// execute applies what is decided up to a slot, in order. It stops behind a change of the members:
// which votes decide the slots that follow depends on it.
func (r *replica) execute(env *protocol.Env[smr.Message], to smr.Slot) {
	l := &r.learner
	before := l.executed
	for r.role == member && len(l.decided) > 0 && l.decided[0].Slot <= to {
		item := l.decided[0]
		l.decided.cut(item.Slot)
		l.executed = item.Slot
		r.apply(env, item)
		if item.Slot == l.change {
			r.writeExecuted(env, before)
			l.findChange()
			r.acceptor.begin(l.executed)
			r.learner.stretch()
			r.changed(env)
			return // what follows is for the new members to decide
		}
	}
	if to > l.executed {
		l.executed = to
	}
	r.writeExecuted(env, before)
	l.stretch()
	r.maybeSnapshot(env)
}

// stretch lets all tracks be decided up to what was executed. A replica that was told what was
// executed, or got a snapshot, has passed slots that it has not seen decided track by track.
func (l *learner) stretch() {
	l.shared.rise(l.executed)
	l.control.rise(l.executed)
	for _, o := range l.owners {
		o.rise(l.executed)
	}
}

// apply executes an item, and answers the clients that the item names this replica to answer.
func (r *replica) apply(env *protocol.Env[smr.Message], item item) {
	l := &r.learner
	l.last = item.Slot
	r.stuck = 0
	r.State.ApplyAll(item.Slot, item.Entries, func(i int, reply kit.Reply) {
		if item.Answer == r.Cfg.ID {
			r.Desk.Applied(env, item.Entries[i], reply)
		}
	})
	r.sinceCut += len(item.Entries)
	r.keep(item)
}

// watch notes that a client wants to know when commands are ordered.
func (r *replica) watch(client protocol.ID, s smr.Slot, m submit) {
	w := watched{slot: s, client: client, session: m.Session}
	for i, c := range m.Commands {
		if m.Acks[i] == smr.AckOrdered {
			w.seqs = append(w.seqs, c.Seq)
		}
	}
	if len(w.seqs) > 0 && len(r.ordered) < r.Cfg.MaxPending {
		r.ordered = append(r.ordered, w)
		r.orderedFrom = min(r.orderedFrom, s)
	}
}

// settled returns the slot up to which no call that begins later can get one. In the shared track
// closers acceptors have passed that slot, so fewer than rule.threshold are left to vote for a new
// command there, and with so few votes neither a supermajority decides for it nor a coordinator. A
// majority that has passed is not enough: with five, the votes of the others can force a
// coordinator (TestAcknowledgedAndOvertaken). In the other tracks the owners have said that they
// propose nothing more up to there. Where all is decided already, nobody need have passed.
func (r *replica) settled() smr.Slot {
	l := &r.learner
	count := max(r.rule.closers(), r.rule.classic)
	s := min(l.limit(), max(l.shared.w, r.closedByAll(count)))
	for _, o := range l.owners {
		s = min(s, max(o.w, r.peers[protocol.ID(o.id)].claims.Skipped))
	}
	return s
}

// fixed reports whether it is decided that a slot is a client's: known as a decision, or by the
// votes of a supermajority in ballot 0, which decide although slots below may be open.
func (r *replica) fixed(w watched) bool {
	l := &r.learner
	is := func(i item) bool {
		return slices.ContainsFunc(i.Entries, func(e kit.Entry) bool {
			return e.Client == w.client && e.Session == w.session && slices.Contains(w.seqs, e.Seq)
		})
	}
	if i, ok := l.decided.get(w.slot); ok {
		return is(i)
	}
	if i, found := l.find(w.slot); found {
		for _, c := range l.contests[i].candidates {
			if c.by.Among(r.group) >= r.rule.command {
				return is(c.item)
			}
		}
	}
	return false
}

// tellOrdered tells clients whose commands are decided, with nothing that begins later to come
// before them. Slots beyond limit wait: the members who have passed them may not be those who
// decide them.
func (r *replica) tellOrdered(env *protocol.Env[smr.Message]) {
	if len(r.ordered) == 0 {
		return
	}
	settled := r.settled()
	if settled < r.orderedFrom {
		return
	}
	defer func() {
		r.orderedFrom = maxSlot
		for _, w := range r.ordered {
			r.orderedFrom = min(r.orderedFrom, w.slot)
		}
	}()
	r.ordered = slices.DeleteFunc(r.ordered, func(w watched) bool {
		switch {
		case w.slot <= r.learner.executed:
			return true // it was told more
		case w.slot > settled || w.slot > r.learner.limit() || !r.fixed(w):
			return false
		}
		env.Send(w.client, ordered{Session: w.session, Slot: w.slot, Seqs: w.seqs})
		return true
	})
}

// latest returns the highest slot in which the replica has accepted something, or executed. A
// command that was acknowledged was accepted by a majority, in whatever way, so in any majority
// some replica's latest is at least its slot. Reads rest on that, and trust no clock.
func (r *replica) latest() smr.Slot { return max(r.acceptor.highest, r.learner.last) }

// reads are queries that wait until everything is executed that was decided before they came: a
// majority says what the highest slot is that it has accepted.
type reads struct {
	round   uint64 // the newest question
	replies quorum.Votes
	mark    smr.Slot
	asking  bool
	ticks   int
	next    []read // wait for the next question
	now     []read // wait for this one
	marked  []read // wait for their marks to be executed
	held    kit.HeldQueries
}

type read struct {
	mark smr.Slot
	// generation is that of the members who were asked. If the members are others when the mark is
	// executed, the new ones may have acknowledged more before the query came, and are asked too.
	generation uint64
	from       protocol.ID
	queries    []kit.Query
}

func (r *replica) onRead(env *protocol.Env[smr.Message], from protocol.ID, m kit.ReadRequest) {
	q := &r.reads
	if !q.held.Take(env, r.Cfg, from, m.Queries) {
		return
	}
	q.next = append(q.next, read{from: from, queries: m.Queries})
	if !q.asking {
		r.startPoll(env)
	}
}

// startPoll asks for all queries that have come by now.
func (r *replica) startPoll(env *protocol.Env[smr.Message]) {
	q := &r.reads
	q.round++
	q.replies.Reset()
	q.mark, q.asking, q.ticks = 0, true, 0
	q.now, q.next = append(q.now, q.next...), nil
	for _, id := range r.group {
		r.Admission.SendAhead(env, id, poll{Round: q.round})
	}
}

func (r *replica) onPolled(env *protocol.Env[smr.Message], from protocol.ID, m polled) {
	q := &r.reads
	if !q.asking || m.Round != q.round || m.Slot > maxSlot {
		return
	}
	q.replies.Add(from)
	q.mark = max(q.mark, m.Slot)
	if q.replies.Among(r.group) < r.rule.classic {
		return
	}
	q.asking = false
	for _, w := range q.now {
		w.mark, w.generation = q.mark, r.State.Generation()
		q.marked = append(q.marked, w)
	}
	if q.now = nil; len(q.next) > 0 {
		r.startPoll(env)
	}
}

// tickReads asks again if there was no answer.
func (r *replica) tickReads(env *protocol.Env[smr.Message]) {
	if q := &r.reads; q.asking {
		if q.ticks++; q.ticks >= resendTicks && r.role == member {
			r.startPoll(env)
		}
	}
}

func (r *replica) answerReads(env *protocol.Env[smr.Message]) {
	q := &r.reads
	if len(q.marked) == 0 {
		return
	}
	q.marked = slices.DeleteFunc(q.marked, func(w read) bool {
		if w.mark > r.learner.executed {
			return false
		}
		if w.generation != r.State.Generation() {
			q.next = append(q.next, w)
			return true
		}
		q.held.Answer(env, r.State, w.from, w.queries)
		return true
	})
	if len(q.next) > 0 && !q.asking {
		r.startPoll(env)
	}
}

package domino

import (
	"slices"

	"github.com/foresay/foresay/protocol"
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
func (r *Replica) execute(env *protocol.Env[smr.Message], to smr.Slot) {
	l := &r.learner
	for r.role == member && len(l.decided) > 0 && l.decided[0].Slot <= to {
		item := l.decided[0]
		l.decided.cut(item.Slot)
		l.executed = item.Slot
		r.apply(env, item)
		if item.Slot == l.change {
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
func (r *Replica) apply(env *protocol.Env[smr.Message], item Item) {
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
func (r *Replica) watch(client protocol.ID, s smr.Slot, m Submit) {
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
func (r *Replica) settled() smr.Slot {
	l := &r.learner
	count := max(r.rule.closers(), r.rule.classic)
	s := min(l.limit(), max(l.shared.w, r.closedByAll(count)))
	for _, o := range l.owners {
		s = min(s, max(o.w, r.peers[protocol.ID(o.id)].claims.Skipped))
	}
	return s
}

// fixed tells whether it is decided that a slot is a client's: known as a decision, or by the votes
// of a supermajority in ballot 0, which decide although slots below may be open.
func (r *Replica) fixed(w watched) bool {
	l := &r.learner
	is := func(i Item) bool {
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
				return is(c.Item)
			}
		}
	}
	return false
}

// tellOrdered tells clients whose commands are decided, with nothing that begins later to come
// before them. Slots beyond limit wait: the members who have passed them may not be those who
// decide them.
func (r *Replica) tellOrdered(env *protocol.Env[smr.Message]) {
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
		env.Send(w.client, Ordered{Session: w.session, Slot: w.slot, Seqs: w.seqs})
		return true
	})
}

// latest returns the highest slot in which the replica has accepted something, or executed. A
// command that was acknowledged was accepted by a majority, in whatever way, so in any majority
// some replica's latest is at least its slot. Reads rest on that, and trust no clock.
func (r *Replica) latest() smr.Slot { return max(r.acceptor.highest, r.learner.last) }

// onRead takes queries. They wait until everything is executed that was decided before they came: a
// majority says what the highest slot is that it has accepted.
func (r *Replica) onRead(env *protocol.Env[smr.Message], from protocol.ID, m kit.ReadRequest) {
	if r.reads.Take(env, r.Cfg, from, m.Queries, 0) && r.reads.Next() {
		r.ask(env)
	}
}

func (r *Replica) ask(env *protocol.Env[smr.Message]) {
	r.asking = 0
	for _, id := range r.group {
		r.Admission.SendAhead(env, id, Ask{Round: r.reads.Round()})
	}
}

func (r *Replica) onLatest(from protocol.ID, m Latest) {
	if m.Slot <= maxSlot {
		r.reads.Heard(from, m.Round, m.Slot)
	}
}

// tickReads asks again if there was no answer.
func (r *Replica) tickReads(env *protocol.Env[smr.Message]) {
	if r.asking++; r.asking >= resendTicks && r.role == member && r.reads.Unanswered() {
		r.ask(env)
	}
}

func (r *Replica) answerReads(env *protocol.Env[smr.Message]) {
	if !r.reads.Waiting() {
		return
	}
	r.reads.AnswerUpTo(env, r.State, r.learner.executed, r.group)
	if r.reads.Next() {
		r.ask(env)
	}
}

package epaxos

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
)

// recovery is what an attempt of a higher ballot knows [EPaxos* §4].
type recovery struct {
	answers []answer
	asked   []protocol.ID // who has answered, when the answers were looked at
	agreed  int           // of these, who have agreed with the proposal at once
	pending []ID
	invalid bool
}

// answer is a Recovered of a replica.
type answer struct {
	by protocol.ID
	Recovered
}

// recover begins to decide an instance in place of its proposer.
func (r *Replica) recover(env *protocol.Env[smr.Message], i *instance) {
	t := &attempt{of: i, ballot: newBallot(max(i.ballot, i.hint), r.cfg.ID), stage: recovering}
	i.try = t
	r.postpone(env, i, t.ballot)
	for _, m := range r.group {
		// The own answer arrives when the promise is on disk.
		r.admission.Send(env, m.ID, Recover{Head: r.head(), ID: i.id, Ballot: t.ballot})
	}
}

// postpone gives an attempt time to come to an end, the more the more there were: disks and
// networks may be slow, and others may try as well.
func (r *Replica) postpone(env *protocol.Env[smr.Message], i *instance, b Ballot) {
	n := attemptTicks << min(uint64(b)>>32-1, maxDoubled)
	i.age, i.due = 0, n+env.Rand.IntN(n)
}

// promise raises an instance's ballot.
func (r *Replica) promise(i *instance, b Ballot) {
	i.ballot = b
	if i.try != nil && i.try.ballot < b {
		i.try = nil
	}
}

// onRecover promises a ballot and tells what was voted.
func (r *Replica) onRecover(env *protocol.Env[smr.Message], from protocol.ID, m Recover) {
	i := r.find(m.ID)
	switch {
	case !owns(from, m.Ballot):
	case i == nil:
		r.admission.SendAhead(env, from, News{Head: r.head(), Top: r.index.top.clone()})
		if p := r.position(m.ID.Row); p >= 0 && m.ID.Index <= r.rows[p].base {
			r.startTransfer(env, from)
		}
	case i.phase == committed:
		r.sendCommit(env, from, i)
	case m.Ballot <= i.ballot:
		r.admission.Send(env, from, Refusal{Head: r.head(), ID: i.id, Promised: i.ballot})
	default:
		r.promise(i, m.Ballot)
		r.postpone(env, i, m.Ballot) // its recoverer gets time
		r.save(env, i, false)
		r.admission.Send(env, from, Recovered{
			Head: r.head(), ID: i.id, Ballot: m.Ballot, Phase: uint8(i.phase), Voted: i.voted, Cmd: i.value(), Init: i.init,
			Deps: i.deps,
		})
	}
}

// onRefusal notes a higher ballot. The next attempt is above it.
func (r *Replica) onRefusal(m Refusal) {
	i := r.find(m.ID)
	if i == nil || i.phase == committed || i.try == nil || m.Promised <= i.try.ballot || m.Promised >= 1<<62 {
		return
	}
	r.stopWaiting(i.try)
	i.hint, i.try = m.Promised, nil
}

// onRecovered collects what a majority knows.
func (r *Replica) onRecovered(env *protocol.Env[smr.Message], from protocol.ID, m Recovered) {
	i := r.find(m.ID)
	if i == nil || i.try == nil || i.try.stage != recovering || i.try.ballot != m.Ballot || len(m.Deps) > 0 &&
		!r.hear(m.Deps) ||
		len(m.Init) > 0 && !r.hear(m.Init) || phase(m.Phase) >= preAccepted &&
		(m.Cmd == nil || !m.Cmd.possible() || len(m.Deps) == 0) || !i.try.votes.Add(from) {
		return
	}
	t := i.try
	t.answers = append(t.answers, answer{from, m})
	if t.votes.Len() >= slowQuorum(len(r.group)) {
		r.chooseFrom(env, t)
	}
}

// chooseFrom decides what the instance may be, by the answers of a majority. What was accepted in
// the highest ballot may have been decided. If nothing was accepted, the proposal may have been
// decided on the fast path: unless its proposer says that it was not, or too few have agreed with
// it.
func (r *Replica) chooseFrom(env *protocol.Env[smr.Message], t *attempt) {
	var best *Recovered
	var candidate *Recovered
	proposer := false
	for k := range t.answers {
		a := &t.answers[k]
		t.asked = append(t.asked, a.by)
		proposer = proposer || a.by == t.of.id.Row
		if phase(a.Phase) == accepted && (best == nil || a.Voted > best.Voted) {
			best = &a.Recovered
		}
		if agrees(phase(a.Phase), a.Init, a.Deps) {
			t.agreed++
			candidate = &a.Recovered
		}
	}
	switch {
	case best != nil:
		r.startAccept(env, t, best.Cmd, best.Deps)
	case proposer, candidate == nil, t.agreed < len(t.asked)-fastSlack(len(r.group)):
		r.chooseNothing(env, t)
	default:
		t.cmd, t.deps, t.stage, t.votes = candidate.Cmd, candidate.Init, validating, quorum.Votes{}
		for _, m := range r.group {
			r.admission.Send(env, m.ID, Validate{Head: r.head(), ID: t.of.id, Ballot: t.ballot, Cmd: t.cmd, Deps: t.deps})
		}
	}
}

func (r *Replica) chooseNothing(env *protocol.Env[smr.Message], t *attempt) {
	r.stopWaiting(t)
	r.startAccept(env, t, &Command{Kind: Nothing}, make(Deps, len(r.group)))
}

// onValidate notes the command, so that what comes later knows that it conflicts, and looks for
// what speaks against it.
func (r *Replica) onValidate(env *protocol.Env[smr.Message], from protocol.ID, m Validate) {
	i := r.find(m.ID)
	switch {
	case i == nil || m.Ballot == 0 || !owns(from, m.Ballot) || m.Cmd.Kind == Nothing || !m.Cmd.possible() ||
		!r.hear(m.Deps):
	case i.phase == committed:
		r.sendCommit(env, from, i)
	case m.Ballot < i.ballot:
		r.admission.Send(env, from, Refusal{Head: r.head(), ID: i.id, Promised: i.ballot})
	default:
		if m.Ballot > i.ballot {
			r.promise(i, m.Ballot)
		}
		nothing := i.nothing
		fresh := r.setCommand(i, m.Cmd)
		i.nothing = nothing
		i.init = m.Deps // as in all copies of the proposal
		r.save(env, i, fresh)
		answer := Validated{Head: r.head(), ID: i.id, Ballot: m.Ballot}
		answer.Invalid, answer.Pending = r.objections(i, r.footprint(m.Cmd), m.Deps)
		r.admission.Send(env, from, answer)
	}
}

// objections returns what speaks against a command having been decided as it was proposed: commands
// that conflict with it while neither depends on the other. Of those up to the newest checkpoint
// only that is looked at: whatever comes after it comes after all of them.
func (r *Replica) objections(i *instance, f footprint, d Deps) (invalid bool, pending []ID) {
	if p := r.position(r.checkpoint.Row); p >= 0 && r.checkpoint.Index > d[p] {
		return true, nil
	}
	for p := range r.rows {
		w := &r.rows[p]
		for x := max(d[p], r.stable[p]) + 1; x <= w.top(); x++ {
			o := w.at(x)
			if o == i || o.cmd == nil || !o.foot.meets(f) {
				continue
			}
			switch {
			case o.phase == committed && (o.nothing || o.deps.has(i)):
			case o.phase == committed:
				return true, nil
			case o.phase != committed && len(o.init) > 0 && !o.init.has(i):
				pending = append(pending, o.id)
			}
		}
	}
	return false, pending
}

// onValidated collects what speaks against the proposal.
func (r *Replica) onValidated(env *protocol.Env[smr.Message], from protocol.ID, m Validated) {
	i := r.find(m.ID)
	if i == nil || i.try == nil || i.try.stage != validating || i.try.ballot != m.Ballot || !i.try.votes.Add(from) {
		return
	}
	t := i.try
	t.invalid = t.invalid || m.Invalid
	for _, id := range m.Pending {
		if r.position(id.Row) >= 0 && !slices.Contains(t.pending, id) {
			t.pending = append(t.pending, id)
		}
	}
	if t.votes.Len() < slowQuorum(len(r.group)) {
		return
	}
	switch {
	case t.invalid || r.excluded(t):
		r.chooseNothing(env, t)
	case len(t.pending) == 0:
		r.startAccept(env, t, t.cmd, t.deps)
	default:
		t.stage = waitingFor
		r.waiting = append(r.waiting, t)
		w := Waiting{Head: r.head(), ID: i.id, Agreed: uint64(t.agreed) + 1}
		r.others(func(id protocol.ID) { r.admission.SendAhead(env, id, w) })
		r.onWaiting(env, w)
	}
}

// excluded tells whether the proposal was not decided on the fast path, as too few have agreed with
// it: the proposer of one that it waits for did not either, and is not among those who were asked.
func (r *Replica) excluded(t *attempt) bool {
	if t.agreed > len(t.asked)-fastSlack(len(r.group)) {
		return false
	}
	return slices.ContainsFunc(t.pending, func(id ID) bool { return !slices.Contains(t.asked, id.Row) })
}

// onWaiting hears that a command's recovery waits. Those that have agreed with that command have
// not agreed with one that waits for it, so if they are too many, that one was not decided on the
// fast path.
func (r *Replica) onWaiting(env *protocol.Env[smr.Message], m Waiting) {
	if o := r.find(m.ID); o != nil {
		o.waits = max(o.waits, m.Agreed)
	}
	for _, t := range slices.Clone(r.waiting) {
		r.maybeGoOn(env, t)
	}
}

// maybeGoOn looks whether what a recovery waits for is decided.
func (r *Replica) maybeGoOn(env *protocol.Env[smr.Message], t *attempt) {
	if t.of.try != t || t.stage != waitingFor {
		r.stopWaiting(t)
		return
	}
	f := r.footprint(t.cmd)
	for k := 0; k < len(t.pending); k++ {
		o := r.find(t.pending[k])
		switch {
		case o != nil && o.phase != committed && o.waits > uint64(fastSlack(len(r.group))),
			o != nil && o.phase == committed && !o.nothing && o.foot.meets(f) && !o.deps.has(t.of) && !t.deps.has(o):
			r.chooseNothing(env, t)
			return
		case o == nil || o.phase != committed:
			continue // one that is forgotten is in a snapshot, and the next attempt learns of it
		}
		t.pending = slices.Delete(t.pending, k, k+1)
		k--
	}
	if len(t.pending) == 0 {
		r.stopWaiting(t)
		r.startAccept(env, t, t.cmd, t.deps)
	}
}

func (r *Replica) stopWaiting(t *attempt) {
	r.waiting = slices.DeleteFunc(r.waiting, func(o *attempt) bool { return o == t })
}

package epaxos

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// recovery is what an attempt of a higher ballot knows [EPaxos* §4]. An instance whose proposer has
// fallen silent may have been decided without anybody else knowing it. The slow path leaves votes,
// which a majority finds, as in Paxos. The fast path leaves only agreement with the proposal, and
// of n-e replicas that agreed a majority may hold as few as one. So recovery counts who agreed, and
// if the proposal may have been decided it looks for conflicting commands that would prove that it
// was not. DESIGN.md, "Recovery", numbers the steps.
type recovery struct {
	answers []answer
	asked   []protocol.ID // Q: the majority whose answers chooseFrom looked at
	agreed  int           // |R|: how many of these agreed with the proposal at once
	pending []instanceID  // undecided conflicting commands, which may prove it yet
	invalid bool          // a decided command has proved it
}

// answer is a Recovered of a replica.
type answer struct {
	by protocol.ID
	recovered
}

// recover begins to decide an instance in place of its proposer. The ballot is above all that this
// replica has heard of: a lower one would be refused.
func (r *replica) recover(env *protocol.Env[smr.Message], i *instance) {
	t := &attempt{of: i, ballot: kit.NewBallot(max(i.ballot, i.hint), r.Cfg.ID), stage: recovering}
	i.try = t
	r.postpone(env, i, t.ballot)
	for _, m := range r.group {
		// The own answer arrives when the promise is on disk.
		r.Admission.Send(env, m.ID, recover{head: r.head(), ID: i.id, Ballot: t.ballot})
	}
}

// postpone gives an attempt time to come to an end, twice as much with each round of ballots. If
// disks or networks are slow, or several replicas try, attempts at a fixed pace would overtake each
// other for ever.
func (r *replica) postpone(env *protocol.Env[smr.Message], i *instance, b kit.Ballot) {
	n := attemptBeats << min(uint64(b)>>32-1, maxDoubled)
	i.age, i.due = 0, n+env.Rand.IntN(n)
}

// promise raises an instance's ballot. It leaves voted alone: a promise is no vote. An attempt of
// this replica's own in a lower ballot ends, since this replica would not vote in it.
//
// If there were one ballot for both, an acceptor that accepted x in ballot 1 and then promised
// ballot 3 to a recoverer that died would report x as accepted in 3. A later recoverer would prefer
// it to y, which a majority accepted in ballot 2: y was decided, and x is decided after it.
func (r *replica) promise(i *instance, b kit.Ballot) {
	i.ballot = b
	if i.try != nil && i.try.ballot < b {
		i.try = nil
	}
}

// onRecover promises a ballot and tells this replica's vote, or that it has none. With the promise
// it gives up ballot 0: it agrees to nothing there any more, so who is in R cannot change behind
// the recoverer's back.
func (r *replica) onRecover(env *protocol.Env[smr.Message], from protocol.ID, m recover) {
	i := r.find(m.ID)
	switch {
	case !owns(from, m.Ballot):
	case i == nil:
		// It was decided and forgotten here, and then a snapshot has it; or it is too far ahead.
		r.Admission.SendAhead(env, from, news{head: r.head(), Top: r.index.top.clone()})
		if p := r.position(m.ID.Row); p >= 0 && m.ID.Index <= r.rows[p].base {
			r.startTransfer(env, from)
		}
	case i.phase == phaseCommitted:
		r.sendCommit(env, from, i)
	case m.Ballot <= i.ballot:
		// Refused if equal too: each attempt has a ballot of its own, so this is a copy of a
		// message, or an attempt that its owner has forgotten in a crash and begins again.
		r.Admission.Send(env, from, refusal{head: r.head(), ID: i.id, Promised: i.ballot})
	default:
		r.promise(i, m.Ballot)
		r.postpone(env, i, m.Ballot) // its recoverer gets time
		// Promise and answer are on disk before they are told: a crash must not take the promise
		// back and let this replica agree in ballot 0 after all.
		r.save(env, i, false)
		r.Admission.Send(env, from, recovered{
			head: r.head(), ID: i.id, Ballot: m.Ballot, Phase: uint8(i.phase), Voted: i.voted, Cmd: i.value(), Init: i.init,
			Deps: i.deps,
		})
	}
}

// onRefusal notes a higher ballot, and gives the attempt up; the next one is above it. The ballot
// is kept as a hint, not promised: the replica would refuse it to its owner. Ballots near the end
// of the range are noise: nobody could go above them.
func (r *replica) onRefusal(m refusal) {
	i := r.find(m.ID)
	if i == nil || i.phase == phaseCommitted || i.try == nil || m.Promised <= i.try.ballot || m.Promised >= 1<<62 {
		return
	}
	r.stopWaiting(i.try)
	i.hint, i.try = m.Promised, nil
}

// onRecovered collects what a majority knows. An answer counts
//   - for the attempt under way and in its ballot only: promises of different ballots are no
//     majority. A decision made meanwhile, by a Commit, has ended the attempt;
//   - if its dependencies are within bounds and, where there is a vote, it has a command and
//     dependencies: chooseFrom proposes them as they are. Right acceptors send no others;
//   - once for each acceptor: |R| is compared with |Q|.
func (r *replica) onRecovered(env *protocol.Env[smr.Message], from protocol.ID, m recovered) {
	i := r.find(m.ID)
	if i == nil || i.try == nil || i.try.stage != recovering || i.try.ballot != m.Ballot || len(m.Deps) > 0 &&
		!r.hear(m.Deps) ||
		len(m.Init) > 0 && !r.hear(m.Init) || phase(m.Phase) >= phasePreAccepted &&
		(m.Cmd == nil || !m.Cmd.possible() || len(m.Deps) == 0) || !i.try.votes.Add(from) {
		return
	}
	t := i.try
	t.answers = append(t.answers, answer{from, m})
	if t.votes.Len() >= slowQuorum(len(r.group)) {
		r.chooseFrom(env, t)
	}
}

// chooseFrom finds what may have been decided, given the answers of a majority Q.
//
// Accepted: what was accepted in the highest ballot may have been decided, and nothing else can
// have been, as in Paxos. A vote on the slow path excludes a decision on the fast one: a proposer
// takes one path only, and a recoverer votes only after it has excluded the fast path or has found
// that its decision would be the same.
//
// Otherwise only the fast path is left, and only for the proposal as it was made. It was not taken
// in these cases, and nothing is accepted in place of the command, which its proposer proposes
// again:
//   - The proposer is in Q. Had it decided, it would have answered with the Commit, after a crash
//     too, as a fast decision is on its disk before anybody is told. It has promised a higher
//     ballot and decides on the fast path no more.
//   - Too few of Q agreed. n-e replicas have to agree, so at most e of Q did not.
//
// Else it may have been taken, and the proposal is validated.
func (r *replica) chooseFrom(env *protocol.Env[smr.Message], t *attempt) {
	var best *recovered
	var candidate *recovered
	proposer := false
	for k := range t.answers {
		a := &t.answers[k]
		t.asked = append(t.asked, a.by)
		proposer = proposer || a.by == t.of.id.Row
		if phase(a.Phase) == phaseAccepted && (best == nil || a.Voted > best.Voted) {
			best = &a.recovered
		}
		if agrees(phase(a.Phase), a.Init, a.Deps) {
			t.agreed++
			candidate = &a.recovered
		}
	}
	switch {
	case best != nil:
		r.startAccept(env, t, best.Cmd, best.Deps)
	case proposer, candidate == nil, t.agreed < len(t.asked)-fastSlack(len(r.group)):
		r.chooseNothing(env, t)
	// Any of those that agreed will do: all copies of a proposal are the same, since an ID is never
	// given to a second command.
	default:
		t.cmd, t.deps, t.stage, t.votes = candidate.Cmd, candidate.Init, validating, quorum.Votes{}
		for _, m := range r.group {
			r.Admission.Send(env, m.ID, validate{head: r.head(), ID: t.of.id, Ballot: t.ballot, Cmd: t.cmd, Deps: t.deps})
		}
	}
}

// chooseNothing has nothing accepted in place of a command that was not decided. Nothing conflicts
// with nothing, so it needs no dependencies.
func (r *replica) chooseNothing(env *protocol.Env[smr.Message], t *attempt) {
	r.stopWaiting(t)
	r.startAccept(env, t, &command{Kind: nothing}, make(deps, len(r.group)))
}

// onValidate notes the proposal and looks for what speaks against it. Both have to be done in one
// step. A conflicting command that is decided later was seen by a majority, which has a member in
// common with the majority that validates. If that member had noted this proposal before, the other
// command depends on it; if not, the other command was there already, and is among the objections.
//
// Were the look and the note two steps, a conflicting PreAccept could arrive between them. The look
// would have missed it, and its answer would not mention the proposal, which is not noted yet. Both
// commands could then be decided with neither depending on the other.
func (r *replica) onValidate(env *protocol.Env[smr.Message], from protocol.ID, m validate) {
	i := r.find(m.ID)
	switch {
	case i == nil || m.Ballot == 0 || !owns(from, m.Ballot) || m.Cmd.Kind == nothing || !m.Cmd.possible() ||
		!r.hear(m.Deps):
	case i.phase == phaseCommitted:
		r.sendCommit(env, from, i)
	case m.Ballot < i.ballot:
		r.Admission.Send(env, from, refusal{head: r.head(), ID: i.id, Promised: i.ballot})
	default:
		if m.Ballot > i.ballot {
			r.promise(i, m.Ballot)
		}
		// To note it is not to accept it. If this replica has accepted nothing in a lower ballot,
		// that stays its vote.
		nothing := i.nothing
		fresh := r.setCommand(i, m.Cmd)
		i.nothing = nothing
		i.init = m.Deps       // as in all copies of the proposal
		r.save(env, i, fresh) // a note that a crash could undo would let a later command miss this one
		answer := validated{head: r.head(), ID: i.id, Ballot: m.Ballot}
		answer.Invalid, answer.Pending = r.objections(i, r.footprint(m.Cmd), m.Deps)
		r.Admission.Send(env, from, answer)
	}
}

// objections returns what speaks against an instance having been decided as it was proposed:
// commands that conflict with it while neither depends on the other. Replicas might execute two
// such commands in different orders, so they are never both decided.
//
// A decided one proves that the proposal was not decided. One that is not decided may prove it yet,
// unless it depends on the instance already by its proposal: it is decided with those dependencies
// or more, or is nothing. If its proposal is not known here, this replica has neither pre-accepted
// nor validated it; the majority that did has a member among those who validate.
//
// Commands up to the newest checkpoint may be forgotten, and the checkpoint stands for them: it
// conflicts with everything, and whatever comes after it comes after all of them. It was executed
// here, so all that it depends on is decided, and this instance is not.
func (r *replica) objections(i *instance, f footprint, d deps) (invalid bool, pending []instanceID) {
	if p := r.position(r.checkpoint.Row); p >= 0 && r.checkpoint.Index > d[p] {
		return true, nil
	}
	for p := range r.rows {
		w := &r.rows[p]
		// The proposal depends on everything up to d[p], so it is in order with that whatever
		// becomes of it.
		for x := max(d[p], r.stable[p]) + 1; x <= w.top(); x++ {
			o := w.at(x)
			if o == i || o.cmd == nil || !o.foot.meets(f) {
				continue
			}
			switch {
			case o.phase == phaseCommitted && (o.nothing || o.deps.has(i)): // no conflict, or they are in order
			case o.phase == phaseCommitted:
				return true, nil
			case o.phase != phaseCommitted && len(o.init) > 0 && !o.init.has(i):
				pending = append(pending, o.id)
			}
		}
	}
	return false, pending
}

// onValidated collects what speaks against the proposal. If nothing does at a majority, it is safe
// to accept it, whether it was decided or not: they have noted it, so what conflicts and is decided
// from now on depends on it. If conflicting commands are undecided, their decisions are waited for;
// others are told, as two recoveries may wait for each other (onWaiting).
func (r *replica) onValidated(env *protocol.Env[smr.Message], from protocol.ID, m validated) {
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
		// One more than were counted: the proposer agreed with itself, and is not in Q.
		w := waiting{head: r.head(), ID: i.id, Agreed: uint64(t.agreed) + 1}
		r.others(func(id protocol.ID) { r.Admission.SendAhead(env, id, w) })
		r.onWaiting(env, w)
	}
}

// excluded reports whether one replica more than those asked cannot have agreed, which makes too
// few for the fast path. With |R| = |Q|-e all replicas outside Q must have agreed with the
// proposal. The proposer of a pending command did not: it proposed that command without knowing
// this one, so it has answered this one, if at all, with that command added to its dependencies.
func (r *replica) excluded(t *attempt) bool {
	if t.agreed > len(t.asked)-fastSlack(len(r.group)) {
		return false
	}
	return slices.ContainsFunc(t.pending, func(id instanceID) bool { return !slices.Contains(t.asked, id.Row) })
}

// onWaiting hears that a command's recovery waits, and how many replicas agreed with that command
// at least, its proposer included. Without this, recoveries of conflicting commands could wait for
// each other for ever. A replica agrees with one of two commands that conflict, if neither was
// proposed with the other as a dependency: to the second it adds the first. So if more than e
// agreed with that command, a command that waits for it had fewer than n-e, and was not decided on
// the fast path.
func (r *replica) onWaiting(env *protocol.Env[smr.Message], m waiting) {
	if o := r.find(m.ID); o != nil {
		o.waits = max(o.waits, m.Agreed)
	}
	for _, t := range slices.Clone(r.waiting) {
		r.maybeGoOn(env, t)
	}
}

// maybeGoOn looks whether what a recovery waits for is decided, and how.
func (r *replica) maybeGoOn(env *protocol.Env[smr.Message], t *attempt) {
	if t.of.try != t || t.stage != waitingFor {
		r.stopWaiting(t)
		return
	}
	f := r.footprint(t.cmd)
	for k := 0; k < len(t.pending); k++ {
		o := r.find(t.pending[k])
		switch {
		case o != nil && o.phase != phaseCommitted && o.waits > uint64(fastSlack(len(r.group))),
			o != nil && o.phase == phaseCommitted && !o.nothing && o.foot.meets(f) && !o.deps.has(t.of) && !t.deps.has(o):
			// It was too popular for this one to be decided fast, or it was decided and neither
			// depends on the other.
			r.chooseNothing(env, t)
			return
		case o == nil || o.phase != phaseCommitted:
			continue // one that is forgotten is in a snapshot, and the next attempt learns of it
		}
		// Decided as nothing, or in order with this one: it speaks against nothing any more.
		t.pending = slices.Delete(t.pending, k, k+1)
		k--
	}
	// All conflicts have turned out to be in order with the proposal, and those yet to be decided
	// will be, as a majority has noted it.
	if len(t.pending) == 0 {
		r.stopWaiting(t)
		r.startAccept(env, t, t.cmd, t.deps)
	}
}

func (r *replica) stopWaiting(t *attempt) {
	r.waiting = slices.DeleteFunc(r.waiting, func(o *attempt) bool { return o == t })
}

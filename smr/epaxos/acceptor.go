package epaxos

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// onPreAccept adds to a proposal's dependencies what this replica knows to conflict [EPaxos §4.3].
// Of two conflicting commands that majorities pre-accept, some replica sees both, and adds the
// first to the dependencies of the second.
//
// Dependencies are looked up and the command is noted in one step, and both are on disk before the
// answer leaves. If the note were lost in a crash, a conflicting command that is proposed
// afterwards would not hear of this one; and if this one had been decided by then, nobody would
// order the two.
func (r *replica) onPreAccept(env *protocol.Env[smr.Message], from protocol.ID, m preAccept) {
	if from != m.ID.Row || from == r.Cfg.ID || m.Cmd != nil && m.Cmd.Kind == nothing || !m.Cmd.possible() ||
		!r.hear(m.Deps) {
		return
	}
	i := r.find(m.ID)
	switch {
	case i == nil:
	case i.phase == phaseCommitted:
		r.sendCommit(env, from, i)
	case i.ballot != 0 || i.voted != 0 || i.phase == phaseAccepted:
		// Whoever has promised a recoverer agrees to nothing in ballot 0: it has been counted.
		r.Admission.Send(env, from, refusal{head: r.head(), ID: i.id, Promised: i.ballot})
	case i.phase == phasePreAccepted:
		// The same answer as before. Dependencies that were told are a vote, and a recoverer may
		// count on them, so conflicts that have come up since are not added.
		r.Admission.Send(env, from, preAccepted{head: r.head(), ID: i.id, Deps: i.deps, Fenced: r.fenced(i, i.init)})
	case m.Cmd == nil && i.cmd == nil:
		r.Admission.SendAhead(env, from, lacking{head: r.head(), ID: i.id})
	default:
		if m.Cmd == nil {
			m.Cmd = i.cmd
		}
		i.init = m.Deps // as in all copies of the proposal
		i.deps = r.index.conflicts(r.footprint(m.Cmd))
		// Later instances of its own row may be known already: it must not depend on itself. The
		// proposer knows its own earlier ones, so nothing is lost by it.
		i.deps[i.row] = min(i.deps[i.row], i.id.Index-1)
		i.deps.join(m.Deps)
		fenced := r.fenced(i, m.Deps)
		i.phase = phasePreAccepted
		r.setCommand(i, m.Cmd)
		r.save(env, i, true)
		r.Admission.Send(env, from, preAccepted{head: r.head(), ID: i.id, Deps: i.deps, Fenced: fenced})
	}
}

// onAccept accepts what was chosen in a ballot. As in Paxos, a higher ballot needs no promise
// before, and a lower one is refused. In ballot 0 only the proposer may choose.
//
// To accept counts as knowing the command: commands that conflict and are pre-accepted here later
// depend on it. In that, members of a majority that accepts are as good as those that pre-accepted.
func (r *replica) onAccept(env *protocol.Env[smr.Message], from protocol.ID, m accept) {
	i := r.find(m.ID)
	switch {
	case i == nil || from == r.Cfg.ID || !owns(from, m.Ballot) || !m.Cmd.possible() || !r.hear(m.Deps) || m.Ballot == 0 &&
		from != m.ID.Row:
	case i.phase == phaseCommitted:
		r.sendCommit(env, from, i)
	case m.Ballot < i.ballot:
		r.Admission.Send(env, from, refusal{head: r.head(), ID: i.id, Promised: i.ballot})
	case m.Cmd == nil && i.cmd == nil:
		r.Admission.SendAhead(env, from, lacking{head: r.head(), ID: i.id})
	default:
		if m.Cmd == nil {
			m.Cmd = i.cmd
		}
		i.ballot, i.voted, i.phase, i.deps, i.try = m.Ballot, m.Ballot, phaseAccepted, m.Deps, nil
		r.save(env, i, r.setCommand(i, m.Cmd))
		r.Admission.Send(env, from, accepted{head: r.head(), ID: i.id, Ballot: m.Ballot})
	}
}

// onCommit learns what was decided, whoever tells. It is written down, so that this replica answers
// with it when it is asked to recover the instance.
//
// No ballot is compared, as there is only one decision. It ends an attempt of this replica's own,
// which could come to nothing else.
func (r *replica) onCommit(env *protocol.Env[smr.Message], from protocol.ID, m commit) {
	i := r.find(m.ID)
	switch {
	case i == nil || i.phase == phaseCommitted || !m.Cmd.possible() || !r.hear(m.Deps):
		return
	case m.Cmd == nil && i.cmd == nil:
		r.Admission.SendAhead(env, from, lacking{head: r.head(), ID: i.id})
		return
	case m.Cmd == nil:
		m.Cmd = i.cmd
	}
	i.phase, i.deps, i.try = phaseCommitted, m.Deps, nil
	r.save(env, i, r.setCommand(i, m.Cmd))
	r.learn(env, i)
}

// commit returns what tells of a decision. Those who lack the command ask for it.
func (r *replica) commit(i *instance) commit {
	return commit{head: r.head(), ID: i.id, Cmd: i.value().brief(), Deps: i.deps}
}

// sendCommit tells what was decided, once it is on this disk: a proposer must not forget a fast
// decision that it has told.
func (r *replica) sendCommit(env *protocol.Env[smr.Message], to protocol.ID, i *instance) {
	r.Admission.Send(env, to, r.commit(i))
}

// onLacking sends the command of an instance to one that has not got it, with what is to be said of
// the instance now. One that was away lacks many, and asks for all at once when it is told what was
// decided: it gets as many in a round trip as may be under way, and asks for the others again.
func (r *replica) onLacking(env *protocol.Env[smr.Message], from protocol.ID, m lacking) {
	i := r.find(m.ID)
	if i == nil || !r.mayTell(env, from, i) {
		return
	}
	switch {
	case i.phase == phaseCommitted:
		r.Admission.Send(env, from, commit{head: r.head(), ID: i.id, Cmd: i.value(), Deps: i.deps})
	case i.try != nil && i.try.stage == preAccepting:
		r.Admission.Send(env, from, preAccept{head: r.head(), ID: i.id, Cmd: i.cmd, Deps: i.init})
	case i.try != nil && i.try.stage == accepting:
		r.Admission.Send(env, from, accept{head: r.head(), ID: i.id, Ballot: i.try.ballot, Cmd: i.try.cmd, Deps: i.try.deps})
	}
}

// mayTell reports whether a replica may be sent the command of an instance now, and if so counts
// it.
func (r *replica) mayTell(env *protocol.Env[smr.Message], to protocol.ID, i *instance) bool {
	u := r.underway[to]
	if u == nil {
		u = &kit.Underway{}
		r.underway[to] = u
	}
	u.Expire(env.Now, r.Tempo.Times(1))
	if u.Full(r.Cfg.MaxUnderwayBytes) {
		return false
	}
	size := 0
	if i.cmd != nil {
		size = kit.CommandBytes(i.cmd.Entries)
	}
	u.Sent(env.Now, i.id.Index, 1, size)
	return true
}

// learn goes on with an instance that is decided: what it held up is executed, or recovered.
func (r *replica) learn(env *protocol.Env[smr.Message], i *instance) {
	w := &r.rows[i.row]
	for next := w.at(w.known + 1); next != nil && next.decided(); next = w.at(w.known + 1) {
		w.known++
	}
	// Whoever recovered the instance thought that its proposer had failed. It has not, and its
	// clients still wait here.
	if p := r.mine[i.id]; p != nil && i.nothing {
		delete(r.mine, i.id)
		r.again(env, p)
	}
	r.woken = append(r.woken, i)
	r.woken = append(r.woken, i.waiters...)
	i.waiters = nil
	r.execute(env)
	// A copy, as recoveries that need not wait any longer leave the list.
	for _, t := range slices.Clone(r.waiting) {
		r.maybeGoOn(env, t)
	}
}

// again proposes anew what another replica's recovery has replaced by nothing. Sessions see to it
// that nothing is executed twice.
func (r *replica) again(env *protocol.Env[smr.Message], p *proposal) {
	r.queue = append(r.queue, p.entries...)
	r.reads.queue = append(r.reads.queue, p.reads...)
	r.Soon(env)
}

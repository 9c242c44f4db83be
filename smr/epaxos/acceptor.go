package epaxos

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// onPreAccept adds to a proposal's dependencies what this replica knows to conflict [EPaxos §4.3].
func (r *Replica) onPreAccept(env *protocol.Env[smr.Message], from protocol.ID, m PreAccept) {
	if from != m.ID.Row || from == r.cfg.ID || m.Cmd.Kind == Nothing || !m.Cmd.possible() || !r.hear(m.Deps) {
		return
	}
	i := r.find(m.ID)
	switch {
	case i == nil:
	case i.phase == committed:
		r.sendCommit(env, from, i)
	case i.ballot != 0 || i.voted != 0 || i.phase == accepted:
		env.Send(from, Refusal{Head: r.head(), ID: i.id, Promised: i.ballot})
	case i.phase == preAccepted:
		env.Send(from, PreAccepted{Head: r.head(), ID: i.id, Deps: i.deps, Fenced: r.fenced(i, i.init)})
	default:
		i.init = m.Deps // as in all copies of the proposal
		i.deps = r.index.conflicts(r.footprint(m.Cmd))
		i.deps[i.row] = min(i.deps[i.row], i.id.Index-1)
		i.deps.join(m.Deps)
		fenced := r.fenced(i, m.Deps)
		i.phase = preAccepted
		r.setCommand(i, m.Cmd)
		if r.skip&ruleDurableVote == 0 {
			r.save(env, i, true)
		}
		env.Send(from, PreAccepted{Head: r.head(), ID: i.id, Deps: i.deps, Fenced: fenced})
	}
}

// onAccept accepts what was chosen in a ballot.
func (r *Replica) onAccept(env *protocol.Env[smr.Message], from protocol.ID, m Accept) {
	i := r.find(m.ID)
	switch {
	case i == nil || from == r.cfg.ID || !owns(from, m.Ballot) || !m.Cmd.possible() || !r.hear(m.Deps) || m.Ballot == 0 && from != m.ID.Row:
	case i.phase == committed:
		r.sendCommit(env, from, i)
	case m.Ballot < i.ballot:
		env.Send(from, Refusal{Head: r.head(), ID: i.id, Promised: i.ballot})
	default:
		i.ballot, i.voted, i.phase, i.deps, i.try = m.Ballot, m.Ballot, accepted, m.Deps, nil
		r.save(env, i, r.setCommand(i, m.Cmd))
		env.Send(from, Accepted{Head: r.head(), ID: i.id, Ballot: m.Ballot})
	}
}

// onCommit learns what was decided.
func (r *Replica) onCommit(env *protocol.Env[smr.Message], m Commit) {
	i := r.find(m.ID)
	if i == nil || i.phase == committed || !m.Cmd.possible() || !r.hear(m.Deps) {
		return
	}
	i.phase, i.deps, i.try = committed, m.Deps, nil
	r.save(env, i, r.setCommand(i, m.Cmd))
	r.learn(env, i)
}

// sendCommit tells what was decided, if it may be told.
func (r *Replica) sendCommit(env *protocol.Env[smr.Message], to protocol.ID, i *instance) {
	env.Send(to, Commit{Head: r.head(), ID: i.id, Cmd: i.value(), Deps: i.deps})
}

// learn goes on with an instance that is decided.
func (r *Replica) learn(env *protocol.Env[smr.Message], i *instance) {
	w := &r.rows[i.row]
	for next := w.at(w.known + 1); next != nil && next.decided(); next = w.at(w.known + 1) {
		w.known++
	}
	if p := r.mine[i.id]; p != nil && i.nothing {
		delete(r.mine, i.id)
		r.again(env, p)
	}
	r.woken = append(r.woken, i)
	r.woken = append(r.woken, i.waiters...)
	i.waiters = nil
	r.execute(env)
	for _, t := range slices.Clone(r.waiting) {
		r.maybeGoOn(env, t)
	}
}

// again has proposed what another replica's recovery has kept from being decided.
func (r *Replica) again(env *protocol.Env[smr.Message], p *proposal) {
	r.queue = append(r.queue, p.entries...)
	r.reads.queue = append(r.reads.queue, p.reads...)
	r.soon(env)
}

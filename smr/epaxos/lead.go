package epaxos

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// proposal is an own instance whose clients wait here.
type proposal struct {
	entries []kit.Entry
	reads   []read
	silent  bool // clients are told when it is executed, not before: a change of the members may come first
}

// stage is how far an attempt to decide an instance has come.
type stage uint8

const (
	preAccepting stage = iota + 1 // ballot 0
	accepting
	recovering
	validating
	waitingFor
)

// attempt is what a replica does to have an instance decided, in one ballot.
type attempt struct {
	of     *instance
	ballot kit.Ballot
	stage  stage
	votes  quorum.Votes // of the stage
	cmd    *command
	deps   deps
	// joined is what the slow path decides. Two conflicting commands were each seen by a majority,
	// so one acceptor at least saw both and put one of them into the dependencies of the other.
	// Taking only some answers of the majority could lose just that one.
	joined deps // of pre-accepts
	equal  int  // pre-accepts that agree with the proposal
	fenced bool
	recovery
}

// propose proposes what is queued.
func (r *replica) propose(env *protocol.Env[smr.Message]) {
	for r.active && len(r.queue) > 0 && len(r.mine) < maxInFlight {
		n := r.batch()
		r.begin(env, &command{Kind: work, Entries: slices.Clone(r.queue[:n])}, &proposal{entries: slices.Clone(r.queue[:n])})
		r.queue = slices.Delete(r.queue, 0, n)
	}
}

// batch returns how many entries go into the next instance: what conflicts with everything goes
// alone.
func (r *replica) batch() int {
	n := 0
	for n < len(r.queue) && n < r.Cfg.MaxBatch && r.queue[n].Kind == kit.Command {
		n++
	}
	return kit.FitEntries(r.queue, max(n, 1))
}

// begin proposes a command in an own instance [EPaxos §4.3].
func (r *replica) begin(env *protocol.Env[smr.Message], c *command, p *proposal) {
	own := r.position(r.Cfg.ID)
	i := r.find(instanceID{r.Cfg.ID, r.rows[own].top() + 1})
	if i == nil {
		r.giveBack(env, p)
		return
	}
	// Above everything that was heard of, and above the slots of what was executed: a client may
	// hold one of those as its token, and expects this command to come later.
	r.stamp = max(r.stamp, uint64(r.State.Applied())) + 1
	c.Stamp = r.stamp
	f := r.footprint(c)
	i.init = r.index.conflicts(f)
	if f.all {
		// The index knows only instances whose command is known. What ends a period depends on the
		// whole of its row, or one number per row could not say what the period contains.
		i.init[own] = i.id.Index - 1
	}
	i.deps, i.phase = i.init, phasePreAccepted
	r.setCommand(i, c)
	r.mine[i.id] = p
	i.due = recoverBeats
	r.save(env, i, true)
	r.startPreAccept(env, i)
}

// startPreAccept asks all for their pre-accepts of an own instance, in ballot 0.
//
// A vote that counted before it is on disk would be forgotten in a crash, and after it this replica
// could answer a recoverer that it knows nothing of the instance.
func (r *replica) startPreAccept(env *protocol.Env[smr.Message], i *instance) {
	i.try = &attempt{of: i, stage: preAccepting, cmd: i.cmd, deps: i.init, joined: i.init.clone()}
	r.sendPreAccepts(env, i, i.cmd)
	// The own vote arrives when it is on disk.
	r.Admission.Send(env, r.Cfg.ID, preAccepted{head: r.head(), ID: i.id, Deps: i.init, Fenced: r.fenced(i, nil)})
}

// sendPreAccepts sends the proposal to those who have not answered, or asks whether they have it,
// without the command. It waits for the disk: after a crash its ID must not be used for another
// command.
func (r *replica) sendPreAccepts(env *protocol.Env[smr.Message], i *instance, c *command) {
	r.others(func(id protocol.ID) {
		if !i.try.votes.Has(id) {
			r.Admission.Send(env, id, preAccept{head: r.head(), ID: i.id, Cmd: c, Deps: i.init})
		}
	})
}

// onPreAccepted counts a pre-accept.
//
// With a higher ballot promised, no answer counts any more. A recoverer has this replica's word
// that the instance was not decided, and may have put nothing in its place. To reach the fast
// quorum with an answer that was late would decide the command after all.
//
// An answer agrees if it equals the proposal. That acceptors agree with each other is not enough:
// the proposal is in every copy of the PreAccept, so a recoverer can tell from one answer alone
// whether its sender agreed. To tell whether answers were alike it would have to see all of them.
func (r *replica) onPreAccepted(env *protocol.Env[smr.Message], from protocol.ID, m preAccepted) {
	i := r.find(m.ID)
	if i == nil || i.try == nil || i.try.stage != preAccepting || i.ballot != 0 || !r.hear(m.Deps) ||
		!i.try.votes.Add(from) {
		return
	}
	t := i.try
	t.joined.join(m.Deps)
	t.fenced = t.fenced || m.Fenced
	if slices.Equal(m.Deps, i.init) {
		t.equal++
	}
	r.maybeChoose(env, t, false)
}

// maybeChoose takes the fast path if enough agree, and the slow one if a majority has answered and
// not all agree, or nobody else answers. It takes one of them only: recovery rests on that. The
// fast path decides the proposal as it was made, which recovery can find again, and not a union of
// answers, which it could not.
//
// Taking both: the proposer has sent Accepts with the union, and one acceptor has accepted it. A
// late answer completes the fast quorum, and the proposer decides the proposal. Then it crashes. A
// recoverer finds the vote and decides the union: two replicas have different dependencies for one
// command, and execute it in different places.
func (r *replica) maybeChoose(env *protocol.Env[smr.Message], t *attempt, late bool) {
	i, n := t.of, len(r.group)
	if p := r.mine[i.id]; p != nil && t.fenced {
		p.silent = true
	}
	switch {
	case t.equal >= fastQuorum(n):
		// Nobody is told, nor is it executed, before it is on this disk: recovery takes the word of
		// a proposer that has not decided.
		i.phase, i.deps, i.settling, i.try = phaseCommitted, i.init, true, nil
		r.save(env, i, false)
		r.Admission.Send(env, r.Cfg.ID, settled{head: r.head(), ID: i.id})
	case t.votes.Len() >= slowQuorum(n) && (late || t.equal < t.votes.Len()):
		r.startAccept(env, t, i.cmd, t.joined)
	}
}

// startAccept has a command accepted in the attempt's ballot.
func (r *replica) startAccept(env *protocol.Env[smr.Message], t *attempt, c *command, d deps) {
	i := t.of
	t.stage, t.votes, t.cmd, t.deps = accepting, quorum.Votes{}, c, d
	fresh := r.setCommand(i, c)
	// The own vote is taken at once, so that no recoverer is told that this replica has none. It
	// counts for the decision only when it comes back from the disk.
	i.phase, i.ballot, i.voted, i.deps = phaseAccepted, t.ballot, t.ballot, d
	r.save(env, i, fresh)
	r.sendAccepts(env, t)
	r.Admission.Send(env, r.Cfg.ID, accepted{head: r.head(), ID: i.id, Ballot: t.ballot})
}

func (r *replica) sendAccepts(env *protocol.Env[smr.Message], t *attempt) {
	r.others(func(id protocol.ID) {
		if !t.votes.Has(id) {
			r.Admission.Send(env, id, accept{head: r.head(), ID: t.of.id, Ballot: t.ballot, Cmd: t.cmd.brief(), Deps: t.deps})
		}
	})
}

// onAccepted counts a vote of phase 2.
//
// Votes of one ballot alone are counted. One vote each in two ballots, for different dependencies,
// is no majority for either.
func (r *replica) onAccepted(env *protocol.Env[smr.Message], from protocol.ID, m accepted) {
	i := r.find(m.ID)
	if i == nil || i.try == nil || i.try.stage != accepting || i.try.ballot != m.Ballot || i.phase == phaseCommitted {
		return
	}
	if i.try.votes.Add(from); i.try.votes.Len() < slowQuorum(len(r.group)) {
		return
	}
	i.phase, i.try = phaseCommitted, nil
	r.save(env, i, false)
	r.settle(env, i, i.ballot == 0)
}

// onSettled goes on with a decision of the fast path that is on disk now.
func (r *replica) onSettled(env *protocol.Env[smr.Message], from protocol.ID, m settled) {
	if i := r.find(m.ID); from == r.Cfg.ID && i != nil && i.settling {
		r.settle(env, i, true)
	}
}

// settle tells of a decision of this replica's. One of the fast path is on its disk by now. One of
// the slow path need not be: the votes for it are on the disks of a majority.
func (r *replica) settle(env *protocol.Env[smr.Message], i *instance, own bool) {
	i.settling = false
	r.others(func(id protocol.ID) {
		r.Admission.SendAhead(env, id, r.commit(i))
	})
	if own && !i.nothing {
		r.acknowledge(env, i)
	}
	r.learn(env, i)
}

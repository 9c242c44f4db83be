package epaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

func (r *replica) nextBeat(env *protocol.Env[smr.Message]) {
	if !r.beating {
		r.beating = true
		env.After(kit.UntilBeat(r.Cfg, env.Now, r.Tempo.Times(0.5)), beatTimer{})
	}
}

// onBeat repeats what was not answered, asks what became of instances that were not heard of for
// long, and recovers those of which nobody knows.
func (r *replica) onBeat(env *protocol.Env[smr.Message]) {
	r.beats++
	for _, id := range r.Transfers.To() {
		r.Transfers.Continue(env, id)
	}
	switch {
	case r.removed:
		if r.Transfers.Len() == 0 {
			return
		}
	case r.ahead != 0 && r.beats%resendBeats == 0:
		r.Admission.SendAhead(env, r.ahead, fetch{head: r.head()})
		r.ahead = 0
	}
	if r.active {
		r.tendInstances(env)
		r.tendReads(env)
		if r.Tempo.Asks() {
			r.others(func(id protocol.ID) { r.Tempo.Ask(env, id) })
		}
		if r.beats%newsBeats == 0 {
			r.others(func(id protocol.ID) { r.Admission.SendAhead(env, id, news{head: r.head(), Top: r.index.top.clone()}) })
		}
	}
	r.nextBeat(env)
}

// tendInstances looks after what is not decided.
func (r *replica) tendInstances(env *protocol.Env[smr.Message]) {
	late, recovers := false, 0
	own := r.position(r.Cfg.ID)
	for p := range r.rows {
		w := &r.rows[p]
		for x := w.known + 1; x <= w.top(); x++ {
			i := w.at(x)
			if i.phase == phaseCommitted {
				continue
			}
			i.age++
			if i.due == 0 {
				i.due = recoverBeats + env.Rand.IntN(recoverSpan)
			}
			// A proposer goes on in ballot 0 as long as nobody has promised a higher one there.
			// After that it recovers its own instance like any other replica: in ballot 0 it gets
			// no majority.
			switch {
			case p == own && i.ballot == 0 && i.hint == 0 && i.phase != phaseUnknown && (i.try == nil || i.try.ballot == 0):
				r.tendOwn(env, i)
			case i.age >= i.due && recovers < maxRecovers:
				recovers++
				r.stopWaiting(i.try)
				r.recover(env, i)
			}
			late = late || i.age >= askBeats
		}
	}
	if late {
		n := len(r.group)
		if to := r.group[int(r.beats)%n].ID; to != r.Cfg.ID {
			r.fetch(env, to)
		}
	}
}

// tendOwn goes on with an own instance in ballot 0, after a restart too. It may ask anew there: the
// proposal and what was accepted are on disk, so it asks for the same, and a fast decision that was
// told would be on disk as well.
func (r *replica) tendOwn(env *protocol.Env[smr.Message], i *instance) {
	switch {
	case i.try == nil && i.phase == phasePreAccepted:
		r.startPreAccept(env, i)
	case i.try == nil:
		i.try = &attempt{of: i, stage: accepting, cmd: i.cmd, deps: i.deps, votes: quorum.Votes{}}
		r.sendAccepts(env, i.try)
		r.Admission.Send(env, r.Cfg.ID, accepted{head: r.head(), ID: i.id})
	case i.age%resendBeats != 0:
	case i.try.stage == preAccepting:
		r.sendPreAccepts(env, i, nil)
		r.maybeChoose(env, i.try, true)
	case i.try.stage == accepting:
		r.sendAccepts(env, i.try)
	}
}

func (r *replica) tendReads(env *protocol.Env[smr.Message]) {
	for _, p := range r.reads.polls {
		if p.age++; p.age%resendBeats == 0 && p.votes.Len() < slowQuorum(len(r.group)) {
			r.others(func(id protocol.ID) { r.Admission.SendAhead(env, id, p.poll) })
		}
	}
}

// fetch asks what was decided of all the instances that are undecided here, before any of them is
// recovered: mostly only a Commit was lost.
func (r *replica) fetch(env *protocol.Env[smr.Message], from protocol.ID) {
	m := fetch{head: r.head()}
	for p := range r.rows {
		w := &r.rows[p]
		for x := w.known + 1; x <= w.top() && len(m.Missing) < maxRanges; x++ {
			if w.at(x).phase == phaseCommitted {
				continue
			}
			if n := len(m.Missing); n > 0 && m.Missing[n-1].Row == r.group[p].ID && m.Missing[n-1].Last == x-1 {
				m.Missing[n-1].Last = x
			} else {
				m.Missing = append(m.Missing, span{r.group[p].ID, x, x})
			}
		}
	}
	if len(m.Missing) > 0 {
		r.Admission.SendAhead(env, from, m)
	}
}

// onFetch sends what is decided, as much as goes in one message's bytes.
func (r *replica) onFetch(env *protocol.Env[smr.Message], from protocol.ID, m fetch) {
	_, member := r.State.Member(from)
	switch {
	case r.generation == 0 || !member && !r.State.Removed(from):
		return
	case m.Generation < r.generation:
		r.startTransfer(env, from)
		return
	case m.Generation > r.generation || !r.active:
		return
	}
	left := kit.MessageBytes
	for _, x := range m.Missing[:min(len(m.Missing), maxRanges)] {
		p := r.position(x.Row)
		if p < 0 {
			continue
		}
		w := &r.rows[p]
		if x.First <= w.base {
			r.startTransfer(env, from)
			return
		}
		for k := x.First; k <= min(x.Last, w.top()); k++ {
			i := w.at(k)
			if !i.decided() {
				continue
			}
			if left -= 64 + 8*len(i.deps); left < 0 {
				return
			}
			r.Admission.SendAhead(env, from, r.commit(i))
		}
	}
}

// startTransfer begins to send a replica the newest snapshot on disk, unless one is on its way. It
// is that of a checkpoint, since replicas' states can be compared only there.
func (r *replica) startTransfer(env *protocol.Env[smr.Message], to protocol.ID) {
	if o := r.Transfers.Of(to); o != nil {
		r.Transfers.Continue(env, to)
		return
	}
	out, ok, err := kit.SendSnapshot(env)
	if !ok || err != nil || out.Slot() == 0 {
		return // it is asked for again
	}
	r.Transfers.Begin(env, to, out)
	r.nextBeat(env)
}

// takes reports whether the replica takes a snapshot: if it is to take part.
func (r *replica) takes(protocol.ID, kit.SnapshotChunk) (has smr.Slot, ok bool) {
	return r.State.Applied(), !r.removed && (r.active || r.generation == 0 || r.Admission.Admitted() || r.Cfg.Join)
}

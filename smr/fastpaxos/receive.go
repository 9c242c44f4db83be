package fastpaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Receive takes a message.
func (r *Replica) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if q, ok := msg.(smr.StatusQuery); ok && from == protocol.App {
		env.Send(protocol.App, r.status(q.ID))
		return
	}
	if from == protocol.App || r.admission.Refused() || r.removed {
		return
	}
	switch m := msg.(type) {
	case kit.Hello:
		r.admission.Hello(env, from, m)
	case kit.Welcome:
		r.admission.Welcome(env, from, m)
	case kit.Ping, kit.Pong:
		r.tempo.Receive(env, from, msg)
	case kit.PartSaved:
		r.state.PartSaved(env, from)
	case kit.Request, kit.OpenRequest, kit.ChangeRequest, kit.ReadRequest, Copy:
		r.onClient(env, from, msg)
	case kit.Letter:
		if r.admission.Genuine(env, from, m.Disk) && !r.gone(env, from, m.Msg) {
			r.onReplica(env, from, m.Msg)
		}
	}
	r.flush(env)
}

// gone tells whether the sender is no member any more; it is told so.
func (r *Replica) gone(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) bool {
	if _, ok := msg.(kit.Removed); ok || !r.state.Removed(from) {
		return false
	}
	r.admission.SendAhead(env, from, kit.Removed{})
	return true
}

// onReplica takes what replicas say to each other.
func (r *Replica) onReplica(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	_, member := r.state.Member(from)
	switch m := msg.(type) {
	case kit.SnapshotChunk:
		r.onChunk(env, from, m)
	case kit.SnapshotWanted:
		r.transfers.OnWanted(env, from, m)
	case Fetch:
		r.onFetch(env, from, m)
	case Commit:
		r.onCommit(env, from, m)
	case Decided:
		r.onDecided(env, m)
	case Beat:
		r.progress.Heard(from, 0, m.Applied)
	case kit.Removed:
		if member {
			r.onRemoved(env)
		}
	}
	if !r.active() || !member {
		return
	}
	switch m := msg.(type) {
	case Prepare:
		r.onPrepare(env, from, m)
		return
	case Promise:
		r.onPromise(env, from, m)
		return
	case Refusal:
		r.onRefusal(env, m)
		return
	case Follows:
		r.onFollows(env, from, m)
		return
	}
	begun, ok := msg.(headed)
	if !ok {
		return
	}
	head := begun.begin()
	if head.Generation != r.state.Generation() {
		return // one of the two does not know who the members are
	}
	switch m := msg.(type) {
	case Voted:
		r.onVoted(env, from, m)
	case Accepted:
		r.onAccepted(env, from, m)
	default:
		r.onCoordinator(env, from, msg, head)
	}
}

// onCoordinator takes what an era's coordinator says to acceptors.
func (r *Replica) onCoordinator(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message, head Head) {
	b, beats := msg.(Beat)
	switch {
	case head.Era == 0 || head.Era.coordinator() != from || beats && !b.Leads:
		return
	case head.Era < r.promised:
		r.admission.SendAhead(env, from, Refusal{r.head(r.promised)})
		return
	case head.Era > r.promised:
		r.adopt(env, head.Era)
	}
	r.silent = 0
	switch m := msg.(type) {
	case Beat:
		r.open, r.openFor = m.Open, m.Generation
	case Suggest:
		for _, e := range m.Entries {
			r.vote(e, 0, true)
		}
	case Close:
		r.onClose(m)
	case Accept:
		r.onAccept(env, from, m)
	case Look:
		r.admission.SendAhead(env, from, Follows{r.head(m.Era), m.Round, r.fastTop})
	}
}

// Expire does what a timer is for.
func (r *Replica) Expire(env *protocol.Env[smr.Message], t protocol.Timer) {
	if r.admission.Refused() || r.removed {
		return
	}
	switch t := t.(type) {
	case kit.AdmissionTimer:
		r.admission.Expire(env)
	case beatTimer:
		r.onTick(env)
	case kit.TransferTimer:
		// one that failed is asked for again
		r.transfers.OnTimer(env, t.To)
	case kit.SaveTimer:
		if to, ok := r.journal.ContinueSave(env, r.cfg, r.state, r.transfers); ok {
			r.cut(env, to)
		}
	}
	r.flush(env)
}

// flush ends a call: it writes and tells votes and decisions, and answers clients.
func (r *Replica) flush(env *protocol.Env[smr.Message]) {
	r.write(env)
	if len(r.voted) > 0 && r.promised != 0 {
		r.admission.Send(env, r.promised.coordinator(), Voted{r.head(r.promised), r.voted})
	}
	for _, b := range r.ballots {
		env.Send(b.client, b.Ballot)
	}
	r.voted, r.ballots = nil, nil
	r.tellDecided(env)
	r.desk.Flush(env)
}

package fastpaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// onOther takes the copy that a client sends to acceptors that are not near it.
func (r *Replica) onOther(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if c, ok := msg.(Copy); ok {
		r.onClient(env, from, c)
	}
}

// onPeer takes what replicas say to each other. A sender that is no member any more is told so.
func (r *Replica) onPeer(env *protocol.Env[smr.Message], from protocol.ID, letter kit.Letter) {
	if r.State.Removed(from) {
		r.Admission.SendAhead(env, from, kit.Removed{})
		return
	}
	msg := letter.Msg
	switch m := msg.(type) {
	case kit.SnapshotChunk:
		r.TakeChunk(env, from, m, r.State.Applied())
	case kit.SnapshotWanted:
		r.Transfers.OnWanted(env, from, m)
	case Fetch:
		r.onFetch(env, from, m)
	case Commit:
		r.onCommit(env, from, m)
	case Decided:
		r.onDecided(env, m)
	case Beat:
		r.progress.Heard(from, 0, m.Applied)
	}
	_, member := r.State.Member(from)
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
	if head.Generation != r.State.Generation() {
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
		r.Admission.SendAhead(env, from, Refusal{r.head(r.promised)})
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
		r.Admission.SendAhead(env, from, Follows{r.head(m.Era), m.Round, r.fastTop})
	}
}

func (r *Replica) onTimer(env *protocol.Env[smr.Message], t protocol.Timer) {
	if _, ok := t.(beatTimer); ok {
		r.onTick(env)
	}
}

// flush ends a call: it writes and tells votes and decisions.
func (r *Replica) flush(env *protocol.Env[smr.Message]) {
	r.write(env)
	if len(r.voted) > 0 && r.promised != 0 {
		r.Admission.Send(env, r.promised.coordinator(), Voted{r.head(r.promised), r.voted})
	}
	for _, b := range r.ballots {
		env.Send(b.client, b.Ballot)
	}
	r.voted, r.ballots = nil, nil
	r.tellDecided(env)
}

package fastpaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// onOther takes the copy that a client sends to acceptors that are not near it.
func (r *replica) onOther(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if c, ok := msg.(requestCopy); ok {
		r.onClient(env, from, c)
	}
}

// onPeer takes what replicas say to each other.
func (r *replica) onPeer(env *protocol.Env[smr.Message], from protocol.ID, letter kit.Letter) {
	msg := letter.Msg
	switch m := msg.(type) {
	case fetch:
		r.onFetch(env, from, m)
	case decided:
		r.onDecided(env, from, m)
	case decidedNames:
		r.onDecidedNames(env, m)
	case beat:
		r.progress.Heard(from, 0, m.Applied)
	}
	_, member := r.State.Member(from)
	if !r.active() || !member {
		return
	}
	switch m := msg.(type) {
	case prepare:
		r.onPrepare(env, from, m)
		return
	case promise:
		r.onPromise(env, from, m)
		return
	case refusal:
		r.onRefusal(env, m)
		return
	case polled:
		r.onPolled(env, from, m)
		return
	}
	begun, ok := msg.(headed)
	if !ok {
		return
	}
	head := begun.begin()
	if head.Generation != r.State.Generation() {
		// One of the two does not know who the members are. A vote that was counted among others would
		// be no quorum's, and how many make a fast quorum depends on their number.
		return
	}
	switch m := msg.(type) {
	case voted:
		r.onVoted(env, from, m)
	case accepted:
		r.onAccepted(env, from, m)
	default:
		r.onCoordinator(env, from, msg, head)
	}
}

// onCoordinator takes what an era's coordinator says to acceptors. An acceptor may take part in an
// era whose phase 1 it missed: then it promises the era here, before it votes in it.
func (r *replica) onCoordinator(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message, head head) {
	b, beats := msg.(beat)
	switch {
	case head.Era == 0 || head.Era.Owner() != from || beats && !b.Leads:
		return
	case head.Era < r.promised:
		r.Admission.SendAhead(env, from, refusal{r.head(r.promised)})
		return
	case head.Era > r.promised:
		r.raise(env, head.Era)
	}
	r.silent = 0
	switch m := msg.(type) {
	case beat:
		r.open, r.openFor = m.Open, m.Generation
	case suggest:
		for _, e := range m.Entries {
			r.vote(e, 0, true)
		}
	case closeSlots:
		r.onClose(m)
	case accept:
		r.onAccept(env, from, m)
	case poll:
		r.Admission.SendAhead(env, from, polled{r.head(m.Era), m.Round, r.fastTop})
	}
}

func (r *replica) onTimer(env *protocol.Env[smr.Message], t protocol.Timer) {
	if _, ok := t.(beatTimer); ok {
		r.onTick(env)
	}
}

// flush ends a call: it writes and tells votes and decisions. Votes are told by Send, after they
// are on disk, to the coordinator and to the client, which counts them itself: a fast quorum of
// votes that crashes could undo would choose nothing.
func (r *replica) flush(env *protocol.Env[smr.Message]) {
	r.write(env)
	if len(r.voted) > 0 && r.promised != 0 {
		r.Admission.Send(env, r.promised.Owner(), voted{r.head(r.promised), r.voted})
	}
	for _, b := range r.casts {
		env.Send(b.client, b.cast)
	}
	r.voted, r.casts = nil, nil
	r.tellDecided(env)
}

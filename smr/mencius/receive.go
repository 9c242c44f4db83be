package mencius

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
	if from == protocol.App || r.admission.Refused() {
		return
	}
	switch msg := msg.(type) {
	case kit.Hello:
		r.admission.Hello(env, from, msg)
	case kit.Welcome:
		r.admission.Welcome(env, from, msg)
	case kit.Ping, kit.Pong:
		r.tempo.Receive(env, from, msg)
	case kit.PartSaved:
		r.state.PartSaved(env, from)
	case kit.Request, kit.OpenRequest, kit.ChangeRequest, kit.ReadRequest:
		r.onClient(env, from, msg)
	case kit.Letter:
		if r.admission.Genuine(env, from, msg.Disk) && !r.gone(env, from, msg.Msg) {
			r.onReplica(env, from, msg.Msg)
		}
	}
	r.flush(env)
}

// gone tells whether the sender is no member any more, in whose epoch nobody is; it is told so.
func (r *Replica) gone(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) bool {
	if _, ok := msg.(kit.Removed); ok || !r.state.Removed(from) || r.epoch.index(from) >= 0 {
		return false
	}
	r.admission.SendAhead(env, from, kit.Removed{})
	return true
}

// onReplica takes what replicas say to each other.
func (r *Replica) onReplica(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	switch m := msg.(type) {
	case kit.SnapshotChunk:
		r.onChunk(env, from, m)
	case kit.SnapshotWanted:
		r.transfers.OnWanted(env, from, m)
	case Beat:
		r.onBeat(env, from, m)
	case Fetch:
		r.onFetch(env, from, m)
	case Decided:
		r.onDecided(env, from, m)
	case kit.Removed:
		if _, member := r.state.Member(from); member {
			r.onRemoved(env)
		}
	}
	member := r.epoch.index(from)
	if !r.active() || member < 0 {
		return
	}
	switch m := msg.(type) {
	case Look:
		r.onLook(env, from, m)
	case Seen:
		r.onSeen(env, from, m)
	}
	about, ok := msg.(placed)
	if !ok {
		return
	}
	place := about.place()
	if place.Epoch != r.epoch.number || int(place.Track) >= len(r.epoch.tracks) {
		return
	}
	l := r.epoch.tracks[place.Track]
	switch m := msg.(type) {
	case Accept:
		r.onAccept(env, l, from, m)
	case Accepted:
		r.onAccepted(env, l, member, m)
	case Missing:
		r.onMissing(env, l, member, m)
	case Refusal:
		r.onRefusal(env, l, m.Ballot)
	case Prepare:
		r.onPrepare(env, l, from, m)
	case Promise:
		r.onPromise(env, l, member, m)
	}
}

// place returns what a message about a track begins with.
func (r *Replica) place(l *track, b Ballot) Place {
	return Place{Epoch: r.epoch.number, Track: l.index, Ballot: b}
}

// Expire does what a timer is for.
func (r *Replica) Expire(env *protocol.Env[smr.Message], t protocol.Timer) {
	if r.admission.Refused() {
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
	case proposeTimer:
		r.waiting, r.proposed = false, env.Now
		r.propose(env)
	}
	r.flush(env)
}

// Broken asks for what a peer may have sent in vain, and tells it again what it may not have heard.
func (r *Replica) Broken(env *protocol.Env[smr.Message], from protocol.ID) {
	member := r.epoch.index(from)
	if r.admission.Refused() || !r.active() || member < 0 {
		return
	}
	for _, l := range r.epoch.tracks {
		switch {
		case l.lead != nil:
			l.lead.underway[member].Forget()
			l.lead.next[member] = min(l.lead.next[member], r.ackedBy(l, member)+1)
			r.pump(env, l, member)
		case l.leader() == from:
			r.admission.SendAhead(env, from, Missing{r.place(l, l.promised), l.matched + 1})
			l.tell = tellAll
		}
	}
	r.flush(env)
}

// flush ends a call: it skips, tells what was accepted, and answers clients.
func (r *Replica) flush(env *protocol.Env[smr.Message]) {
	if r.active() {
		r.skip(env)
		for _, l := range r.epoch.tracks {
			r.tellAccepted(env, l)
		}
	}
	r.write(env)
	r.desk.Flush(env)
}

// tellAccepted tells how far a track is on this replica's disk: its own vote is a message to
// itself.
func (r *Replica) tellAccepted(env *protocol.Env[smr.Message], l *track) {
	m := Accepted{r.place(l, l.promised), l.matched}
	switch {
	case l.tell == tellNobody:
		return
	case l.lead != nil: // the others know it from its Accept
		r.admission.Send(env, r.cfg.ID, m)
	case l.tell == tellLeader:
		r.admission.Send(env, l.leader(), m)
	default:
		for _, id := range r.epoch.members {
			r.admission.Send(env, id, m)
		}
	}
	l.tell = tellNobody
}

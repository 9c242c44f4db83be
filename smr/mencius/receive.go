package mencius

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// onPeer takes what replicas say to each other.
func (r *replica) onPeer(env *protocol.Env[smr.Message], from protocol.ID, letter kit.Letter) {
	msg := letter.Msg
	switch m := msg.(type) {
	case beat:
		r.onBeat(env, from, m)
	case fetch:
		r.onFetch(env, from, m)
	case decided:
		r.onDecided(env, from, m)
	}
	member := r.epoch.index(from)
	if !r.active() || member < 0 {
		return
	}
	switch m := msg.(type) {
	case poll:
		r.onPoll(env, from, m)
	case polled:
		r.onPolled(env, from, m)
	}
	about, ok := msg.(ofTrack)
	if !ok {
		return
	}
	place := about.where()
	if place.Epoch != r.epoch.number || int(place.Track) >= len(r.epoch.tracks) {
		return
	}
	l := r.epoch.tracks[place.Track]
	switch m := msg.(type) {
	case accept:
		r.onAccept(env, l, from, m)
	case accepted:
		r.onAccepted(env, l, member, m)
	case missing:
		r.onMissing(env, l, member, m)
	case refusal:
		r.onRefusal(env, l, m.Ballot)
	case prepare:
		r.onPrepare(env, l, from, m)
	case promise:
		r.onPromise(env, l, member, m)
	}
}

// place returns what a message about a track begins with.
func (r *replica) place(l *track, b kit.Ballot) place {
	return place{Epoch: r.epoch.number, Track: l.index, Ballot: b}
}

func (r *replica) onTimer(env *protocol.Env[smr.Message], t protocol.Timer) {
	if _, ok := t.(beatTimer); ok {
		r.onTick(env)
	}
}

// Broken asks a peer for what may have been lost on the way, and tells it again what it may not
// have heard.
func (r *replica) Broken(env *protocol.Env[smr.Message], from protocol.ID) {
	member := r.epoch.index(from)
	if !r.active() || member < 0 {
		return
	}
	for _, l := range r.epoch.tracks {
		switch {
		case l.lead != nil:
			flow := &l.lead.flows[member]
			flow.Restart(min(flow.Next(), r.ackedBy(l, member)+1))
			r.pump(env, l, member)
		case l.leader() == from:
			r.Admission.SendAhead(env, from, missing{r.place(l, l.promised), l.matched + 1})
			l.tell = tellAll
		}
	}
	r.flush(env)
}

// flush ends a call: it skips, and tells what was accepted.
func (r *replica) flush(env *protocol.Env[smr.Message]) {
	if r.active() {
		r.skip(env)
		for _, l := range r.epoch.tracks {
			r.tellAccepted(env, l)
		}
	}
	r.write(env)
}

// tellAccepted tells how far a track is on this replica's disk: its own vote is a message to
// itself.
func (r *replica) tellAccepted(env *protocol.Env[smr.Message], l *track) {
	m := accepted{r.place(l, l.promised), l.matched}
	switch {
	case l.tell == tellNobody:
		return
	case l.lead != nil: // the others know it from its Accept
		r.Admission.Send(env, r.Cfg.ID, m)
	case l.tell == tellLeader:
		r.Admission.Send(env, l.leader(), m)
	default:
		for _, id := range r.epoch.members {
			r.Admission.Send(env, id, m)
		}
	}
	l.tell = tellNobody
}

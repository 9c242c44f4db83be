package mencius

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// ahead is how many slots beyond the last command the leader of a track that is not its own fills
// with nothing, so that the execution need not wait for it each time.
const ahead = 64

// onClient takes what a client wants.
func (r *replica) onClient(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if !r.active() || !r.Admission.Admitted() {
		env.SendAhead(from, kit.Redirect{})
		return
	}
	switch msg := msg.(type) {
	case kit.ReadRequest:
		r.onRead(env, from, msg)
	case kit.ChangeRequest:
		r.onChange(env, from, msg)
	case kit.Request:
		if msg.After > r.limit() {
			env.SendAhead(from, busy(msg)) // this replica lags behind what the client has seen
			return
		}
		r.above = max(r.above, msg.After)
		r.noteEarly(from, msg)
		r.queue = r.Desk.Take(env, from, msg, r.queue)
	default:
		r.queue = r.Desk.Take(env, from, msg, r.queue)
	}
	r.soon(env)
}

func busy(m kit.Request) kit.Busy {
	b := kit.Busy{Session: m.Session}
	for _, c := range m.Commands {
		b.Seqs = append(b.Seqs, c.Seq)
	}
	return b
}

// soon has what is queued proposed, if there is anything.
func (r *replica) soon(env *protocol.Env[smr.Message]) {
	if len(r.queue) > 0 || r.reads.Due() {
		r.Soon(env)
	}
}

// limit returns the last slot that may be proposed in.
func (r *replica) limit() smr.Slot {
	if r.epoch.last != 0 {
		return r.epoch.last
	}
	return r.State.Applied() + window
}

// propose gives own slots to what is queued, as far as there are any, and asks on behalf of reads.
func (r *replica) propose(env *protocol.Env[smr.Message]) {
	if !r.active() {
		return
	}
	r.startPoll(env)
	l := r.epoch.tracks[r.own]
	if l.lead == nil {
		return // it is taken back first
	}
	r.skip(env) // of the epoch's last slots too: what is queued waits for the next one
	room := r.epoch.upTo(l, r.limit())
	for len(r.queue) > 0 && l.end() < room {
		n := kit.FitEntries(r.queue, int(min(pos(len(r.queue)), pos(r.Cfg.MaxBatch), room-l.end())))
		votes := make([]vote, n)
		for i, e := range r.queue[:n] {
			votes[i] = vote{l.promised, false, e}
			r.mine[l.end()+1+pos(i)] = e
		}
		r.queue = r.queue[n:]
		r.extend(env, l, votes)
	}
	if len(r.queue) == 0 {
		r.queue = nil
	}
}

// extend proposes in the free positions of a track that the replica leads. What it sends waits for
// its own disk, as it will have to know after a crash where it has proposed.
func (r *replica) extend(env *protocol.Env[smr.Message], l *track, votes []vote) {
	r.accept(l, l.end()+1, votes)
	l.matched = l.end()
	l.tell = tellAll
	for i := range r.epoch.members {
		r.pump(env, l, i)
	}
}

// skip promises that nothing will come of the own slots below what they must be above, and fills
// the other tracks that the replica leads.
func (r *replica) skip(env *protocol.Env[smr.Message]) {
	e := r.epoch
	for _, l := range e.tracks {
		if l.lead == nil {
			continue
		}
		nothing, to := vote{l.promised, true, kit.Entry{Kind: kit.NoOp}}, min(r.above, r.limit())
		switch {
		case e.last != 0:
			to = e.last
		case l.owner == r.Cfg.ID:
		case e.upTo(l, r.seen+ahead/2) > l.end():
			to = min(r.seen+ahead, r.limit())
		default:
			continue
		}
		nothing.Skip = l.owner == r.Cfg.ID
		if n := e.upTo(l, to); n > l.end() {
			votes := make([]vote, n-l.end())
			for i := range votes {
				votes[i] = nothing
			}
			r.extend(env, l, votes)
		}
	}
}

// onChange takes a change of the members.
func (r *replica) onChange(env *protocol.Env[smr.Message], from protocol.ID, m kit.ChangeRequest) {
	e := kit.Entry{Kind: kit.ChangeMembers, Client: from, Session: m.Session, Seq: m.Seq}
	if reply, applied := r.State.Seen(e); applied && !reply.Gone && reply.Outcome == smr.Committed && r.epoch.last != 0 {
		r.Desk.Meet(env, m.Change)
		return // it comes into force when the epoch has ended; the client asks again
	}
	r.queue = r.Desk.Change(env, from, m, r.upToDate, r.queue)
}

// upToDate reports whether a replica that waits to be added is in this epoch, and lacks little of
// it.
func (r *replica) upToDate(_ *protocol.Env[smr.Message], id protocol.ID, _ kit.Incarnation) (ok bool, why string) {
	p, heard := r.progress.Of(id)
	return heard && epochNumber(p.Generation) == r.epoch.number && p.Applied+window/4 >= r.State.Applied(), ""
}

package fastpaxos

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// onClient takes what a client wants. Each acceptor votes for its commands, which is what spares
// the way over the coordinator; the coordinator also keeps them until they are executed.
func (r *replica) onClient(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if !r.active() || !r.Admission.Admitted() {
		if _, copied := msg.(requestCopy); !copied {
			env.SendAhead(from, kit.Redirect{})
		}
		return
	}
	c, copied := msg.(requestCopy)
	if copied {
		msg = c.Request
	}
	if req, ok := msg.(kit.Request); ok {
		r.voteAll(from, req)
	}
	switch {
	case r.lead != nil:
		r.take(env, from, msg)
	case !copied:
		env.SendAhead(from, kit.Redirect{Leader: r.coordinator()})
	}
}

func (r *replica) coordinator() smr.Member {
	for _, m := range r.State.Members() {
		if m.ID == r.promised.Owner() && m.ID != r.Cfg.ID && r.silent < patience {
			return m
		}
	}
	return smr.Member{}
}

// voteAll votes for a client's commands, each in the next free slot, but not twice.
func (r *replica) voteAll(from protocol.ID, req kit.Request) {
	if r.open == 0 {
		r.sayClosed(from, req)
		return
	}
	m := cast{head: r.head(r.promised), Need: uint32(r.fastQuorum()), Session: req.Session}
	for _, c := range req.Commands {
		e := kit.Entry{Kind: kit.Command, Client: from, Session: req.Session, Seq: c.Seq, Acked: min(req.Acked, c.Seq),
			Command: c.Command}
		if _, ok := r.ours[wishFor(e)]; ok || r.lead != nil && r.Desk.Waits(e) {
			continue // if it needs votes again, the coordinator says so
		}
		if reply, ok := r.State.Seen(e); ok && !reply.Gone && reply.Outcome != smr.Rejected {
			continue // the coordinator answers
		}
		if s := r.vote(e, req.After, false); s != 0 && c.Early {
			m.Items = append(m.Items, kit.EarlyReply{Seq: c.Seq, Slot: s})
		}
	}
	if len(m.Items) > 0 {
		r.casts = append(r.casts, castFor{from, m})
	}
}

// sayClosed tells a client that its large commands are of no use here.
func (r *replica) sayClosed(from protocol.ID, req kit.Request) {
	if r.lead != nil || !slices.ContainsFunc(req.Commands, func(c kit.RequestedCommand) bool {
		return len(c.Command) >= largeBytes
	}) {
		return
	}
	r.casts = append(r.casts, castFor{from, cast{head: r.head(r.promised), Session: req.Session}})
}

// vote votes for an entry in the next free slot of the fast round, above another slot, and returns
// the slot; 0 if it cannot. One that the coordinator has suggested is voted for however many bytes
// of own votes there are: the coordinator's desk bounds those, and acceptors of which each is full
// with another command would have nothing decided.
func (r *replica) vote(e kit.Entry, after smr.Slot, suggested bool) smr.Slot {
	s := max(max(r.top, after, r.State.Applied())+1, r.open)
	if r.open == 0 || r.openFor != r.State.Generation() || s > r.State.Applied()+window {
		return 0
	}
	if _, again := r.ours[wishFor(e)]; !again && !suggested && r.oursBytes > 0 &&
		r.oursBytes+len(e.Command) > r.Cfg.MaxPendingBytes {
		return 0 // the coordinator has it decided when there is room
	}
	r.accept(vote{Slot: s, Era: r.promised, Entry: e})
	r.fastTop = max(r.fastTop, s)
	r.forgetOwn(wishFor(e))
	r.ours[wishFor(e)] = ownVote{s, len(e.Command)}
	r.oursBytes += len(e.Command)
	r.voted = append(r.voted, item{s, e})
	return s
}

// onClose votes for nothing where the others were ahead, so that a majority has voted there. It is
// a vote like any other, the only one that the replica has in this round of the slot: a client's
// command that comes later gets a slot above. A vote of an earlier era is none in this round, and
// may be replaced: phase 1 of this era has shown that lower ones choose nothing in the slots that
// it opened.
func (r *replica) onClose(m closeSlots) {
	if r.open == 0 || !r.near(m.Slot) {
		return
	}
	for s := max(r.open, r.State.Applied()+1); s <= m.Slot; s++ {
		if c := r.cell(s); !c.decided && (c.vote.Entry.Kind == 0 || c.vote.Era < r.promised) {
			e := kit.Entry{Kind: kit.NoOp}
			r.accept(vote{Slot: s, Era: r.promised, Entry: e})
			r.fastTop = max(r.fastTop, s)
			r.voted = append(r.voted, item{s, e})
		} else if c.vote.Era == r.promised && !c.vote.Classic {
			r.voted = append(r.voted, item{s, c.vote.Entry}) // it may be lost
		}
	}
}

// onAccept accepts what the coordinator has chosen for slots, in the era's classic round. That is
// above the era's fast round, so the replica's fast vote in the slot gives way. The coordinator has
// allowed for that vote, whether it has come or not (choose). Once it has a classic vote it never
// votes in the fast round again: top is at or above the slot, and the next fast vote is above top.
func (r *replica) onAccept(env *protocol.Env[smr.Message], from protocol.ID, m accept) {
	answer := accepted{head: r.head(m.Era)}
	for _, p := range m.Items {
		if p.Slot > r.State.Applied()+2*window {
			continue
		}
		if p.Slot > r.base { // what was forgotten was decided so
			if c := r.cell(p.Slot); c.vote.Era != m.Era || !c.vote.Classic {
				r.accept(vote{Slot: p.Slot, Era: m.Era, Classic: true, Entry: p.Entry})
			}
		}
		answer.Slots = append(answer.Slots, p.Slot)
	}
	if len(answer.Slots) > 0 {
		r.Admission.Send(env, from, answer)
	}
}

// ownVote is a vote for a client's command in a slot that the replica has chosen.
type ownVote struct {
	slot  smr.Slot
	bytes int // of the command
}

func (r *replica) forgetOwn(w wish) {
	r.oursBytes -= r.ours[w].bytes
	delete(r.ours, w)
}

// forgetOurs forgets what the replica has voted for by itself.
func (r *replica) forgetOurs() {
	clear(r.ours)
	r.oursBytes = 0
}

package domino

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// flush proposes what is in the queue and sends all members what they lack, with the claims of this
// moment. What it says waits for the disk: others decide by it, and a restart must not take it
// back.
//
// The order matters. Proposals come first, since a claim says that nothing more is proposed below
// it. The claims come last, and name the stream's length at that moment: whatever is added later is
// of slots above them.
func (r *replica) flush(env *protocol.Env[smr.Message]) {
	if r.role != member {
		return
	}
	r.propose(env)
	a := &r.acceptor
	a.begin(r.learner.executed)
	a.claim(env, r.now(env), smr.Slot(r.Times(lease)))
	news := news{
		Base: a.own.base, Through: a.own.through, Executed: r.learner.executed, Promised: a.promised, Accepted: a.count,
		Leads: r.coord.phase == leading,
	}
	news.claims = claims{Count: a.own.last(), Closed: a.closed, Skipped: a.skipped}
	for _, id := range r.group {
		news.Have = append(news.Have, have{Owner: id, Count: r.peers[id].have, Revoked: a.track(id).revoked})
	}
	for _, id := range r.group {
		p := r.peers[id]
		p.out.Skip(a.own.base)
		m := news
		// Claims are sent in any case: all tracks have to pass a slot before it is executed, so a
		// replica that has nothing to say holds the others up until it says so.
		for m.Items = r.fitting(p); ; m.Items = r.fitting(p) {
			m.First, m.Names = p.out.Next(), nil
			r.name(p, &m)
			if n := len(m.Items); n > 0 {
				p.out.Sent(env.Now, m.First+uint64(n)-1, n, sizeOf(m.Items))
			}
			r.Admission.Send(env, id, m)
			p.told = max(p.told, p.out.Next()-1)
			if len(m.Items) == 0 || p.out.Next() > a.own.last() {
				break
			}
		}
	}
}

// fitting returns the items of the own stream that a member is to be sent in the next message.
func (r *replica) fitting(p *peer) []item {
	if p.out.Full(r.Cfg.MaxUnderwayBytes) {
		return nil
	}
	items := r.acceptor.own.from(p.out.Next())
	n := fit(items)
	return items[:n:n]
}

// onNews takes what a member has to tell.
//
// Messages may be lost, repeated and reordered, so a claim counts only when as much of the stream
// is here as it speaks about. Before, a slot could look empty whose vote was lost on the way, and
// one replica would execute a no-op where others execute the command. A claim that comes too early
// is pending. The newest is enough: it says all that the earlier ones did.
func (r *replica) onNews(env *protocol.Env[smr.Message], p *peer, m news) {
	p.executed = max(p.executed, m.Executed)
	p.leads = m.Leads
	if m.Leads && m.Promised > r.acceptor.promised {
		r.coord.above = max(r.coord.above, m.Promised)
	}
	if m.Base > p.have {
		// What is missing is of slots that the sender has executed. It may be skipped by one who
		// has executed them as well, and by nobody else: their votes would never be counted.
		if r.learner.executed < m.Through {
			r.fetch(env, p.id)
		} else {
			p.have = m.Base
		}
	}
	r.takeItems(env, p, r.whole(env, p, m))
	switch {
	case m.Count <= p.have:
		p.claim(m.claims)
	case m.Count >= p.pending.Count:
		p.pending = m.claims
	}
	if p.pending.Count > 0 && p.pending.Count <= p.have {
		p.claim(p.pending)
		p.pending = claims{}
	}
	for _, h := range m.Have {
		old := p.holds[h.Owner]
		p.holds[h.Owner] = have{h.Owner, max(old.Count, h.Count), max(old.Revoked, h.Revoked)}
		if h.Owner == r.Cfg.ID {
			p.out.acked(h.Count)
			if p.out.Next() <= r.acceptor.own.last() {
				r.soon(env)
			}
			// What is proposed in revoked slots is lost, so the next proposal is above them. The
			// bound is for a peer that says nonsense: a far slot would delay every command.
			r.above = max(r.above, min(h.Revoked, r.now(env)+r.ahead(2*horizon)))
		}
	}
	r.onAccepted(env, p, m)
}

// tickStreams sends again what members have not said that they have.
func (r *replica) tickStreams() {
	for _, id := range r.group {
		r.peers[id].out.tick()
	}
}

// Broken sends again what a member may not have got, as what it sent may be lost too. What it
// claims holds all the same: it says of what part of its stream.
func (r *replica) Broken(env *protocol.Env[smr.Message], from protocol.ID) {
	if p := r.peers[from]; p != nil && r.role == member {
		p.out.rewind()
		r.coord.again(r, p)
		r.soon(env)
	}
}

// takeItems takes the items that follow what is there: without gaps, as have is one number, and the
// sender repeats from there. Votes in the shared track are only counted. What its owner proposes in
// a track is accepted, and on disk before that is told; but not in slots that were revoked. There
// the coordinator has this replica's promise to accept nothing more from the owner, and may have
// decided without it.
func (r *replica) takeItems(env *protocol.Env[smr.Message], p *peer, m news) {
	var fresh []item
	for i, item := range m.Items {
		number := m.First + uint64(i)
		if number != p.have+1 || item.Slot > maxSlot {
			continue
		}
		p.have = number
		if item.Slot <= r.learner.executed {
			continue
		}
		if digitOf(item.Slot) == sharedDigit {
			r.learner.vote(p.id, item)
			continue
		}
		r.learner.track(trackOf(p.id)).add(number, item)
		if p.id != r.Cfg.ID && item.Slot > r.acceptor.track(p.id).revoked {
			fresh = append(fresh, item)
		}
	}
	if len(fresh) > 0 {
		r.acceptor.acceptTrack(env, p.id, fresh)
		r.soon(env) // the owner waits for it
	}
	if r.opt.Direct {
		r.tellPlaced(env, p, m, fresh)
	}
}

// tellPlaced tells clients of commands in a track that are on this replica's disk now [beyond the
// thesis].
func (r *replica) tellPlaced(env *protocol.Env[smr.Message], p *peer, m news, fresh []item) {
	if p.id == r.Cfg.ID { // what comes back is on disk
		fresh = slices.DeleteFunc(slices.Clone(m.Items), func(i item) bool {
			return digitOf(i.Slot) == sharedDigit || i.Slot <= r.acceptor.track(p.id).revoked
		})
	}
	for _, i := range fresh {
		if i.Slot <= r.learner.limit() { // who the members are is known
			r.sendPlaced(env, i, false)
		}
	}
}

// sendPlaced tells the clients of an item's commands where these were proposed.
func (r *replica) sendPlaced(env *protocol.Env[smr.Message], i item, whole bool) {
	for first := 0; first < len(i.Entries); {
		e := i.Entries[first]
		m := placed{Session: e.Session, Slot: i.Slot, Members: uint32(len(r.group)), Whole: whole}
		next := first
		for next < len(i.Entries) && i.Entries[next].Client == e.Client && i.Entries[next].Session == e.Session {
			if i.Entries[next].Kind == kit.Command {
				m.Seqs = append(m.Seqs, i.Entries[next].Seq)
			}
			next++
		}
		if len(m.Seqs) > 0 {
			env.Send(e.Client, m)
		}
		first = next
	}
}

package server

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/specfs"
	"github.com/foresay/foresay/specfs/tree"
)

// tell tells those who rely on leases, and hold what an epoch changes, that it will. It reports
// whether the epoch has to wait for them.
func (s *Server) tell(env *Env, r *request, t *trial) bool {
	parts := t.parts()
	var told []*session
	for _, x := range s.sessions {
		if x == r.from || !x.disk.Leases || x.lapsed {
			continue
		}
		isNews := func(p specfs.Part) bool { return x.holds(p.ID) && !slices.Contains(r.locks, p.ID) }
		if slices.ContainsFunc(parts, isNews) {
			told = append(told, x)
		}
	}
	for _, p := range parts {
		if !slices.Contains(r.locks, p.ID) {
			r.locks = append(r.locks, p.ID)
		}
	}
	if len(told) == 0 {
		return false
	}
	s.notices++
	r.notice, r.parts = s.notices, parts
	env.After(s.patience(), overdue{r.notice})
	for _, x := range told {
		s.counts.Notices++
		r.told = append(r.told, x.client)
		env.Send(x.client, specfs.Notice{Notice: r.notice, Parts: parts})
	}
	return true
}

// onHeard notes that a client does not use any more what an epoch changes. It holds nothing of
// that, but for directories, of which it has forgotten what has changed, and what its programs have
// open.
func (s *Server) onHeard(env *Env, x *session, m specfs.Heard) {
	for _, r := range s.waiting {
		if r.notice != m.Notice || !slices.Contains(r.told, x.client) {
			continue
		}
		for _, id := range r.locks {
			if tree.KindOf(files(env), id) != specfs.Directory && !slices.Contains(m.Open, id) {
				delete(x.held, id)
			}
		}
		s.heard(env, r, x.client)
	}
}

// heard notes that a request does not wait for a client any more.
func (s *Server) heard(env *Env, r *request, client protocol.ID) {
	r.told = slices.DeleteFunc(r.told, func(c protocol.ID) bool { return c == client })
	if len(r.told) == 0 {
		env.Stop(overdue{r.notice})
	}
}

// heardAll notes that nobody has to wait for a client.
func (s *Server) heardAll(env *Env, x *session) {
	for _, r := range s.waiting {
		if slices.Contains(r.told, x.client) {
			s.heard(env, r, x.client)
		}
	}
	x.deaf = false
}

// onRenew lets a lease go on, unless its client has not heard a notice for too long.
func (s *Server) onRenew(env *Env, x *session, m specfs.Renew) {
	if !x.disk.Leases || x.deaf {
		return
	}
	env.Send(x.client, specfs.Renewed{Tag: m.Tag, Generation: s.generation(x)})
	x.lapsed = false
	env.Stop(gone{x.client})
	env.After(s.patience(), lapse{x.client})
}

// onOverdue lets the leases of those run out that have not heard a notice.
func (s *Server) onOverdue(notice uint64) {
	for _, r := range s.waiting {
		if r.notice != notice {
			continue
		}
		for _, client := range r.told {
			s.session(client).deaf = true
		}
	}
}

// lapse notes that a lease is over.
func (s *Server) lapse(env *Env, x *session) {
	s.counts.Lapses++
	x.lapsed = true
	x.lapses++
	s.heardAll(env, x)
	env.After(s.config.Gone, gone{x.client})
}

package server

import (
	"bytes"
	"slices"

	"github.com/foresay/foresay/specfs"
	"github.com/foresay/foresay/specfs/tree"
)

func (s *Server) onFetch(env *Env, x *session, m specfs.Fetch) {
	if len(m.Wants) > specfs.MaxWants {
		s.counts.Rejected++
		return
	}
	x.got(m.News)
	s.add(env, &request{from: x, fetch: &m})
}

// tryFetch answers a Fetch, unless an epoch that waits is about to change what it asks for: else it
// might wait for ever. Who does not rely on leases gets the present state.
func (s *Server) tryFetch(env *Env, r *request, locked []specfs.ID) bool {
	x, m := r.from, r.fetch
	if x.disk.Leases {
		for _, w := range m.Wants {
			if id, _ := tree.Object(w.Lo); slices.Contains(locked, id) {
				return false
			}
		}
	}
	s.counts.Fetches++
	space, answer := files(env), specfs.Fetched{Tag: m.Tag}
	budget := s.config.FetchBytes
	for _, w := range m.Wants {
		if errno := tree.MayFetch(space, s.cred(x, m.Cred), w); errno != specfs.OK {
			env.Send(x.client, specfs.Fetched{Tag: m.Tag, Refused: errno})
			return true
		}
	}
	var ids []specfs.ID
	for _, w := range m.Wants {
		if budget <= 0 && len(answer.Facts) > 0 {
			break // the client asks for the rest
		}
		id, _ := tree.Object(w.Lo)
		if !s.hold(x, id) {
			env.Send(x.client, specfs.Fetched{Tag: m.Tag, Refused: specfs.ENOSPC})
			return true
		}
		ids = append(ids, id)
		f := specfs.Fact{Lo: w.Lo, Hi: w.Hi}
		for k, v := range space.Scan(w.Lo, w.Hi) {
			if len(f.Records) > 0 && budget < len(k)+len(v) {
				f.Hi = bytes.Clone(k)
				break
			}
			budget -= len(k) + len(v)
			f.Records = append(f.Records, specfs.Record{Key: bytes.Clone(k), Value: bytes.Clone(v)})
		}
		answer.Facts = append(answer.Facts, f)
	}
	answer.Changed, answer.News = x.tell(func(id specfs.ID) bool { return slices.Contains(ids, id) })
	env.Send(x.client, answer)
	return true
}

// cred returns who an operation of a client is made by.
func (s *Server) cred(x *session, claimed specfs.Cred) specfs.Cred {
	if x.who.Trusted {
		return claimed
	}
	return x.who.Cred
}

package server

import (
	"fmt"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/specfs"
)

// A request is a Fetch or an Epoch that may have to wait: an epoch for those who hold what it
// changes, and whatever has to do with that for the epoch.
type request struct {
	from  *session
	fetch *specfs.Fetch
	epoch *specfs.Epoch
	// told are the clients that have been told of the change and have not heard it.
	told   []protocol.ID
	notice uint64
	parts  []specfs.Part // that they have been told of
	// locks are the objects that the epoch will change, from when somebody is told.
	locks []specfs.ID
}

// add takes a request in.
func (s *Server) add(env *Env, r *request) {
	if r.from.waits >= s.config.MaxWaiting {
		s.counts.Rejected++
		env.Send(r.from.client, specfs.Unknown{}) // it comes back with what is not answered
		r.from.here = false
		s.forgetWaiting(r.from)
		return
	}
	r.from.waits++
	s.waiting = append(s.waiting, r)
}

// advance carries out what can be.
func (s *Server) advance(env *Env) {
	for again := true; again; {
		again = false
		var locked []specfs.ID
		var behind []*session // whose epochs have to wait for one before them
		for _, r := range slices.Clone(s.waiting) {
			if !slices.Contains(s.waiting, r) {
				continue
			}
			done := false
			switch {
			case r.epoch != nil && slices.Contains(behind, r.from):
			case len(r.told) > 0:
			case r.fetch != nil:
				done = s.tryFetch(env, r, locked)
			default:
				done = s.tryEpoch(env, r, locked)
			}
			if done {
				again = again || len(r.locks) > 0
				s.remove(r)
				continue
			}
			locked = append(locked, r.locks...)
			if r.epoch != nil {
				behind = append(behind, r.from)
			}
		}
	}
}

func (s *Server) remove(r *request) {
	if i := slices.Index(s.waiting, r); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		r.from.waits--
	}
}

// forgetWaiting forgets a client's requests.
func (s *Server) forgetWaiting(x *session) {
	s.waiting = slices.DeleteFunc(s.waiting, func(r *request) bool { return r.from == x })
	x.waits = 0
}

// checkWaiting looks for broken invariants: nobody waits for who is not there, and who waits for
// nobody does not stand first.
func (s *Server) checkWaiting() error {
	for i, r := range s.waiting {
		for _, client := range r.told {
			if s.session(client) == nil {
				return fmt.Errorf("specfs: a request waits for client %d, who is not there", client)
			}
		}
		if i == 0 && len(r.told) == 0 && !s.recovering {
			return fmt.Errorf("specfs: the first request of %d waits for nobody", r.from.client)
		}
	}
	return nil
}

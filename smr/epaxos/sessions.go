package epaxos

import (
	"maps"
	"slices"

	"github.com/foresay/foresay/smr/kit"
)

// sessionAges tells when sessions were used, in a way that is the same on replicas that execute
// commands of different sessions in different orders: by how many sessions had been opened before.
// All replicas know that of each command, as an opening conflicts with everything. A session goes
// by it when there are too many.
type sessionAges struct {
	opened uint64
	used   map[kit.SessionID]uint64
}

// opens notes what an entry has opened, if it was a session.
func (a *sessionAges) opens(r kit.Reply) {
	if r.Session != 0 {
		a.used[r.Session] = a.opened
	}
}

// use notes an entry that is about to be applied, and puts the sessions in order if that may
// matter.
func (a *sessionAges) use(s *kit.State, e kit.Entry) {
	if e.Kind == kit.NoOp {
		return
	}
	if a.used == nil {
		a.used = map[kit.SessionID]uint64{}
	}
	if e.Kind != kit.OpenSession {
		if reply, ok := s.Seen(e); !ok || !reply.Gone {
			a.used[e.Session] = a.opened
		}
		return
	}
	a.opened++
	open := map[kit.SessionID]bool{}
	s.ArrangeSessions(func(id kit.SessionID) uint64 {
		open[id] = true
		return a.used[id]
	})
	for _, id := range slices.Sorted(maps.Keys(a.used)) {
		if !open[id] {
			delete(a.used, id)
		}
	}
}

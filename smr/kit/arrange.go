package kit

import (
	"cmp"
	"slices"
)

// ArrangeSessions puts the sessions in order of when they were used last, as used says: the one
// with the lowest value goes first when there are too many, of equals the older one. Protocols call
// it in which replicas apply commands that commute in different orders, and come to know the order
// of use otherwise.
func (s *State) ArrangeSessions(used func(SessionID) uint64) {
	t := s.sessions
	all := make([]*session, 0, t.order.Len())
	ages := map[SessionID]uint64{}
	for el := t.order.Front(); el != nil; el = el.Next() {
		one := el.Value.(*session)
		all = append(all, one)
		ages[one.id] = used(one.id)
	}
	slices.SortFunc(all, func(a, b *session) int {
		return cmp.Or(cmp.Compare(ages[a.id], ages[b.id]), cmp.Compare(a.id, b.id))
	})
	for _, one := range all {
		t.order.MoveToBack(one.place)
	}
}

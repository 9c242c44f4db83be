package kit_test

import (
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/kv"
)

// TestArrangedSessionsGoInOrder opens sessions beyond their number: the one that was said to be
// used least goes.
func TestArrangedSessionsGoInOrder(t *testing.T) {
	s := kit.NewState(kv.New(), []smr.Member{{ID: 1}})
	open := func(slot smr.Slot) kit.SessionID {
		r := s.Apply(slot, kit.Entry{Kind: kit.OpenSession, Client: protocol.ID(slot), Seq: 1,
			Open: &kit.Open{MaxSessions: 3, Window: 10}})
		return r.Session
	}
	gone := func(id kit.SessionID) bool {
		r, ok := s.Seen(kit.Entry{Kind: kit.Command, Client: protocol.ID(id), Session: id, Seq: 1})
		return ok && r.Gone
	}
	for slot := range smr.Slot(3) {
		open(slot + 1)
	}
	ages := map[kit.SessionID]uint64{1: 5, 2: 4, 3: 4}
	s.ArrangeSessions(func(id kit.SessionID) uint64 { return ages[id] })
	open(4)
	if gone(1) || !gone(2) || gone(3) || gone(4) {
		t.Errorf("gone are 1: %v, 2: %v, 3: %v, 4: %v; want the second only", gone(1), gone(2), gone(3), gone(4))
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

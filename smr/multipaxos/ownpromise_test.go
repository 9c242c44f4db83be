package multipaxos

import (
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/kit"
)

// A candidate that leads on the promises of others alone may forget its ballot in a crash, and use
// it again for other commands. So its own promise, which it hears of when it is on disk, is one of
// the majority.
func TestNobodyLeadsWithoutItsOwnPromise(t *testing.T) {
	s := newScript(t)
	call := func(f func()) {
		s.env.Begin(0)
		f()
	}
	call(func() { s.r.Expire(s.env, campaignTimer{}) })
	ballot := s.r.candidacy.ballot
	for _, id := range []protocol.ID{2, 3} {
		call(func() {
			s.r.Receive(s.env, id, kit.Letter{Disk: kit.Incarnation(id), Msg: preVoteReply{Ballot: ballot, Granted: true}})
		})
	}
	for _, id := range []protocol.ID{2, 3, 4, 5} {
		call(func() {
			s.r.Receive(s.env, id, kit.Letter{Disk: kit.Incarnation(id), Msg: promise{Ballot: ballot, Low: 1, Last: true}})
		})
	}
	if s.r.role != candidate {
		t.Fatalf("it is %v before its own promise is on disk", s.r.role)
	}
	call(func() {
		s.r.Receive(s.env, 1, kit.Letter{Disk: s.r.Admission.Own(), Msg: promise{Ballot: ballot, Low: 1, Last: true}})
	})
	if s.r.role != leader {
		t.Errorf("it is %v with all promises, its own among them", s.r.role)
	}
}

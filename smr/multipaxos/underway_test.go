package multipaxos

import (
	"testing"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// TestPartAtATime: a follower that was away gets a long log in parts, each after it has
// acknowledged some of the one before, and what is on its way is not sent again. All at once did
// not fit in the queue of its connection: what was lost of it was sent again with all that
// followed, and lost again.
func TestPartAtATime(t *testing.T) {
	const slots, size = 320, 64 << 10
	s := newScript(t)
	const bound = 1 << 20
	s.r.Cfg.MaxUnderwayBytes = bound
	b := s.campaign()
	s.receive(2, kit.Letter{Disk: 2, Msg: promise{Ballot: b, Low: 1, Last: true}})
	s.receive(3, kit.Letter{Disk: 3, Msg: promise{Ballot: b, Low: 1, Last: true}})
	for i := range slots {
		e := value(i + 1)
		e.Command = make([]byte, size)
		s.r.lead.queue = append(s.r.lead.queue, e)
	}
	next := smr.Slot(1)
	// take lets replica 2 take what it was sent, and returns how much that was.
	take := func() (sent int) {
		t.Helper()
		for _, e := range s.out {
			m, ok := kit.Inside(e.Msg).(accept)
			if !ok || e.To != 2 || len(m.Entries) == 0 {
				continue
			}
			if m.First != next {
				t.Fatalf("sent from slot %d, want from %d", m.First, next)
			}
			next += smr.Slot(len(m.Entries))
			sent += kit.CommandBytes(m.Entries)
		}
		s.out = nil
		return sent
	}
	s.do(func() { s.r.propose(s.env) })
	for acked, parts := smr.Slot(0), 0; acked < slots; parts++ {
		sent := take()
		if sent == 0 || sent > bound+kit.MessageBytes {
			t.Fatalf("part %d has %d bytes; %d of %d slots were acknowledged", parts, sent, acked, slots)
		}
		s.receive(2, kit.Letter{Disk: 2, Msg: missing{Ballot: b, Want: acked + 1}})
		if again := take(); again != 0 {
			t.Fatalf("%d bytes were sent again that are on their way", again)
		}
		acked = next - 1
		s.receive(2, kit.Letter{Disk: 2, Msg: accepted{Ballot: b, Match: acked}})
	}
}

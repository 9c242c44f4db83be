package mencius

import (
	"testing"
	"time"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// TestPartAtATime: a member that was away gets a long track in parts, each after it has
// acknowledged some of the one before, and what is on its way is not sent again. All at once did
// not fit in the queue of its connection: what was lost of it was sent again with all that
// followed, and lost again.
func TestPartAtATime(t *testing.T) {
	const positions, size = 320, 64 << 10
	r, env, disk := begun(t)
	const bound = 1 << 20
	r.Cfg.MaxUnderwayBytes = bound
	l := r.epoch.tracks[0]
	votes := make([]vote, positions)
	for i := range votes {
		votes[i] = vote{Entry: work(kit.Seq(i + 1))}
		votes[i].Entry.Command = make([]byte, size)
	}
	next := pos(1)
	// take lets replica 2 take what it was sent, and returns how much that was.
	take := func() (sent int) {
		t.Helper()
		for _, e := range env.Out {
			m, ok := kit.Inside(e.Msg).(accept)
			if !ok || e.To != 2 || len(m.Items) == 0 {
				continue
			}
			if m.First != next {
				t.Fatalf("sent from position %d, want from %d", m.First, next)
			}
			next += pos(len(m.Items))
			sent += sizeOf(m.Items)
		}
		return sent
	}
	receive := func(now time.Duration, msg smr.Message) {
		disk.Write(env, now)
		r.Receive(env, 2, kit.Letter{Disk: 2, Msg: msg})
	}
	place := place{Epoch: 1}
	r.extend(env, l, votes)
	for acked, parts := pos(0), 0; acked < positions; parts++ {
		sent := take()
		if sent == 0 || sent > bound+kit.MessageBytes {
			t.Fatalf("part %d has %d bytes; %d of %d positions were acknowledged", parts, sent, acked, positions)
		}
		receive(0, missing{place, acked + 1})
		if again := take(); again != 0 {
			t.Fatalf("%d bytes were sent again that are on their way", again)
		}
		acked = next - 1
		receive(0, accepted{place, acked})
	}
	l.acks[1].match, next = 310, 311
	r.Broken(env, 2)
	if sent := take(); sent != 10*size {
		t.Errorf("after the connection broke %d bytes were sent, want %d", sent, 10*size)
	}
	next = 316
	receive(r.Times(2), missing{place, 316})
	if sent := take(); sent != 5*size {
		t.Errorf("two round trips later %d bytes were sent again, want %d", sent, 5*size)
	}
}

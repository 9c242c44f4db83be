package transport

import (
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay/protocol"
)

// A slot is for streams of which each takes the place of the one before.
type slot struct {
	streams int // that are admitted and not ended; guarded by the transport's mutex

	mu      sync.Mutex // held while a stream takes the place of another
	epoch   uint64     // of the newest stream
	current *inbound
	source  *source
}

// admit makes in the present stream of its sender. When it returns, nothing is delivered by an older one.
func (t *Transport) admit(in *inbound, next uint64) error {
	s := t.slotOf(in)
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.epoch <= s.epoch {
		return status.Errorf(codes.Aborted, "stream %d of the same sender is newer than this one, %d", s.epoch, in.epoch)
	}
	if s.current != nil {
		s.current.kill()
	}
	s.epoch, s.current = in.epoch, in
	return in.start(s.source, next)
}

func (t *Transport) slotOf(in *inbound) *slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.active[in.key]
	if s == nil {
		var ok bool
		if s, ok = t.parked.Get(in.key); ok {
			t.parked.Remove(in.key)
		} else {
			s = &slot{source: newSource()}
		}
		t.active[in.key] = s
	}
	s.streams++
	in.slot = s
	return s
}

// claim makes in the way to a client. It returns the stream that was it, if there is one.
func (t *Transport) claim(id protocol.ID, in *inbound) (old *inbound) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old = t.claims[id]
	t.claims[id] = in
	t.setRoute(id, in.out)
	if old == in {
		return nil
	}
	return old
}

// forget takes a dead stream out of the tables.
func (t *Transport) forget(in *inbound) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, by := range t.claims {
		if by == in {
			delete(t.claims, id)
			t.setRoute(id, nil)
		}
	}
	s := in.slot
	if s == nil {
		return
	}
	in.slot = nil
	if s.streams--; s.streams == 0 {
		delete(t.active, in.key)
		t.parked.Add(in.key, s)
	}
}

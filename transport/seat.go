package transport

import (
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay/protocol"
)

// A seat is for streams of which each takes the place of the one before.
type seat struct {
	streams int // that are admitted and not ended; guarded by the transport's mutex

	mu      sync.Mutex // held while a stream takes the place of another
	epoch   uint64     // of the newest stream
	current *inbound
	source  *source
}

// admit makes in the present stream of its sender. When it returns, nothing is delivered by an
// older one.
func (t *Transport) admit(in *inbound, next uint64) error {
	s := t.seatOf(in)
	if s == nil {
		return errSuperseded()
	}
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

// seatOf returns the seat of a stream, nil if the stream has ended.
func (t *Transport) seatOf(in *inbound) *seat {
	t.mu.Lock()
	defer t.mu.Unlock()
	if in.ended() {
		return nil
	}
	s := t.active[in.key]
	if s == nil {
		var ok bool
		if s, ok = t.parked.Get(in.key); ok {
			t.parked.Remove(in.key)
		} else {
			s = &seat{source: t.newSource()}
		}
		t.active[in.key] = s
	}
	s.streams++
	in.seat = s
	return s
}

// A claimKey is a node elsewhere, and the member here that it sends to.
type claimKey struct{ from, to protocol.ID }

// claim makes in the stream of a node elsewhere, unless it has ended. It returns the stream that
// was it, if there is one.
func (t *Transport) claim(id protocol.ID, in *inbound) (old *inbound, ok bool) {
	key := claimKey{id, in.key.to}
	t.mu.Lock()
	defer t.mu.Unlock()
	if in.seat == nil {
		return nil, false
	}
	in.heard[id] = true
	old = t.claims[key]
	t.claims[key] = in
	if id >= t.cfg.FirstClient {
		t.repliesMu.Lock()
		defer t.repliesMu.Unlock()
		t.replies[key] = in.out
		if t.missed[key] || t.missedMany {
			in.out.lose()
		}
		delete(t.missed, key)
	}
	return old, true
}

// forget takes a dead stream out of the tables.
func (t *Transport) forget(in *inbound) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := in.seat
	if s == nil {
		return
	}
	in.seat = nil
	t.repliesMu.Lock()
	for id := range in.heard {
		key := claimKey{id, in.key.to}
		if t.claims[key] == in {
			delete(t.claims, key)
			delete(t.replies, key)
		}
	}
	t.repliesMu.Unlock()
	if s.streams--; s.streams == 0 {
		s.source.rest()
		delete(t.active, in.key)
		t.parked.Add(in.key, s)
	}
}

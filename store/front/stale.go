package front

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// A snapshot is what an attempt has read that may see the store as it was: as of the timestamp that
// its first answer names. Keys that were not declared are declared one by one, as they are asked
// for, as of the same timestamp.
type snapshot struct {
	c      *Conn
	maxAge time.Duration
	turn   chan struct{} // has a token while nobody sets the timestamp

	mu    sync.Mutex
	at    uint64 // 0: nobody has answered yet
	age   time.Duration
	over  bool // a site has answered as of no timestamp: what is read from now on is read otherwise
	reads map[store.Read]bool
}

func newSnapshot(c *Conn, maxAge time.Duration) *snapshot {
	s := &snapshot{c: c, maxAge: maxAge, turn: make(chan struct{}, 1), reads: map[store.Read]bool{}}
	s.turn <- struct{}{}
	return s
}

// note takes what was declared, and the answer to it. It returns false if that is no answer.
func (s *snapshot) note(keys []store.Key, got store.Declared) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !got.OK || s.over || s.at > 0 && got.At != s.at {
		return false
	}
	if s.at, s.over = got.At, got.At == 0; s.age == 0 {
		s.age = got.Age
	}
	for i, v := range got.Values {
		if !v.Large {
			s.reads[store.Read{Key: keys[i], Version: v.Value.Version}] = true
		}
	}
	return true
}

// time returns the timestamp; over says that there will be none.
func (s *snapshot) time() (at uint64, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at, s.over
}

// read reads a key as of the timestamp; ok is false if it has to be read otherwise.
func (s *snapshot) read(ctx context.Context, key store.Key) (answer client.Answer, ok bool, err error) {
	if len(key) > store.MaxKeyBytes {
		return answer, false, nil // which is an error of any read's
	}
	at, over := s.time()
	if at == 0 && !over {
		select {
		case <-s.turn:
			defer func() { s.turn <- struct{}{} }()
		case <-ctx.Done():
			return answer, false, client.Unread(ctx, s.c.unavailable(key, &request{}))
		}
		at, over = s.time()
	}
	if over {
		return answer, false, nil
	}
	keys := []store.Key{key}
	d := s.c.declare(store.Declare{Reads: keys, MaxAge: s.maxAge, At: at}, nil)
	select {
	case <-d.done:
	case <-ctx.Done():
		s.c.deliver(store.Abandon{Ref: d.ref})
		return answer, false, client.Unread(ctx, s.c.unavailable(key, d.w.request))
	}
	if !s.note(keys, d.got) || d.got.Values[0].Large {
		return answer, false, nil
	}
	v := d.got.Values[0]
	return client.Answer{Value: v.Value, Site: s.c.site(int(v.Site))}, true, nil
}

// has reports whether all of some reads are the snapshot's.
func (s *snapshot) has(reads []store.Read) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(reads, func(r store.Read) bool { return !s.reads[r] })
}

// seen returns as of when it is, 0 for no timestamp, and how old it was when it was read first.
func (s *snapshot) seen() (at uint64, age time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at, s.age
}

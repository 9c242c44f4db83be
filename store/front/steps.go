package front

import (
	"context"
	"slices"
	"sync"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// steps are the reads of an attempt of a protocol whose transactions read a snapshot
// (Protocol.Steps): the first one begins the transaction, and takes the snapshot.
type steps struct {
	c *Conn

	mu    sync.Mutex
	ref   uint64    // of the Declare that has begun the transaction; zero: none has
	first store.Key // that it has read
	ended bool
	known map[store.Key]*step
}

// A step is what is read at once.
type step struct {
	d    *declaration
	keys []store.Key
}

func newSteps(c *Conn, keys []store.Key) *steps {
	s := &steps{c: c, known: map[store.Key]*step{}}
	if len(keys) > 0 {
		s.read(keys)
	}
	return s
}

// read returns the step that reads some keys. Each key is read once.
func (s *steps) read(keys []store.Key) *step {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.known[keys[0]]; x != nil {
		return x
	}
	if s.ended {
		return nil
	}
	x := &step{keys: keys, d: s.c.declare(store.Declare{Reads: keys, Begun: s.ref, General: s.ref == 0}, nil)}
	for _, k := range keys {
		s.known[k] = x
	}
	if s.ref == 0 {
		s.ref, s.first = x.d.ref, keys[0]
		s.c.begins(s.ref)
	}
	return x
}

// get returns what the snapshot has under a key.
func (s *steps) get(ctx context.Context, key store.Key) (answer client.Answer, err error) {
	x := s.read([]store.Key{key})
	if x == nil {
		return answer, &client.EndedError{Key: key, Reason: store.Fenced}
	}
	select {
	case <-x.d.done:
	case <-ctx.Done():
		return answer, client.Unread(ctx, s.c.unavailable(key, x.d.w.request))
	}
	if !x.d.got.OK {
		// Where the coordinator is away another site begins the transaction anew, if there may be one.
		if sites, why := s.c.missing(x.d.w.request); len(sites) > len(s.c.sites)/2 {
			return answer, &client.UnavailableError{Key: key, Sites: sites, Detail: why}
		}
		return answer, &client.EndedError{Key: key, Reason: store.Fenced}
	}
	v := x.d.got.Values[slices.Index(x.keys, key)]
	return client.Answer{Value: v.Value, Site: s.c.site(int(v.Site))}, nil
}

// begin returns when the transaction has begun: by reading a key, if it has read none.
func (s *steps) begin(ctx context.Context, key store.Key) error {
	s.mu.Lock()
	if s.ref != 0 {
		key = s.first
	}
	s.mu.Unlock()
	_, err := s.get(ctx, key)
	return err
}

// begun returns the Ref by which the node knows the transaction; zero: it has not begun.
func (s *steps) begun() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ref
}

// end has nothing be read any more.
func (s *steps) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

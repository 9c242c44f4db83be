package carousel

import (
	"maps"
	"slices"

	"github.com/foresay/foresay/store"
)

// session is what a client has seen: what it reads later that may be old is not from before.
type session struct {
	// asOf is the latest timestamp as of which it has read: snapshots do not go back in time.
	asOf uint64
	// newest are the latest versions of keys that it has written or read.
	newest map[store.Key]uint64
}

// seenKeys is how many keys a session remembers. What is forgotten counts as seen of all keys.
const seenKeys = 10_000

// saw notes a version that it has written, or read.
func (s *session) saw(key store.Key, v store.Version) {
	if v.Time <= s.newest[key] || v.Time <= s.asOf || v.Time > maxStamp {
		return
	}
	if s.newest[key] = v.Time; len(s.newest) <= seenKeys {
		return
	}
	s.forget()
	if len(s.newest) > seenKeys/2 {
		for _, at := range s.newest { //pure:ok the latest of all
			s.asOf = max(s.asOf, at)
		}
		s.forget()
	}
}

// sawAt notes that it has read as of a timestamp.
func (s *session) sawAt(at uint64) {
	if at <= maxStamp {
		s.asOf = max(s.asOf, at)
	}
}

// hides reports whether a snapshot of a timestamp is from before what it has seen of some keys.
func (s *session) hides(at uint64, keys []store.Key) bool {
	return slices.ContainsFunc(keys, func(k store.Key) bool { return at < s.newest[k] })
}

// forget drops what asOf covers.
func (s *session) forget() {
	maps.DeleteFunc(s.newest, func(_ store.Key, at uint64) bool { return at <= s.asOf })
}

// of returns before when some keys must not be read.
func (s *session) of(keys []store.Key) uint64 {
	bound := s.asOf
	for _, k := range keys {
		bound = max(bound, s.newest[k])
	}
	return bound
}

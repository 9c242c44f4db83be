package control

import "sync"

// repeats remembers, for some of the last requests, what was answered: a table
// of digests that takes no more memory the longer it is used. Digests that differ
// in their remainder never meet; of those that share one, the last used stay.
type repeats struct {
	mu   sync.Mutex
	sets [][repeatWays]repeated // in each the last used first
}

type repeated struct{ asked, answered uint64 }

// repeatSets times repeatWays bounds the requests that are remembered; each takes
// 16 bytes.
const repeatSets, repeatWays = 1 << 6, 8

// Last returns the digest of the last response to a request.
func (r *repeats) Last(asked uint64) (answered uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sets == nil || asked == 0 {
		return 0, false
	}
	for _, e := range &r.sets[asked%repeatSets] {
		if e.asked == asked {
			return e.answered, true
		}
	}
	return 0, false
}

// Note notes the digest of a response to a request.
func (r *repeats) Note(asked, answered uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sets == nil {
		r.sets = make([][repeatWays]repeated, repeatSets)
	}
	set := &r.sets[asked%repeatSets]
	at := 0
	for at < repeatWays-1 && set[at].asked != asked {
		at++
	}
	copy(set[1:at+1], set[:at])
	set[0] = repeated{asked, answered}
}

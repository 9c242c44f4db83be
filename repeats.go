package foresay

import "sync"

// repeats remembers, for some of the last requests, what was answered: a table
// of digests that takes no more memory the longer it is used.
type repeats struct {
	mu    sync.Mutex
	slots []repeated
}

type repeated struct{ asked, answered uint64 }

// repeatSlots bounds the requests that are remembered; a slot takes 16 bytes.
const repeatSlots = 1 << 9

// last returns the digest of the last response to a request.
func (r *repeats) last(asked uint64) (answered uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.slots == nil {
		return 0, false
	}
	s := r.slots[asked%repeatSlots]
	return s.answered, s.asked == asked && asked != 0
}

func (r *repeats) note(asked, answered uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.slots == nil {
		r.slots = make([]repeated, repeatSlots)
	}
	r.slots[asked%repeatSlots] = repeated{asked, answered}
}

package control

import (
	"sync/atomic"
	"time"
)

// floor is the least time that calls took lately: what the network and the
// server need when nothing queues. Waiting in queues on a busy machine is no
// reason to send more. Lost updates do not matter.
type floor struct {
	now, before atomic.Int64 // least in this window and in the last, 0 for none
	begun       atomic.Int64 // of this window, Unix nanoseconds
}

// floorWindow is how long a least time counts at least; it counts at most twice as long.
const floorWindow = 10 * time.Second

// Took notes how long a call took.
func (f *floor) Took(begun, end time.Time) {
	took, at := max(int64(end.Sub(begun)), 1), end.UnixNano()
	if began := f.begun.Load(); at-began >= int64(floorWindow) && f.begun.CompareAndSwap(began, at) {
		f.before.Store(f.now.Swap(took))
		return
	}
	if least := f.now.Load(); least == 0 || took < least {
		f.now.Store(took)
	}
}

// Least returns the least time, 0 if nothing is known.
func (f *floor) Least() time.Duration {
	now, before := f.now.Load(), f.before.Load()
	if now == 0 || before != 0 && before < now {
		return time.Duration(before)
	}
	return time.Duration(now)
}

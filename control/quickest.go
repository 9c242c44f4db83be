package control

import (
	"sync/atomic"
	"time"
)

// quickest is the least time that calls took lately: what the network and the
// server need when nothing queues. Waiting in queues on a busy machine is no
// reason to send more. Lost updates do not matter.
type quickest struct {
	now, before atomic.Int64 // least in this window and in the last, 0 for none
	begun       atomic.Int64 // of this window, Unix nanoseconds
	queue       queue
}

// quickestWindow is how long a least time counts at least; it counts at most twice as long.
const quickestWindow = 10 * time.Second

// Took notes how long a call took.
func (f *quickest) Took(begun, end time.Time) {
	took, at := max(int64(end.Sub(begun)), 1), end.UnixNano()
	if began := f.begun.Load(); at-began >= int64(quickestWindow) && f.begun.CompareAndSwap(began, at) {
		f.before.Store(f.now.Swap(took))
		return
	}
	if least := f.now.Load(); least == 0 || took < least {
		f.now.Store(took)
	}
}

// Least returns the least time, 0 if nothing is known.
func (f *quickest) Least() time.Duration {
	now, before := f.now.Load(), f.before.Load()
	if now == 0 || before != 0 && before < now {
		return time.Duration(before)
	}
	return time.Duration(now)
}

// Queue returns how long goroutines wait for a processor while the call site's calls are made.
func (f *quickest) Queue() *queue { return &f.queue }

// queue is the mean of what goroutines waited for a processor lately. Where they wait long it is
// that which calls take their time for, at best too, if there are always some under way. Lost
// updates do not matter.
type queue struct {
	mean   atomic.Int64 // nanoseconds
	looked atomic.Int64 // Unix nanoseconds
	afresh atomic.Bool  // the next wait takes the place of the mean, which is old
}

const (
	// lookEvery is the least time between two looks at how long goroutines wait.
	lookEvery = 10 * time.Millisecond
	// lookAfresh is after how long without a look nothing counts of what was seen before.
	lookAfresh = time.Second
	// mostWait is as what a longer wait counts: one of many milliseconds comes from outside of the
	// process, and says little about the next one.
	mostWait = time.Millisecond
	// newestShare is the part of the mean, one in so many, that is the newest wait.
	newestShare = 16
	// waitsPerCall is about how many goroutines a call goes through, one after the other, of which
	// each has to be woken: the caller's, those which write and read at both ends, the handler's.
	waitsPerCall = 8
)

// Due reports whether it is time to look again, and takes it that somebody will.
func (q *queue) Due() bool {
	now, last := time.Now().UnixNano(), q.looked.Load()
	if now-last < int64(lookEvery) {
		return false
	}
	if now-last > int64(lookAfresh) {
		q.afresh.Store(true)
	}
	return q.looked.CompareAndSwap(last, now)
}

// Waited notes how long a goroutine has waited.
func (q *queue) Waited(d time.Duration) {
	d = min(d, mostWait)
	if mean := q.mean.Load(); !q.afresh.Swap(false) && mean != 0 {
		d = time.Duration(mean) + (d-time.Duration(mean))/newestShare
	}
	q.mean.Store(max(int64(d), 1))
}

// PerCall returns about how much of a call's time is spent in waiting for processors.
func (q *queue) PerCall() time.Duration { return waitsPerCall * q.wait() }

// wait returns what a goroutine waits for a processor.
func (q *queue) wait() time.Duration { return time.Duration(q.mean.Load()) }

package control

import (
	"fmt"
	"time"
)

// WaitKind says where code waits, with speculation, until all that it did before
// is confirmed, besides at calls.
type WaitKind uint8

const (
	// WaitBarrier: at Barrier. What follows is not predicted.
	WaitBarrier WaitKind = iota
	// WaitStream: where a stream is opened. What follows is not predicted.
	WaitStream
	// WaitAct: at Act.
	WaitAct
	// WaitHooks: with commit hooks, where it has returned.
	WaitHooks
	// WaitResult: outside of tasks, for a task's result.
	WaitResult
)

// String returns the name that reports use.
func (k WaitKind) String() string {
	names := [...]string{"barrier", "stream", "act", "hooks", "result"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("WaitKind(%d)", uint8(k))
}

// WaitRecord is one place of a request where code waits with speculation,
// whether or not there was anything to wait for.
type WaitRecord struct {
	Kind WaitKind
	Name string // of a stream its full method, of Act its key
	// Start is when the wait was over, End when that which had to wait was done.
	Start, End time.Duration
	Task       int // as of CallRecord
}

// Waits notes that code waits somewhere, from a moment on in a task of this number.
func (r *engineRequest) Waits(kind WaitKind, name string, began time.Time, task int) {
	if r == nil {
		return
	}
	end := time.Since(r.start)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ended:
	case len(r.waited) >= maxRecords:
		r.missed++
	default:
		r.waited = append(r.waited, WaitRecord{kind, name, began.Sub(r.start), end, task})
	}
}

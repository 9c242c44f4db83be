package shape

import (
	"sync"
	"time"

	"github.com/foresay/foresay/wan"
)

// A link is the state of one direction between two sites, which all connections along it share.
type link struct {
	path wan.Path
	seed uint64

	mu    sync.Mutex
	value wan.Link
	idle  time.Duration // when the link has put on the wire what it was given
	bytes int64         // that left
	// healed is closed and replaced when value.Down ends.
	healed chan struct{}
}

func newLink(p wan.Path, l wan.Link, seed uint64) *link {
	return &link{path: p, seed: seed, value: l, healed: make(chan struct{})}
}

// send lets up to sizeBytes leave, and returns how many did and when they arrive. Bytes leave in
// pieces that take the link a tenth of a millisecond, or all at once if it has no limit. If the
// link is down, nothing leaves and ok is false; healed then closes when it is up.
func (l *link) send(now time.Duration, sizeBytes int) (left int, arrive time.Duration, healed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.value.Down {
		return 0, 0, l.healed
	}
	depart := now
	if rate := l.value.BytesPerSecond; rate > 0 {
		sizeBytes = min(sizeBytes, max(wan.SegmentBytes, int(rate/10_000)))
		depart = max(now, l.idle) + l.value.Serialize(sizeBytes)
		l.idle = depart
	}
	l.bytes += int64(sizeBytes)
	d := wan.Departure{Path: l.path, At: depart, SizeBytes: sizeBytes}
	return sizeBytes, depart + l.value.Transit(l.seed, d), nil
}

// set replaces the link's value and reports whether the link was down and is no more.
func (l *link) set(change func(*wan.Link)) (healed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wasDown := l.value.Down
	change(&l.value)
	if wasDown && !l.value.Down {
		close(l.healed)
		l.healed = make(chan struct{})
		return true
	}
	return false
}

func (l *link) state() (wan.Link, int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.value, l.bytes
}

package specgrpc

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay"
)

const (
	// blockedAfter is how long a call may be without a stream on a ready connection before the
	// peer's limit on concurrent streams is taken for the reason, which peers do not tell.
	blockedAfter = 2 * time.Millisecond
	// probeEvery is how often a limit that was learnt is taken to be a little higher, in case it has
	// been taken for lower than it is.
	probeEvery = time.Second
	// demandSpan is for how long calls of confirmed callers are expected to want as many streams as
	// before.
	demandSpan = 250 * time.Millisecond
	// maxQueue is how many speculative calls wait for room at once. Others are held at once.
	maxQueue = 4096
)

// lack is what a speculative call waits for: one of at most so many streams.
type lack struct {
	by   foresay.Limit
	most int
}

func (l lack) String() string {
	if l.by == foresay.LimitStreams {
		return fmt.Sprintf("limited by the streams that the peer admits on a connection, about %d", l.most)
	}
	return fmt.Sprintf("limited by the half-open calls of the connection, %d, see WithMaxHalfOpen", l.most)
}

// room is how many streams a connection has and may have. Calls of confirmed callers take what
// they need; speculative ones only what is left over, and wait in a queue for it.
type room struct {
	mu          sync.Mutex
	open        int // streams that are open or about to be, those of the user's own stream calls apart
	opening     int // those of speculative calls that are about to be
	entered     int // those of speculative calls
	leaving     int // those that end to make room
	wanting     int // calls of confirmed callers that wait for a stream, or are about to get one
	speculative int // streams whose callers' word is still to come
	kept        int // those of them whose server keeps effects back, so that they stay open until then
	most        int // of speculative ones, see WithMaxHalfOpen
	limit       int // how many streams the peer admits, as far as was learnt; 0 for any number
	learnt      time.Time
	queue       []*place
	peaks       [2]int    // how many streams confirmed callers wanted at once, at most, in this span and the one before
	since       time.Time // this span
}

// place is a speculative call's in the queue.
type place struct {
	keeps    bool
	admitted bool
	done     chan struct{} // closed when it is admitted, or has left; nil if it was admitted at once
}

// want notes that a call of a confirmed caller is about to open a stream.
func (r *room) want() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanting++
	r.demand()
}

// ample notes a call of a confirmed caller and reports true if nobody needs to know
// whether it gets its stream at once: no limit of the peer's is known, and there are no
// speculative streams in its way.
func (r *room) ample() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limit > 0 || r.entered > 0 || len(r.queue) > 0 {
		return false
	}
	r.open++
	r.demand()
	return true
}

// demand returns how many streams confirmed callers have wanted at once of late. Under mu.
func (r *room) demand() int {
	now := time.Now()
	switch past := now.Sub(r.since); {
	case past > 2*demandSpan:
		r.peaks, r.since = [2]int{}, now
	case past > demandSpan:
		r.peaks, r.since = [2]int{0, r.peaks[0]}, now
	}
	r.peaks[0] = max(r.peaks[0], r.open-r.entered+r.wanting)
	return max(r.peaks[0], r.peaks[1])
}

// got notes what became of that.
func (r *room) got(stream bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanting--
	if stream {
		if r.open++; r.limit > 0 && r.open > r.limit {
			r.limit = r.open
		}
		return
	}
	r.serve()
}

// opened notes that a speculative call has its stream, or that it will get none.
func (r *room) opened() {
	r.mu.Lock()
	r.opening--
	r.mu.Unlock()
}

// gone notes that a stream has ended, one of a speculative call's perhaps, which left
// to make room perhaps.
func (r *room) gone(speculative, left bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open--
	if speculative {
		r.entered--
	}
	if left {
		r.leaving--
	}
	r.serve()
}

func (r *room) anyLeaving() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leaving > 0
}

// leaves notes that a stream is to end to make room, or that it is not after all.
func (r *room) leaves(n int) {
	r.mu.Lock()
	r.leaving += n
	r.mu.Unlock()
}

// blocked notes that a call gets no stream with those that are open.
func (r *room) blocked() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit, r.learnt = max(r.open-r.opening, 1), time.Now()
}

// tight reports whether a stream that is of no more use should end: others need its place.
func (r *room) tight() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.limit > 0 && r.open+r.wanting > r.limit-r.reserve() || len(r.queue) > 0
}

// crowd returns how many calls of confirmed callers find no room.
func (r *room) crowd() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limit == 0 {
		return 0
	}
	return min(r.wanting, r.open+r.wanting-r.limit) - r.leaving
}

// reserve is how many streams are left to calls of confirmed callers. Under mu.
func (r *room) reserve() int { return r.limit / 8 }

// lacking returns what a speculative call lacks to be sent now, or nothing. Under mu.
func (r *room) lacking(keeps bool) lack {
	if r.limit > 0 && time.Since(r.learnt) > probeEvery {
		r.limit, r.learnt = r.limit+max(1, r.limit/8), time.Now()
	}
	switch {
	case r.speculative >= r.most:
		return lack{foresay.LimitHalfOpen, r.most}
	case r.limit == 0:
	case r.demand()+r.entered >= r.limit-r.reserve(), keeps && r.kept >= max(1, r.limit/4):
		return lack{foresay.LimitStreams, r.limit}
	}
	return lack{}
}

// enter takes a stream for a speculative call, or a place in the queue. If there is neither, or
// nothing to wait for, it says what is lacking.
func (r *room) enter(keeps bool) (*place, lack) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &place{keeps: keeps}
	why := r.lacking(keeps)
	switch {
	case why == (lack{}) && len(r.queue) == 0:
		r.admit(p)
		return p, why
	case why == (lack{}): // and others wait
		why = lack{foresay.LimitHalfOpen, r.most}
	}
	if r.most == 0 || len(r.queue) >= maxQueue {
		return nil, why
	}
	p.done = make(chan struct{})
	r.queue = append(r.queue, p)
	return p, why
}

func (r *room) admit(p *place) {
	p.admitted = true
	r.open++
	r.opening++
	r.entered++
	r.speculative++
	if p.keeps {
		r.kept++
	}
}

// leave takes a call that has its caller's word out of the queue.
func (r *room) leave(p *place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.queue, p); i >= 0 {
		r.queue = slices.Delete(r.queue, i, i+1)
		close(p.done)
	}
}

// told notes that a speculative stream's caller has given its word.
func (r *room) told(keeps bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.speculative--
	if keeps {
		r.kept--
	}
	r.serve()
}

// serve admits those for whom there is room now, the oldest first. Under mu.
func (r *room) serve() {
	for len(r.queue) > 0 {
		p := r.queue[0]
		if r.lacking(p.keeps) != (lack{}) {
			return
		}
		r.admit(p)
		close(p.done)
		r.queue[0] = nil
		r.queue = r.queue[1:]
	}
}

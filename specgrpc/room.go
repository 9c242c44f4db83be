package specgrpc

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/control"
)

const (
	// demandSpan is for how long calls of confirmed callers are expected to want as many streams as
	// before.
	demandSpan = 250 * time.Millisecond
	// maxQueue is how many speculative calls wait for room at once. Others are held at once.
	maxQueue = 4096
)

// lack is what a speculative call waits for: one of at most so many streams.
type lack struct {
	by   control.Limit
	most int // 0 if that is not known yet
}

func (l lack) String() string {
	switch l.by {
	case control.LimitServer:
		return fmt.Sprintf("limited by the half-open calls that the server runs for one caller, about %d", l.most)
	case control.LimitStreams:
		if l.most == 0 {
			return "limited by the streams that the peer admits on a connection, it is not known yet how many"
		}
		return fmt.Sprintf("limited by the streams that the peer admits on a connection, about %d", l.most)
	}
	return fmt.Sprintf("limited by the half-open calls of the connection, %d, see WithMaxHalfOpen", l.most)
}

// room is how many streams a connection has and may have. Calls of confirmed callers take what
// they need; speculative ones only what is left over, and wait in a queue for it.
type room struct {
	mu          sync.Mutex
	open        int // streams that are open or about to be, those of the user's own stream calls apart
	unseen      int // those of calls of which nobody knows whether they have their streams
	unasked     int // calls of confirmed callers that have yet to ask grpc for theirs, see asksLater
	opening     int // those of speculative calls that are about to be
	entered     int // those of speculative calls
	leaving     int // those that end to make room
	wanting     int // calls of confirmed callers that wait for a stream, or are about to get one
	speculative int // streams whose callers' word is still to come
	kept        int // those of them whose server keeps effects back, so that they stay open until then
	most        int // of speculative ones, see WithMaxHalfOpen
	seen        int // streams that were open at once, for certain, on this connection
	count       count
	streams     bound
	admits      bound // half-open calls that the server admits
	lookout     lookout
	start       slowStart
	flood       int         // calls that wait for a stream since before a limit was known
	floodEnd    look        // the last look before it was
	line        []*turn     // calls of confirmed callers, see turn
	ready       func() bool // reports whether the connection is
	full        func()      // called when calls were found to wait for streams
	yield       func(n int) // called to reset so many speculative streams for them
	queue       []*place
	unnamed     int       // at most so many of them do not know what they wait for
	peaks       [2]int    // how many streams confirmed callers wanted at once, at most, in this span and the one before
	since       time.Time // this span
	resets      int       // unanswered streams that were reset at a known limit, in this resetSpan
	resetsSince time.Time
	relented    time.Time // when streams ended last for a call that may wait for one, see again
}

// place is a speculative call's in the queue.
type place struct {
	keeps    bool
	admitted bool
	why      lack          // what it waits for, or waited for when it left
	done     chan struct{} // closed when it is admitted, or has left; nil if it was admitted at once
}

// ample notes a call of which nobody knows whether it has its stream, and reports true if nobody
// needs to: no limit of the peer's is known, and there are no speculative streams in its way.
func (r *room) ample() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.speculates() {
		return false
	}
	r.open++
	r.unseen++
	r.demand()
	return true
}

// asksLater notes a call of a confirmed caller that need not wait until it may ask grpc for its
// stream, for the same reasons, and reports whether it is one. Once it asks, and until it has
// its stream, it is as any other that does.
func (r *room) asksLater() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.speculates() {
		return false
	}
	r.unasked++
	r.demand()
	return true
}

// asksNow notes that such a call asks grpc for its stream.
func (r *room) asksNow() look {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unasked--
	r.wanting++
	return r.asks()
}

// again notes that a call of a confirmed caller, which counts as one with a stream, has lost it and
// asks for another. It reports whether the peer is known to admit that many: as many as now are
// open or asked for were open at once before. Until grpc has had the time to hand the stream out
// no speculative call asks for one where the limit is not known.
func (r *room) again() (sure bool, since count) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start.again = time.Now()
	return r.open+r.unasked+r.wanting-len(r.line) <= r.seen, r.count
}

// relents notes that speculative streams end for such a call, whatever is known of the limit: it
// may be lower by now.
func (r *room) relents() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.relented = time.Now()
}

// relieve has a speculative stream give way to such a call, and one to each that may get there
// first, unless its stream was there all the time: more were opened since then than have ended.
func (r *room) relieve(since count) {
	r.mu.Lock()
	resets := 0
	if r.count.opened-since.opened <= r.count.ended-since.ended {
		resets = min(1+r.wanting-len(r.line), r.entered)
	}
	r.mu.Unlock()
	if resets > 0 {
		r.yield(resets)
	}
}

// count counts streams.
type count struct{ opened, ended int }

// done notes that such a call has ended.
func (r *room) done() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open--
	r.unseen--
	r.count.ended++
	r.serve()
}

// speculates reports whether there are speculative streams on the connection, or calls that wait
// for one, or were of late. Under mu.
func (r *room) speculates() bool {
	return r.streams.most > 0 || r.entered > 0 || len(r.queue) > 0
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
	r.peaks[0] = max(r.peaks[0], r.open-r.entered+r.unasked+r.wanting)
	return max(r.peaks[0], r.peaks[1])
}

// got notes what became of that.
func (r *room) got(since look, stream bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanting--
	if r.flood > 0 && since <= r.floodEnd {
		r.flood--
	}
	r.lookout.answered(since, stream)
	if stream {
		r.open++
		r.has(1)
	}
	r.serve()
}

// untracked notes that nobody will tell when a stream ends, which its caller got.
func (r *room) untracked() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open--
	r.serve()
}

// opens notes that a speculative call is about to open its stream.
func (r *room) opens() (since look) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asks()
}

// opened notes that it has done so, or will get none.
func (r *room) opened(since look, stream bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opening--
	r.lookout.answered(since, true)
	if stream {
		r.has(0)
	}
	r.serve()
}

// has notes that a call has got its stream, beside those of speculative calls, and more if they are
// not counted among those. Others may have lost theirs meanwhile, see again. Under mu.
func (r *room) has(more int) {
	r.count.opened++
	r.seen = max(r.seen, r.entered-r.opening+more)
}

// gone notes that a stream has ended, one of a speculative call's perhaps, which left
// to make room perhaps.
func (r *room) gone(speculative, left bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open--
	r.count.ended++
	r.lookout.flow--
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

// tight reports whether a stream that is of no more use should end: others need its place.
func (r *room) tight() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.streams.sure && r.open+r.wanting > r.streams.most-r.reserve() || len(r.queue) > 0
}

// crowd returns how many calls of confirmed callers find no room.
func (r *room) crowd() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.streams.sure {
		return 0
	}
	return min(r.wanting, r.open+r.wanting-r.streams.most) - r.leaving
}

// mayReset reports whether one more stream may be reset, and counts it.
func (r *room) mayReset() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.resetsSince) > resetSpan {
		r.resets, r.resetsSince = 0, now
	}
	r.resets++
	return r.resets <= mostResets
}

// reserve is how many streams are left to calls of confirmed callers. Under mu.
func (r *room) reserve() int { return r.streams.most / 8 }

// age raises limits of which there has been no sign of late. Under mu.
func (r *room) age(demand int) {
	now := time.Now()
	r.streams.age(now, demand+r.most+r.reserve())
	r.admits.age(now, r.most)
}

// refused notes that the server has no place for one of the half-open calls.
func (r *room) refused() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.admits.learn(r.entered-1, time.Now())
}

// lacking returns what a speculative call lacks to be sent now, or nothing. Under mu.
func (r *room) lacking(keeps bool) lack {
	demand := r.demand()
	r.age(demand)
	switch most := r.streams.most; {
	case r.speculative >= r.most:
		return lack{control.LimitHalfOpen, r.most}
	case r.admits.most > 0 && r.entered >= r.admits.most:
		return lack{control.LimitServer, r.admits.most}
	case !r.streams.sure && r.unproven(keeps):
		return lack{by: control.LimitStreams}
	case time.Since(r.relented) < growEvery:
		return lack{control.LimitStreams, most}
	case most == 0:
	case demand+r.entered >= most-r.reserve(), keeps && r.kept >= max(1, most/4):
		return lack{control.LimitStreams, most}
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
		why = lack{control.LimitHalfOpen, r.most}
	}
	if r.most == 0 || len(r.queue) >= maxQueue {
		return nil, why
	}
	p.why, p.done = why, make(chan struct{})
	r.queue = append(r.queue, p)
	if why.most == 0 {
		r.unnamed++
	}
	r.lookOut()
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
		if why := r.lacking(p.keeps); why.most > 0 {
			p.why = why
		}
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

// name tells the calls that wait what it is for, once that is known. Under mu.
func (r *room) name(why lack) {
	if why.most == 0 || r.unnamed == 0 {
		return
	}
	for _, p := range r.queue {
		if p.why.most == 0 {
			p.why = why
		}
	}
	r.unnamed = 0
}

// serve admits those for whom there is room now, the oldest first. Under mu.
func (r *room) serve() {
	r.call()
	for len(r.queue) > 0 {
		p := r.queue[0]
		if why := r.lacking(p.keeps); why != (lack{}) {
			r.name(why)
			return
		}
		r.admit(p)
		close(p.done)
		r.queue[0] = nil
		r.queue = r.queue[1:]
	}
}

package specgrpc

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/foresay/foresay/driver"
)

// patience is how long a call may wait for a stream on a ready connection on
// which no other call gets one either, before the peer's limit on concurrent
// streams is taken for the reason. Peers do not tell that limit.
const patience = 20 * time.Millisecond

// looks is how often a waiting call looks around within patience, so that a
// pause of the whole process is not taken for the peer's.
const looks = 2

// halfOpen lists the speculative streams that await their caller's word, the
// oldest first.
type halfOpen struct {
	count  atomic.Int32
	opened atomic.Uint32 // streams opened so far, those of guarded calls at least
	room   room

	mu          sync.Mutex
	first, last *specStream
	leaving     *specStream // aborted for a plain call, and not over yet
	ahead       []*aheadCall
}

// aheadCall is a plain call that was sent for a speculative caller, and awaits its word.
type aheadCall struct {
	cancel context.CancelFunc
	opened atomic.Bool // its stream is open
	taken  bool        // back, for a call of a confirmed caller
}

// add lists a stream that has room.
func (h *halfOpen) add(s *specStream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count.Add(1)
	s.counted = countedGuess
	s.listed = true
	s.older = h.last
	if h.last == nil {
		h.first = s
	} else {
		h.last.newer = s
	}
	h.last = s
}

// ended forgets a stream that is over. It may be called again.
func (h *halfOpen) ended(s *specStream) {
	h.remove(s)
	h.mu.Lock()
	counted, left := s.counted, s.makesRoom
	s.counted, s.makesRoom = 0, false
	if h.leaving == s {
		h.leaving = nil
	}
	h.mu.Unlock()
	if counted != uncounted {
		h.room.gone(counted == countedGuess, left)
	}
}

// addAhead lists a plain call that has room.
func (h *halfOpen) addAhead(c *aheadCall) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count.Add(1)
	h.ahead = append(h.ahead, c)
}

// removeAhead takes a plain call whose caller has given its word, or that is over, off the list. It
// may be called again.
func (h *halfOpen) removeAhead(c *aheadCall) {
	h.mu.Lock()
	i := slices.Index(h.ahead, c)
	if i >= 0 {
		h.count.Add(-1)
		h.ahead = slices.Delete(h.ahead, i, i+1)
	}
	h.mu.Unlock()
	if i >= 0 {
		h.room.told(false)
	}
}

// takeBack cancels plain calls that were sent ahead: all that have no streams yet, and stand in
// grpc's queue before calls of confirmed callers, and n others, the oldest. They have no side
// effects, and are made again.
func (h *halfOpen) takeBack(n int) {
	h.mu.Lock()
	var calls []*aheadCall
	for _, c := range h.ahead {
		if c.opened.Load() {
			if n--; n < 0 {
				continue
			}
		}
		c.taken = true
		calls = append(calls, c)
	}
	h.mu.Unlock()
	for _, c := range calls {
		h.removeAhead(c)
		c.cancel()
	}
}

// takenBack reports whether that was done to a call.
func (h *halfOpen) takenBack(c *aheadCall) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return c.taken
}

// hold notes that a stream of a confirmed caller is open.
func (h *halfOpen) hold(s *specStream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.counted = countedFirm
}

// remove takes a stream that was resolved off the list. It may be called again.
func (h *halfOpen) remove(s *specStream) {
	if h.unlist(s) {
		h.room.told(!s.method.pure)
	}
}

func (h *halfOpen) unlist(s *specStream) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !s.listed {
		return false
	}
	s.listed = false
	h.count.Add(-1)
	if s.older == nil {
		h.first = s.newer
	} else {
		s.older.newer = s.newer
	}
	if s.newer == nil {
		h.last = s.older
	} else {
		s.newer.older = s.older
	}
	s.older, s.newer = nil, nil
	return true
}

// giveWay ends a stream for a plain call: the oldest one whose result is in, or, if no result is,
// the oldest of all, whose call is made again later; if there is none, a call that was sent plainly
// ahead. While one is on its way out none else is ended.
func (h *halfOpen) giveWay() {
	if h.anyLeaving() {
		return
	}
	h.takeBack(0)
	if s := h.answered(); s != nil {
		h.dismiss(s)
	} else if s := h.victim(); s == nil {
		h.takeBack(1)
	} else if !s.evict(neededElsewhere) {
		h.spare(s)
	}
}

// relent ends all streams whose results are in, and the oldest of the others, for a call of which
// nobody knows whether it waits for a stream. grpc hands a stream out to any of those who wait, so
// speculative calls do not ask for one meanwhile.
func (h *halfOpen) relent() {
	h.room.relents()
	for _, s := range h.allAnswered() {
		h.dismiss(s)
	}
	h.giveWay()
}

const neededElsewhere = "its stream was needed for another call"

func (h *halfOpen) anyLeaving() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leaving != nil || h.room.anyLeaving()
}

// victim returns the oldest stream, to be aborted for a plain call although its result is not in.
func (h *halfOpen) victim() *specStream {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := h.first; s != nil && h.leaving == nil; s = s.newer {
		if s.opened.Load() {
			h.leaving = s
		}
	}
	return h.leaving
}

// answered returns the oldest stream whose result is in, or nil.
func (h *halfOpen) answered() *specStream {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.idle {
		return s
	}
	return nil
}

// unanswered returns the oldest stream that is open and does not end yet, or nil if there is none,
// or one is on its way out already, see giveWay.
func (h *halfOpen) unanswered() *specStream {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leaving != nil {
		return nil
	}
	s := h.first
	for s != nil && (s.makesRoom || !s.opened.Load()) {
		s = s.newer
	}
	return s
}

// allAnswered returns all of those.
func (h *halfOpen) allAnswered() []*specStream {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(h.idle)
}

// idle yields the streams whose results are in, the oldest first. Under mu.
func (h *halfOpen) idle(yield func(*specStream) bool) {
	for s := h.first; s != nil; s = s.newer {
		if s.answered.Load() && !s.makesRoom {
			if !yield(s) {
				return
			}
		}
	}
}

// dismiss ends a stream whose result is in to make room. Nothing is lost by that.
func (h *halfOpen) dismiss(s *specStream) {
	h.mu.Lock()
	again := s.makesRoom
	s.makesRoom = true
	h.mu.Unlock()
	if again {
		return
	}
	h.room.leaves(1)
	if s.evict(neededElsewhere) {
		return
	}
	h.mu.Lock()
	left := s.makesRoom
	s.makesRoom = false
	h.mu.Unlock()
	if left {
		h.room.leaves(-1)
	}
}

// yield takes back the speculative streams that are still to be opened and resets n of the others
// for calls of confirmed callers, those whose results are in and then the oldest. Their places are
// free at once, not a round trip later.
func (h *halfOpen) yield(n int) {
	var unopened, answered, waiting []*specStream
	h.mu.Lock()
	for s := h.first; s != nil; s = s.newer {
		switch {
		case !s.opened.Load():
			unopened = append(unopened, s)
		case s.answered.Load():
			answered = append(answered, s)
		default:
			waiting = append(waiting, s)
		}
	}
	h.mu.Unlock()
	opened := append(answered, waiting...)
	h.takeBack(max(n-len(opened), 0))
	for _, s := range append(unopened, opened[:min(n, len(opened))]...) {
		if s.evict(neededElsewhere) {
			s.cancel()
		}
	}
}

// spare takes back the choice of a victim that was resolved meanwhile.
func (h *halfOpen) spare(s *specStream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leaving == s {
		h.leaving = nil
	}
}

// enter waits until there is room for a speculative stream, or the caller's word
// is given. It returns what was lacking if it is given first.
func (h *halfOpen) enter(a *driver.Attempt, keeps bool) lack {
	p, why := h.room.enter(keeps)
	if p == nil {
		a.Limited(why.by)
		return why
	}
	if p.done != nil {
		if why.most > 0 {
			a.Limited(why.by)
		}
		a.OnResolve(func(bool) { h.room.leave(p) })
		<-p.done
		if why.most == 0 && p.why.most > 0 { // it has become known that it was a limit
			a.Limited(p.why.by)
		}
		if !p.admitted {
			return p.why
		}
		a.Begin()
	}
	return lack{}
}

// relieve watches a call that needs a stream now: from patience on, as long as
// the returned function has not been called, half-open streams are aborted, one
// after the other. Their calls are made plainly later, so nothing is lost but
// time, and the call may be the one that their confirmation depends on.
func (c *ClientConn) relieve() (done func()) {
	if c.half.count.Load() == 0 {
		return func() {}
	}
	c.makeRoom()
	return c.whileWaiting(patience, func() (again bool) {
		c.half.giveWay()
		return true
	})
}

// makeRoom ends as many speculative streams as calls of confirmed callers lack: those whose results
// are in, and then the oldest. A plain client's calls would have these streams now.
func (c *ClientConn) makeRoom() {
	for range c.half.room.crowd() {
		if s := c.half.answered(); s != nil {
			c.half.dismiss(s)
		} else if s := c.half.unanswered(); s != nil {
			c.half.dismiss(s)
			if c.half.room.mayReset() {
				s.cancel() // else its place is free a round trip later
			}
		} else {
			return
		}
	}
}

// whileWaiting calls act whenever the connection stood still for d, until act
// returns false or the returned function is called.
func (c *ClientConn) whileWaiting(d time.Duration, act func() (again bool)) (done func()) {
	r := &relief{conn: c, act: act, every: d / looks}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look()
	r.timer = time.AfterFunc(r.every, r.tick)
	return r.stop
}

type relief struct {
	conn  *ClientConn
	act   func() (again bool)
	every time.Duration

	mu      sync.Mutex
	timer   *time.Timer
	opened  uint32 // streams opened when it looked last
	ready   bool   // the connection, then
	still   int    // looks without a change
	stopped bool
}

// look notes what the connection does.
func (r *relief) look() {
	r.opened = r.conn.half.opened.Load()
	r.ready = r.conn.cc.GetState() == connectivity.Ready
}

func (r *relief) tick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return
	}
	opened, ready := r.opened, r.ready
	r.look()
	if r.still++; !ready || !r.ready || opened != r.opened {
		r.still = 0
	}
	if r.still == looks {
		r.still = 0
		if !r.act() {
			return
		}
	}
	r.timer.Reset(r.every)
}

func (r *relief) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	r.timer.Stop()
}

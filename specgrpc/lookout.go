package specgrpc

import (
	"runtime"
	"time"
)

const (
	// lookEvery is how often the calls that wait for a stream are looked at where no limit of the
	// peer's is known, and sureAfter for how long they wait in vain if it must have one.
	lookEvery = 10 * time.Millisecond
	sureAfter = 2 * lookEvery
	// recheckEvery is how often where a limit is known, and shows in one look.
	recheckEvery = 5 * time.Millisecond
	// slowestLook is how rarely they are looked at on a busy machine.
	slowestLook = time.Second
)

// lookout finds out how many streams the peer admits at once. It tells grpc and nobody else, and
// a call that waits for a stream may only wait for a processor. So a connection is taken for full
// only if a call has waited from one look to the next, no more streams were opened in between
// than had ended, and both looks came in time: a goroutine whose timer is late, or that does not
// run on at once after giving way, is on a busy machine, which is given more time. All is under
// the room's mutex.
type lookout struct {
	on            bool
	now           look
	before, after int           // calls that wait for a stream, since before the last look and since then
	flow          int           // streams opened, less those that have ended
	flowed        int           // that, at the last look
	stood         time.Duration // for how long calls have been waiting in vain
	period        time.Duration
	due           time.Time
	timer         *time.Timer
	steady        bool // the last look came in time, on a ready connection
}

// look numbers the looks.
type look uint32

// answered notes that a call waits no longer that has waited since then.
func (l *lookout) answered(since look, stream bool) {
	if since == l.now {
		l.after--
	} else {
		l.before--
	}
	if stream {
		l.flow++
	}
}

// asks notes that a call is about to wait for a stream. Only where there is speculation, or was
// of late, does it matter for how long. Under mu.
func (r *room) asks() look {
	r.lookout.after++
	r.lookOut()
	return r.lookout.now
}

// lookOut begins to look at the calls that wait if there is speculation. Under mu.
func (r *room) lookOut() {
	if l := &r.lookout; !l.on && r.speculates() {
		now := time.Now()
		l.on, l.stood, l.steady, l.flowed = true, 0, r.ready(), l.flow
		l.next(now, r.unhurried(now), r.look)
	} else if l.on && !r.streams.sure && l.period == lookEvery && r.unhurried(time.Now()) < lookEvery {
		l.next(time.Now(), growEvery, r.look) // a call has come that waits for it
	}
}

// unhurried is how often to look on a machine that is not busy. Under mu.
func (r *room) unhurried(now time.Time) time.Duration {
	switch {
	case r.streams.sure:
		return recheckEvery
	case !r.growing(now):
		return lookEvery
	case r.lookout.on && !r.lookout.steady && !r.ready(): // it takes as long as it takes to connect
		return min(lookEvery, max(growEvery, r.lookout.period*5/4))
	}
	return growEvery
}

func (l *lookout) next(now time.Time, period time.Duration, look func()) {
	l.period, l.due = period, now.Add(period)
	if l.timer == nil {
		l.timer = time.AfterFunc(period, look)
	} else {
		l.timer.Reset(period)
	}
}

// look looks at the calls that wait for a stream, as long as there are any.
func (r *room) look() {
	runtime.Gosched()
	now, ready := time.Now(), r.ready()
	r.mu.Lock()
	l := &r.lookout
	late := now.Sub(l.due)
	steady := ready && late <= l.period/5
	inVain := steady && l.steady && l.before > 0 && l.flow <= l.flowed
	if inVain {
		l.stood += l.period
	} else {
		l.stood = 0
	}
	known, full, resets := r.streams.sure, false, -1
	switch streams := r.open - r.opening - r.unseen; {
	case !ready: // the next connection may have another one
		r.streams, r.start, r.seen = bound{}, slowStart{}, 0
	case l.stood >= sureAfter, inVain && known:
		full, resets = true, 0
		r.streams.learn(streams, now)
		r.seen = streams
		if !known {
			r.flood, r.floodEnd = r.wanting-len(r.line), l.now
		}
		l.stood, r.start = 0, slowStart{}
	case r.streams.most > 0 && streams > r.streams.most: // it is higher
		r.streams.most = streams
	case !known && l.stood >= suspectAfter && l.period < lookEvery && r.wanting > len(r.line):
		r.streams.suspect(streams, now)
		resets = r.yields()
	case !known && !inVain:
		r.grow(now)
	}
	l.steady, l.flowed = steady, l.flow
	l.before, l.after = l.before+l.after, 0
	l.now++
	r.serve()
	if l.on = l.before > 0 || !r.streams.sure && len(r.queue) > 0; l.on {
		l.next(now, max(r.unhurried(now), min(10*late, slowestLook)), r.look)
	}
	r.mu.Unlock()
	if resets >= 0 {
		r.yield(resets)
	}
	if full {
		r.full()
	}
}

package specgrpc

import (
	"runtime"
	"time"
)

const (
	// lookEvery is how often the calls that wait for a stream are looked at where no limit of the
	// peer's is known, and sureAfter after how many looks in a row without change it must have one.
	lookEvery = 10 * time.Millisecond
	sureAfter = 2
	// recheckEvery is the same where a limit is known, and shows in one look.
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
	before, after int // calls that wait for a stream, since before the last look and since then
	opened, ended int // streams, since the last look
	still         int // looks in a row without change
	period        time.Duration
	due           time.Time
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
		l.opened++
	}
}

// asks notes that a call is about to wait for a stream. Only where there is speculation, or was
// of late, does it matter for how long. Under mu.
func (r *room) asks() look {
	l := &r.lookout
	l.after++
	if !l.on && r.speculates() {
		l.on, l.still, l.steady, l.opened, l.ended = true, 0, r.ready(), 0, 0
		l.next(time.Now(), r.unhurried(), r.look)
	}
	return l.now
}

// unhurried is how often to look on a machine that is not busy. Under mu.
func (r *room) unhurried() time.Duration {
	if r.streams.most > 0 {
		return recheckEvery
	}
	return lookEvery
}

func (l *lookout) next(now time.Time, period time.Duration, look func()) {
	l.period, l.due = period, now.Add(period)
	time.AfterFunc(period, look)
}

// look looks at the calls that wait for a stream, as long as there are any.
func (r *room) look() {
	runtime.Gosched()
	now, ready := time.Now(), r.ready()
	r.mu.Lock()
	l := &r.lookout
	late := now.Sub(l.due)
	steady := ready && late <= l.period/5
	if steady && l.steady && l.before > 0 && l.opened <= l.ended {
		l.still++
	} else {
		l.still = 0
	}
	full := l.still >= sureAfter || l.still > 0 && r.streams.most > 0
	switch streams := r.open - r.opening; {
	case !ready: // the next connection may have another one
		r.streams = bound{}
	case full:
		r.streams.learn(streams, now)
		l.still = 0
	case r.streams.most > 0 && streams > r.streams.most: // it is higher
		r.streams.most = streams
	}
	l.steady, l.opened, l.ended = steady, 0, 0
	l.before, l.after = l.before+l.after, 0
	l.now++
	r.serve()
	if l.on = l.before > 0; l.on {
		l.next(now, max(r.unhurried(), min(10*late, slowestLook)), r.look)
	}
	r.mu.Unlock()
	if full {
		r.full()
	}
}

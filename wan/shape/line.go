package shape

import (
	"bytes"
	"sync"
	"time"
)

// windowBytes is how much of one direction of a connection may be written and not yet read; then
// Write waits.
const windowBytes = 4 << 20

// keepBytes is the largest buffer that an idle line keeps.
const keepBytes = 64 << 10

// A sign is what travels on a line beside bytes.
type sign uint8

const (
	signOpen  sign = 1 << iota // the end of the handshake: the server's Accept may return
	signClose                  // no bytes follow
	signReset                  // the connection is gone
)

// A mark is a part of a line that arrives at one time.
type mark struct {
	due   time.Duration
	end   int64 // bytes of the line up to here have arrived then
	signs sign
}

// A line carries bytes of one direction of a connection, in order: they are written, leave, arrive,
// and are taken.
type line struct {
	link *link
	when *schedule
	// arrive is told, without locks, that bytes or signs have arrived. Calls may overlap: what
	// arrived first may be told last.
	arrive func(signs sign)

	mu sync.Mutex
	// Invariant: taken <= arrived <= left <= written, and buf holds the bytes from taken to
	// written.
	taken, arrived, left, written int64
	buf                           bytes.Buffer
	flying                        []mark // of what left and has not arrived, by due
	last                          time.Duration
	held                          sign // signs that wait to leave, after all bytes
	event                         *event
	err                           error // why nothing can be written any more, or nil
	dropped                       bool  // nothing is carried any more

	// room is signalled when the writer may go on.
	room chan struct{}
	// ready is signalled when the reader may look.
	ready chan struct{}
}

func newLine(l *link, when *schedule) *line {
	n := &line{link: l, when: when, room: make(chan struct{}, 1), ready: make(chan struct{}, 1)}
	n.event = newEvent(n.fire)
	return n
}

// write appends what fits of p.
func (l *line) write(p []byte) (n int, err error) {
	l.mu.Lock()
	if l.err != nil {
		defer l.mu.Unlock()
		return 0, l.err
	}
	n = min(len(p), int(windowBytes-(l.written-l.taken)))
	if n > 0 {
		l.buf.Write(p[:n])
		l.written += int64(n)
	}
	l.leaveAndUnlock()
	return n, nil
}

// signal lets s leave after all bytes that were written; further writes return err, unless it is
// nil. It does nothing on a line that was dropped.
func (l *line) signal(s sign, err error) {
	l.mu.Lock()
	if !l.dropped {
		l.held |= s
	}
	if l.err == nil {
		l.err = err
	}
	l.leaveAndUnlock()
}

// heal lets what was held by a link that was down leave.
func (l *line) heal() {
	l.mu.Lock()
	l.leaveAndUnlock()
}

// cut loses what has not left yet, and lets a reset leave behind what has.
func (l *line) cut(err error) {
	l.mu.Lock()
	if !l.dropped {
		l.buf.Truncate(int(l.left - l.taken))
		l.written = l.left
		l.held = l.held&signOpen | signReset
	}
	if l.err == nil {
		l.err = err
	}
	l.leaveAndUnlock()
}

// leaveAndUnlock puts on the way what waits, unless the link is down. What takes no time arrives
// before it returns.
func (l *line) leaveAndUnlock() {
	now := l.when.now()
	idle := len(l.flying) == 0
	arrived, here := sign(0), false
	for l.left < l.written || l.held != 0 {
		left, due, healed := l.link.send(now, int(l.written-l.left))
		if healed != nil {
			break
		}
		l.left += int64(left)
		var signs sign
		if l.left == l.written {
			signs, l.held = l.held, 0
		}
		l.last = max(l.last, due)
		if l.last <= now && len(l.flying) == 0 {
			l.arrived = l.left
			arrived |= signs
			here = true
			continue
		}
		l.fly(mark{due: l.last, end: l.left, signs: signs})
	}
	if idle && len(l.flying) > 0 {
		l.when.at(l.event, l.flying[0].due)
	}
	l.mu.Unlock()
	if here {
		l.arrive(arrived)
	}
}

// fly adds a mark. l.mu is held.
func (l *line) fly(m mark) {
	if n := len(l.flying); n > 0 && l.flying[n-1].due == m.due {
		l.flying[n-1].end = m.end
		l.flying[n-1].signs |= m.signs
		return
	}
	l.flying = append(l.flying, m)
}

// fire is called when the first mark is due.
func (l *line) fire(now time.Duration) {
	l.mu.Lock()
	var signs sign
	n := 0
	for n < len(l.flying) && l.flying[n].due <= now {
		l.arrived = l.flying[n].end
		signs |= l.flying[n].signs
		n++
	}
	if n == len(l.flying) {
		l.flying = l.flying[:0]
	} else {
		l.flying = l.flying[n:]
		l.when.at(l.event, l.flying[0].due)
	}
	dropped := l.dropped
	l.mu.Unlock()
	if n > 0 && !dropped {
		l.arrive(signs)
	}
}

// take calls f with bytes that have arrived, which may be none; f returns how many of them it has
// used.
func (l *line) take(f func(p []byte) int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := f(l.buf.Bytes()[:l.arrived-l.taken])
	if n == 0 {
		return
	}
	l.buf.Next(n)
	l.taken += int64(n)
	if l.buf.Len() == 0 && l.buf.Cap() > keepBytes {
		l.buf = bytes.Buffer{}
	}
	notify(l.room)
}

// drop ends the line: what it carries is lost and nothing arrives any more.
func (l *line) drop(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	l.dropped = true
	l.flying, l.held = nil, 0
	l.taken, l.arrived, l.left = l.written, l.written, l.written
	l.buf = bytes.Buffer{}
	l.when.cancel(l.event)
	notify(l.room)
	notify(l.ready)
}

// notify wakes one goroutine that waits on c, now or later.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

package foresay

import (
	"time"
)

// What a task saves is how much later a clock would have shown its result without
// speculation. The engine cannot run it twice, but it knows what the run that
// stands waited for: between its waits the code takes its own time, which is the
// same either way, and each wait would have taken what was waited for, begun when
// the code came there. So it goes through the run's lanes once more with a clock
// of its own, on which a call takes from its being sent to its answer, a barrier
// and a wait for the caller nothing, and a wait for other lanes until the last of
// them has ended, on that clock. A call that was held until its caller was
// confirmed, and one that the lane's code never waited for, come out right: they
// take what they take, after what went before.

// lanePath is what a lane's code waited for, and the difference between the two
// clocks. Under the task's mu.
type lanePath struct {
	pauses []pause
	forked int       // how many the parent had when it forked this lane
	now    progress  // what it waits for, if that is known
	ended  time.Time // its code, zero for the main lane, whose end is the run's
	unused bool      // it was ended because nobody needed it
	// late[i] is how much later the code would have come past the first i pauses, as far as that is known.
	late []time.Duration
}

// trail returns what is known of the lane's path, for which there is only room if
// somebody counts what is saved. Under mu.
func (l *lane) trail() *lanePath {
	if l.path == nil {
		l.path = new(lanePath)
	}
	return l.path
}

// pause is a wait of a lane's code: for a call, for lanes, for a future of the
// run, or for what Memo remembers, which took so long. None of them: a barrier.
type pause struct {
	began, ended time.Time
	call         *call
	lanes        []*lane
	future       *future
	took         time.Duration
	due          time.Time // the end of a time limit of the code's own; zero if it has none
	gaveUp       bool      // the code was told that the limit was over
}

// pause notes that the lane's code waited since then, if somebody counts. Under mu.
func (l *lane) pause(began time.Time, p pause) {
	if l.path != nil {
		l.trail().now = progress{}
	}
	if began.IsZero() {
		return
	}
	p.began, p.ended = began, time.Now()
	l.trail().pauses = append(l.trail().pauses, p)
	l.timing.passed.Store(int32(len(l.trail().pauses)))
}

// account notes that the lane's code has the answer to a call that it asked for
// then. Under mu.
func (l *lane) account(c *call, began, due time.Time) { l.pause(began, pause{call: c, due: due}) }

// remembered notes that the lane's code has a value that Memo computed.
func (l *lane) remembered(began time.Time, m *memo) {
	l.run.task.mu.Lock()
	defer l.run.task.mu.Unlock()
	l.pause(began, pause{took: m.took})
}

// left notes that the lane's code has ended.
func (l *lane) left() {
	l.run.task.mu.Lock()
	defer l.run.task.mu.Unlock()
	l.trail().ended, l.trail().unused = time.Now(), l.givenUp()
}

// plainEnd returns when the run would have ended without speculation, had it begun
// when it did. Under mu.
func (r *run) plainEnd() time.Time {
	late, _ := r.main.late(len(r.main.trail().pauses))
	end := r.left.Add(late)
	for _, l := range r.forked { // those that nobody waited for, too
		if !l.trail().unused {
			ended, _ := l.plainEnd()
			end = later(end, ended)
		}
	}
	return end
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// plainEnd returns when the lane's code would have ended, if that is known. Under mu.
func (l *lane) plainEnd() (end time.Time, known bool) {
	late, known := l.late(len(l.trail().pauses))
	return l.trail().ended.Add(late), known && !l.trail().ended.IsZero()
}

// late returns how much later the lane's code would have come past its first n
// pauses. A pause whose plain length is not known yet counts with its real one. It asks
// for those of other lanes that came before these, so that it never asks in a circle.
// Under mu.
func (l *lane) late(n int) (late time.Duration, known bool) {
	p := l.trail()
	known = true
	if len(p.late) > 0 {
		late = p.late[min(n, len(p.late)-1)]
	} else {
		if l.parent != nil {
			late, known = l.parent.late(p.forked)
		}
		if known {
			p.late = append(make([]time.Duration, 0, len(p.pauses)+1), late)
		}
	}
	for i := max(len(p.late)-1, 0); i < n; i++ {
		w := &p.pauses[i]
		end, ok := w.plainEnd(w.began.Add(late))
		if ok {
			late = end.Sub(w.ended)
		}
		if known = known && ok; known {
			p.late = append(p.late, late)
		}
	}
	return late, known
}

// plainEnd returns when what is waited for from some moment on would have been
// there, if that is known. Under mu.
func (w *pause) plainEnd(from time.Time) (end time.Time, known bool) {
	lanes := w.lanes
	switch {
	case w.call != nil:
		return w.call.plainEnd(from)
	case w.future != nil:
		if !isClosed(w.future.ready) {
			return from, false
		}
		lanes = w.future.lanes
	}
	end, known = from.Add(w.took), true
	for _, l := range lanes {
		ended, ok := l.plainEnd()
		end, known = later(end, ended), known && ok
	}
	return end, known
}

// plainEnd returns when the call would have been answered, made at some moment, if
// that is known. A future of another task runs already. Under mu.
func (c *call) plainEnd(from time.Time) (end time.Time, known bool) {
	if ft, ok := c.op.Transport.(*futureTransport); ok {
		if !ft.f.plainEnd.IsZero() {
			return later(from, ft.f.plainEnd), true
		}
		return later(from, c.finished), c.answered()
	}
	took, known := c.took()
	return from.Add(took), known
}

// took returns how long the call's last attempt took to be answered, if it is. A server
// that held its answer back until the caller's word came did so without need. Under mu.
func (c *call) took() (took time.Duration, known bool) {
	a := c.attempt
	switch {
	case a == nil:
		return 0, false
	case !a.answered.IsZero():
		return a.answered.Sub(a.launched), true
	case c.answered():
		return c.finished.Sub(later(a.launched, a.firm)), true
	}
	return 0, false
}

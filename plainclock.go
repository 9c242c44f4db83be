package foresay

import (
	"context"
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
	ended  time.Time // its code, zero for the main lane, whose end is the run's
	unused bool      // it was ended because nobody needed it
	// late[i] is how much later the code would have come past the first i pauses.
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
}

// pause notes that the lane's code waited since then, if somebody counts. Under mu.
func (l *lane) pause(began time.Time, p pause) {
	if began.IsZero() {
		return
	}
	p.began, p.ended = began, time.Now()
	l.trail().pauses = append(l.trail().pauses, p)
}

// account notes that the lane's code has the answer to a call that it asked for
// then. Under mu.
func (l *lane) account(c *call, began time.Time) { l.pause(began, pause{call: c}) }

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
	if now := l.run.task.clock(); !now.IsZero() {
		l.trail().ended, l.trail().unused = now, l.givenUp()
	}
}

// plainEnd returns when the run would have ended without speculation, had it begun
// when it did. Under mu.
func (r *run) plainEnd() time.Time {
	end := r.left.time().Add(r.main.late(len(r.main.trail().pauses)))
	for _, l := range r.forked { // those that nobody waited for, too
		if !l.trail().unused {
			end = later(end, l.plainEnd())
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

// plainEnd returns when the lane's code would have ended. Under mu.
func (l *lane) plainEnd() time.Time {
	return l.trail().ended.Add(l.late(len(l.trail().pauses)))
}

// late returns how much later the lane's code would have come past its first n
// pauses. It asks for those of other lanes that came before these, so that it
// never asks in a circle. Goroutines of the code's own share their lane, so its
// pauses may overlap: such begin from what was over before them, and the code is
// taken to go on when the last of them ends. Under mu.
func (l *lane) late(n int) time.Duration {
	p := l.trail()
	if len(p.late) == 0 {
		start := time.Duration(0)
		if l.parent != nil {
			start = l.parent.late(p.forked)
		}
		p.late = append(make([]time.Duration, 0, len(p.pauses)+1), start)
	}
	for i := len(p.late) - 1; i < n; i++ {
		w := &p.pauses[i]
		before := i // pauses that were over when this one began
		for before > 0 && p.pauses[before-1].ended.After(w.began) {
			before--
		}
		end := w.plainEnd(w.began.Add(p.late[before]))
		for j := before; j < i; j++ {
			end = later(end, p.pauses[j].ended.Add(p.late[j+1]))
		}
		p.late = append(p.late, end.Sub(w.ended))
	}
	return p.late[n]
}

// plainEnd returns when what is waited for from some moment on would have been
// there. Under mu.
func (w *pause) plainEnd(from time.Time) time.Time {
	lanes := w.lanes
	switch {
	case w.call != nil:
		return w.call.plainEnd(from)
	case w.future != nil:
		lanes = w.future.lanes
	}
	end := from.Add(w.took)
	for _, l := range lanes {
		end = later(end, l.plainEnd())
	}
	return end
}

// plainEnd returns when the call would have been answered, made at some moment. A
// future of another task runs already. Under mu.
func (c *call) plainEnd(from time.Time) time.Time {
	if ft, ok := c.op.Transport.(*futureTransport); ok {
		if !ft.f.plainEnd.IsZero() {
			return later(from, ft.f.plainEnd)
		}
		return later(from, c.finished.time())
	}
	return from.Add(c.took())
}

// took returns how long the call's last attempt took to be answered. If its time limit ran
// out it took that long, however often it was sent meanwhile. Under mu.
func (c *call) took() time.Duration {
	a := c.attempt
	switch {
	case a == nil:
		return 0
	case c.ended == context.DeadlineExceeded && c.limit > 0:
		return c.limit
	case a.answered != 0:
		return a.answered.sub(a.launched)
	default:
		return c.finished.sub(a.launched)
	}
}

package engine

import (
	"context"
	"slices"
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
//
// A server's handler whose caller stands on a guess waits for the caller's word, and
// its caller has to know for how long. That is told by a second clock, which shows
// when the run would have ended had the caller been right from the start, with what
// the handler itself guesses as it is: there a barrier waits until that is confirmed.

// clock is one of the two.
type clock uint8

const (
	unguessed clock = iota // nobody guesses
	confident              // the caller does not
	clocks
)

// lanePath is what a lane's code waited for, and the difference between the two
// clocks. Under the task's mu.
type lanePath struct {
	pauses []pause
	forked int       // how many the parent had when it forked this lane
	ended  time.Time // its code, zero for the main lane, whose end is the run's
	unused bool      // it was ended because nobody needed it
	// late[c][i] is how much later the code would have come past the first i pauses,
	// by clock c.
	late [clocks][]time.Duration
	// owed[i] is when what the code guessed before its pause i would have been confirmed, by
	// the confident clock; the last is for all.
	owed []time.Time
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
	guessed      bool // it went on with a prediction
}

// pause notes that the lane's code waited since then, if somebody counts. Under mu.
func (l *lane) pause(began time.Time, p pause) {
	if began.IsZero() {
		return
	}
	p.began, p.ended = began, time.Now()
	l.trail().pauses = append(l.trail().pauses, p)
}

// account notes that the lane's code has an answer to a call that it asked for then. Under mu.
func (l *lane) account(c *call, began time.Time, guessed bool) {
	l.pause(began, pause{call: c, guessed: guessed})
}

// waitedLonger notes that the lane's code has the answer to a call only now.
func (l *lane) waitedLonger(c *call) {
	l.run.task.mu.Lock()
	defer l.run.task.mu.Unlock()
	if l.path == nil {
		return
	}
	for i := range slices.Backward(l.path.pauses) {
		if p := &l.path.pauses[i]; p.call == c {
			p.ended = time.Now()
			return
		}
	}
}

// remembered notes that the lane's code has a value that Memo computed.
func (l *lane) remembered(began time.Time, m *memo) {
	l.run.task.mu.Lock()
	defer l.run.task.mu.Unlock()
	l.pause(began, pause{took: m.took})
}

// left notes that the lane's code has ended.
func (l *lane) left() {
	l.run.task.mu.Lock()
	defer l.run.task.unlock()
	l.run.rests()
	if now := l.run.task.clock(); !now.IsZero() {
		l.trail().ended, l.trail().unused = now, l.givenUp()
	}
}

// plainEnd returns when the run would have ended without speculation, had it begun
// when it did. Under mu.
func (r *run) plainEnd() time.Time { return r.end(unguessed) }

// end returns when the run would have ended by a clock. Under mu.
func (r *run) end(by clock) time.Time {
	end := r.left.time().Add(r.main.late(len(r.main.trail().pauses), by))
	owed := r.main.path.owes()
	for _, l := range r.forked { // those that nobody waited for, too, but for what plain code ends
		if !l.trail().unused && !l.future.isLost() {
			end, owed = later(end, l.end(by)), later(owed, l.path.owes())
		}
	}
	if by == confident {
		end = later(end, owed)
	}
	return end
}

// origin returns when the run would have begun had the caller been right from the start: one that
// was started since another was held up at a barrier would have been that other one. Under mu.
func (r *run) origin() moment {
	if o := r.tree.HeldUp(); o != nil {
		return o.Data.(*run).origin()
	}
	return r.began
}

// callersWait returns how long the handler, which has its result, waited for nothing but its
// caller's word. It is negative if the handler ended sooner than for a caller known to be right,
// who has it wait for the effects of its calls: it went on with their tentative answers. Under mu.
func (t *task) callersWait() time.Duration {
	return t.ledger.settled.time().Sub(t.winner.end(confident))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// end returns when the lane's code would have ended by a clock. Under mu.
func (l *lane) end(by clock) time.Time {
	return l.trail().ended.Add(l.late(len(l.trail().pauses), by))
}

// late returns how much later the lane's code would have come past its first n
// pauses. It asks for those of other lanes that came before these, so that it
// never asks in a circle. Goroutines of the code's own share their lane, so its
// pauses may overlap: such begin from what was over before them, and the code is
// taken to go on when the last of them ends. Under mu.
func (l *lane) late(n int, by clock) time.Duration {
	p := l.trail()
	late := p.late[by]
	if len(late) == 0 {
		start := time.Duration(0)
		if l.parent != nil {
			start = l.parent.late(p.forked, by)
		} else if by == confident {
			start = l.run.origin().sub(l.run.began)
		}
		if by == confident {
			owed := time.Time{}
			if l.parent != nil {
				owed = l.parent.path.owed[p.forked] // not what it guessed later
			}
			p.owed = append(p.owed, owed)
		}
		late = append(make([]time.Duration, 0, len(p.pauses)+1), start)
	}
	for i := len(late) - 1; i < n; i++ {
		w := &p.pauses[i]
		before := i // pauses that were over when this one began
		for before > 0 && p.pauses[before-1].overlaps(w) {
			before--
		}
		from := w.began.Add(late[before])
		if by == confident {
			p.owed = append(p.owed, p.owed[i])
		}
		var end time.Time
		switch {
		case w.call != nil && by == unguessed:
			end = w.call.plainEnd(from)
		case w.call != nil:
			end = w.confidentEnd(from, l)
		default:
			end = w.othersEnd(from, p, by)
		}
		for j := before; j < i; j++ {
			end = later(end, p.pauses[j].ended.Add(late[j+1]))
		}
		late = append(late, end.Sub(w.ended))
	}
	p.late[by] = late
	return late[n]
}

// overlaps reports whether a pause ended after a later one had begun: other code shares
// the lane. In a replay, whose code is answered at once, it shows where the call was made
// before the other had its answer, and not on a guess at that.
func (w *pause) overlaps(next *pause) bool {
	if w.ended.After(next.began) {
		return true
	}
	return w.call != nil && next.call != nil && next.call.attempt != nil && w.call.goneOn == 0 &&
		next.call.asked() < w.call.finished
}

// asked returns when code first asked for the call, as far as is known: it may have been held
// since. Under mu.
func (c *call) asked() moment {
	at := c.attempt.launched
	for _, m := range []moment{c.stopped, c.waiter.began} {
		if m != 0 {
			at = min(at, m)
		}
	}
	return at
}

// othersEnd returns when lanes, a value that is computed, or that which keeps a
// barrier closed would have been there for code that waits from some moment on. Under mu.
func (w *pause) othersEnd(from time.Time, p *lanePath, by clock) time.Time {
	lanes := w.lanes
	if w.future != nil {
		lanes = w.future.lanes
	}
	end := from.Add(w.took)
	for _, l := range lanes {
		end = later(end, l.end(by))
		if by == confident {
			p.owe(l.path.owes())
		}
	}
	if by == confident && w.took == 0 && w.lanes == nil && w.future == nil {
		end = later(end, p.owes())
	}
	return end
}

// owes returns when all that the code guessed so far would have been confirmed. Under mu.
func (p *lanePath) owes() time.Time {
	if len(p.owed) == 0 {
		return time.Time{}
	}
	return p.owed[len(p.owed)-1]
}

// owe notes that something would only have been confirmed then. Under mu.
func (p *lanePath) owe(confirmed time.Time) {
	last := len(p.owed) - 1
	p.owed[last] = later(p.owed[last], confirmed)
}

// confidentEnd returns when the code would have had the answer to a call that it made
// at some moment, by the confident clock: after the same time, less what it was held
// for, and what its server waited, on the caller's account only. Under mu.
func (w *pause) confidentEnd(from time.Time, l *lane) time.Time {
	c, p := w.call, l.path
	if c.attempt == nil {
		return from.Add(w.ended.Sub(w.began))
	}
	sent := c.attempt.launched.time()
	if l.run.origin() == l.run.began { // else the run asked when the one did whose place it took
		sent = later(w.began, sent)
	}
	held := max(0, min(sent.Sub(w.began), p.owes().Sub(from)))
	end := from.Add(held + max(0, c.result().time().Sub(sent)+c.plainlyMore))
	// A tentative answer is no guess here: a server whose caller is right has nothing to hold back.
	tentative := c.attempt.answered != 0 && !w.ended.Before(c.attempt.answered.time())
	if w.guessed && !tentative {
		p.owe(end)
		return from.Add(w.ended.Sub(w.began))
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

// result returns when the call's result was there, though it may have stood only later. Under mu.
func (c *call) result() moment {
	if a := c.attempt; a != nil && a.answered != 0 {
		return a.answered
	}
	return c.finished
}

// took returns how long the call's last attempt would have taken to be answered, had its
// server known from the start that the caller is right, and those that failed before it. If its
// time limit ran out it took that long, however often it was sent meanwhile. Under mu.
func (c *call) took() time.Duration {
	a := c.attempt
	switch {
	case a == nil:
		return 0
	case c.ended == context.DeadlineExceeded && c.limit > 0:
		return c.limit
	default:
		return max(0, c.result().sub(a.launched)+c.plainlyMore)
	}
}

// Failed tells that the attempt has failed in a way in which it is made again without speculation
// too: plain code would have waited for it as well, before the one that follows. Hold comes next.
func (a *Attempt) Failed() {
	c := a.call
	c.task.mu.Lock()
	defer c.task.mu.Unlock()
	if c.attempt == a {
		end := a.answered
		if end == 0 {
			end = now()
		}
		c.plainlyMore, c.failed = max(0, end.sub(a.launched)+c.plainlyMore), true
	}
}

// Served tells what the server of a speculative attempt said of the time that it took: how
// long it waited for its caller's word, and how long its commit hooks took after a result
// that stood only then. A server may say anything: neither took longer than the attempt has so far.
func (a *Attempt) Served(waited, hooks time.Duration) {
	c := a.call
	c.task.mu.Lock()
	defer c.task.mu.Unlock()
	if c.attempt == a {
		most := now().sub(a.launched)
		c.plainlyMore = min(hooks, most) - max(-most, min(waited, most))
	}
}

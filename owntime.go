package foresay

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/internal/spectree"
)

// A time limit that code sets for a part of its work runs in real time, which is
// neither that of plain code while the code is ahead with a guess or a record, nor
// while it waits for its guesses. What counts is plain time: when the clock of
// plainclock.go shows that the limit is over.
//
//   - A call's limit is what is left on that clock. It is known once the call's caller
//     is known to be right.
//   - When a guess is about to be confirmed, the runs that went on with it are looked
//     at. If what one of them has been told of its time limits is not what plain code
//     would have been told, or a limit ran out while the run waited only for the guess,
//     the guess is as good as wrong: the function runs again, takes no predictions, and
//     has its answers when plain code would have had them. In such a run both clocks
//     are the same.
//
// The engine does not make the code's contexts, and cannot ask one when it was made.
// But package context asks for the deadline of the context that one with a time limit
// is derived from. So lanes note when they are asked.

// timing is what is known of the times at which a lane's code made contexts.
type timing struct {
	mu      sync.Mutex
	passed  atomic.Int32 // the lane's pauses
	looking bool         // the engine itself asks for a deadline
	marks   []mark       // in order
}

// mark is a moment at which code may have made a context with a time limit.
type mark struct {
	at    time.Time
	after int // so many of the lane's pauses
}

// ownLimit is a deadline of a context that the code made, and when it was made.
type ownLimit struct {
	deadline time.Time
	lane     *lane
	after    int
	ctx      context.Context
}

// progress is what a lane's code waits for. Its due is zero without a time limit.
type progress struct {
	began, due time.Time
	call       *call // or nil: a barrier, or a future
}

// asked notes that somebody asked for the deadline of the lane's context.
func (l *lane) asked() {
	l.timing.mu.Lock()
	defer l.timing.mu.Unlock()
	if l.timing.looking {
		return
	}
	l.run.task.timed.Store(true)
	l.timing.marks = append(l.timing.marks, mark{at: time.Now(), after: int(l.timing.passed.Load())})
}

// deadlineOf returns the deadline of a context, which is not to count as made then.
func deadlineOf(ctx context.Context) (time.Time, bool) {
	l := laneOf(ctx)
	if l == nil {
		return ctx.Deadline()
	}
	look := func(on bool) {
		l.timing.mu.Lock()
		l.timing.looking = on
		l.timing.mu.Unlock()
	}
	look(true)
	defer look(false)
	return ctx.Deadline()
}

// due returns the deadline of ctx if it is earlier than the task's, and zero otherwise.
func (l *lane) due(ctx context.Context) time.Time {
	if ctx = withoutOffers(ctx); ctx == context.Context(&l.run.ctx) {
		return time.Time{}
	}
	d, ok := deadlineOf(ctx)
	if !ok {
		return time.Time{}
	}
	if whole, ok := l.run.task.ctx.Deadline(); ok && !d.Before(whole) {
		return time.Time{}
	}
	l.run.task.timed.Store(true)
	l.run.task.mu.Lock()
	defer l.run.task.mu.Unlock()
	l.madeAt(d, ctx)
	return d
}

// madeAt returns when the code made the context with this deadline, which the lane
// uses. Most contexts are made just before they are used first. Of one that is not it
// must be plain when it was made. Under mu.
func (l *lane) madeAt(deadline time.Time, ctx context.Context) *ownLimit {
	r := l.run
	for i := range r.limits {
		if r.limits[i].deadline.Equal(deadline) {
			return &r.limits[i]
		}
	}
	made := ownLimit{deadline, l, len(l.trail().pauses), ctx}
	if !l.timing.takeSince(made.after) {
		var lanes []*lane
		for p := l; p != nil; p = p.parent {
			lanes = append(lanes, p)
		}
		for _, p := range append(append(lanes, &r.main), r.forked...) {
			if after, ok := p.timing.take(deadline); ok {
				made.lane, made.after = p, after
				break
			}
		}
	}
	r.limits = append(r.limits, made)
	return &r.limits[len(r.limits)-1]
}

// takeSince reports whether the code may have made a context after so many pauses, of
// which nothing is known yet.
func (t *timing) takeSince(after int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.marks)
	if n == 0 || t.marks[n-1].after < after {
		return false
	}
	t.marks = t.marks[:n-1]
	return true
}

// take returns the last moment at which a context with this deadline was made.
func (t *timing) take(deadline time.Time) (after int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, m := range slices.Backward(t.marks) {
		if m.fits(deadline) {
			t.marks = slices.Delete(t.marks, i, i+1)
			return m.after, true
		}
	}
	return 0, false
}

// fits reports whether a context with this deadline was made just before the mark: if
// so, there were whole milliseconds left.
func (m *mark) fits(deadline time.Time) bool {
	left := deadline.Sub(m.at)
	return (-left%time.Millisecond+time.Millisecond)%time.Millisecond < 10*time.Microsecond
}

// leaves returns how much plain time was left of a limit when the lane's code had
// gone through so many pauses and the clock showed now, as far as is known. Nothing is
// left if it is not positive. Under mu.
func (l *lane) leaves(due, now time.Time, pauses int) (left time.Duration, known bool) {
	m := l.madeAt(due, nil)
	made, ok := m.lane.late(m.after)
	late, ok2 := l.late(pauses)
	return due.Sub(now) + made - late, ok && ok2
}

// limit returns how long plain code would let the call take from now on that the lane
// is about to make: 0 for no limit, 1 ns if no time is left.
func (l *lane) limit(due time.Time) time.Duration {
	if due.IsZero() {
		return 0
	}
	l.run.task.mu.Lock()
	defer l.run.task.mu.Unlock()
	left, _ := l.leaves(due, time.Now(), len(l.trail().pauses))
	return max(left, 1)
}

// overruns reports whether plain code would have been told at this pause of the lane
// that its time limit was over. Under mu.
func (l *lane) overruns(i int) (ended, known bool) {
	p := &l.trail().pauses[i]
	left, known := l.leaves(p.due, p.began, i)
	if left <= 0 || !known {
		return left <= 0, known
	}
	late, _ := l.late(i)
	start := p.began.Add(late)
	end, known := p.plainEnd(start)
	return end.Sub(start) > left, known
}

// tooLate reports whether the lane's last pause, whose result the code has not got yet,
// would have been over in plain time. Under mu.
func (l *lane) tooLate() bool {
	n := len(l.trail().pauses)
	if n == 0 || l.trail().pauses[n-1].due.IsZero() || l.run.tree.Speculative() {
		return false
	}
	ended, known := l.overruns(n - 1)
	if ended = ended && known; ended {
		l.trail().pauses[n-1].gaveUp = true
	}
	return ended
}

// mistimed reports whether a run that went on with a guess at the call was told
// something else of its time limits than plain code would have been. Under mu.
func (t *task) mistimed(c *call) bool {
	if !t.timed.Load() || t.shadowOf != nil {
		return false
	}
	for u := range c.tree.Guessed {
		if r := u.Run.Data.(*run); r.mistimed() {
			return true
		}
	}
	return false
}

func (r *run) mistimed() bool {
	if r.main.mistimed() {
		return true
	}
	for _, l := range r.forked {
		if l.mistimed() {
			return true
		}
	}
	return false
}

// mistimed reports the same of a lane's code. Under mu.
func (l *lane) mistimed() bool {
	for i := range l.trail().pauses {
		p := &l.trail().pauses[i]
		if p.due.IsZero() || p.call != nil && p.call.ended == context.DeadlineExceeded {
			continue
		}
		if ended, known := l.overruns(i); known && ended != p.gaveUp || !known && p.gaveUp {
			return true
		}
	}
	p := l.trail().now
	if p.began.IsZero() {
		return false
	}
	now := time.Now()
	for _, m := range l.run.limits {
		if m.ctx.Err() == context.Canceled { // nobody uses it any more
			continue
		}
		left, known := l.leaves(m.deadline, p.began, len(l.trail().pauses))
		if really := m.deadline.Sub(now); known && (left <= 0) != (really <= 0) {
			return true
		}
	}
	return !p.due.IsZero() && p.call == nil && l.astray(p) < 0
}

// astray returns by how much more real than plain time is left of the limit of the
// context that the code waits with and will go on with: by less, if negative. Small
// differences do not count. Under mu.
func (l *lane) astray(p progress) time.Duration {
	left, known := l.leaves(p.due, p.began, len(l.trail().pauses))
	more := time.Until(p.due) - left
	if !known || more.Abs() <= left/4 {
		return 0
	}
	return more
}

// catchUp waits, in code that is ahead of plain code, until its time limit has run as
// far as there.
func (l *lane) catchUp(ctx context.Context, p progress) {
	if p.due.IsZero() {
		return
	}
	l.run.task.mu.Lock()
	ahead := l.astray(p)
	l.run.task.mu.Unlock()
	if ahead <= 0 {
		return
	}
	timer := time.NewTimer(ahead)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-l.run.ctx.Done():
	}
}

// confirm tells a call's attempt that its caller was right, unless plain code would
// not have waited for the answer that it has. Under mu.
func (t *task) confirm(c *call, u *spectree.Use) {
	c.limit = plainLimit(u)
	if took, known := c.took(); known && c.limit != 0 && took > c.limit && !c.answered() {
		t.again(c)
		return
	}
	t.resolve(c, true)
}

// again has a call made once more, plainly: plain code would not have waited until
// its attempt had an answer. Under mu.
func (t *task) again(c *call) {
	a := c.attempt
	t.resolve(c, false)
	if !a.finished {
		t.todo = append(t.todo, duty{kind: dutyCancel, attempt: a})
	}
	c.attempts++
	c.attempt = &Attempt{call: c, op: c.op, number: c.attempts}
	t.launch(c.attempt)
}

// slow has the function run at the pace of plain code from now on. Under mu.
func (t *task) slow() {
	t.paced.Store(true)
	t.tree.Freeze()
}

// pace waits, in a run at the pace of plain code, until that would have had the answer.
// It returns an error if the code's own context ended before.
func (t *task) pace(ctx context.Context, l *lane, c *call, began time.Time) error {
	if !t.paced.Load() || began.IsZero() {
		return nil
	}
	t.mu.Lock()
	took, known := c.took()
	where := t.whereOf(c.tree)
	t.mu.Unlock()
	rest := took - time.Since(began)
	if !known || rest <= 0 {
		return nil
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.run.ctx.Done():
	case <-l.gone():
	case <-ctx.Done():
		if ctx.Err() == context.DeadlineExceeded && l.run.ctx.Err() == nil {
			return contextError(ctx, where)
		}
	}
	return nil
}

// begins notes what the lane's code begins to wait for. Under mu.
func (l *lane) begins(p progress) {
	if !p.began.IsZero() {
		l.trail().now = p
	}
}

// plainLimit returns the time limit that the code of a use set for the call, 0 for
// none, as far as it is known by now. Under mu.
func plainLimit(u *spectree.Use) time.Duration {
	if u == nil {
		return 0
	}
	w, _ := u.Data.(*waiter)
	if w == nil || w.due.IsZero() {
		return 0
	}
	left, _ := w.lane.leaves(w.due, w.began, w.after)
	return max(left, 1)
}

// past returns the error of a call that plain code would make with a context whose time
// limit is over, once that has ended here, too.
func (t *task) past(ctx context.Context, l *lane, op *Operation, s *spectree.CallSpec) error {
	due := l.due(ctx)
	if due.IsZero() {
		return nil
	}
	t.mu.Lock()
	left, known := l.leaves(due, time.Now(), len(l.trail().pauses))
	over := known && left <= 0 && !l.run.tree.Speculative()
	if over {
		t.tree.Freeze()
	}
	t.unlock()
	if !over {
		return nil
	}
	t.awaitEnd(ctx, l, true)
	if ctx.Err() == nil || t.late(ctx, l, s) {
		return nil
	}
	return contextError(ctx, t.where(op, 0))
}

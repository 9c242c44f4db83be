package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/foresay/foresay/internal/spectree"
)

// Code ends contexts of its own, by a time limit or by their cancel functions, and
// sees that they have ended: calls fail, and so do those that it makes with them
// afterwards. A replay makes such contexts anew. Their time limits begin anew, too,
// while the calls are answered at once. So what the record tells, and what the
// replay's contexts tell, has to be made to agree:
//
//   - A call whose result was the end of its context has that result in a replay
//     once the replay's context has ended. Once a replay has to wait for a time limit
//     that ran out, the task takes no predictions any more: no replay has to again.
//   - A call that the right run went on without, since its context had ended, is not
//     made in a replay either, once what followed has taken effect.
//   - A call is not made with a context that has ended. What code waited for its
//     guesses does not count against its time limits: without speculation it would
//     not have waited. Where that cannot be told the function is run again, see outwait.

// limitOf returns the time limit that the code of a use set for the call, 0 for none.
// Under mu.
func limitOf(u *spectree.Use) time.Duration {
	if u == nil {
		return 0
	}
	w, _ := u.Data.(*waiter)
	if w == nil {
		return 0
	}
	return w.limit
}

// due returns when the time limit of the code's own runs out, for an attempt that
// the code waits for from now on; zero if there is none.
func (c *call) due() time.Time {
	if c.limit == 0 {
		return time.Time{}
	}
	return time.Now().Add(c.limit)
}

// ended returns with what the code's own context ended if that is why the attempt
// failed, and nil otherwise.
func (a *Attempt) ended(err error) error {
	switch {
	case err == nil:
		return nil
	case a.cut:
		return context.Canceled
	case !a.due.IsZero() && !time.Now().Before(a.due):
		return context.DeadlineExceeded
	}
	return nil
}

// agree returns the result of a call to its code. If the result is the end of the
// code's own context, it waits until that has ended here, too.
func (t *task) agree(ctx context.Context, l *lane, c *call, v any, err error) (any, error) {
	if err == nil {
		return v, err
	}
	t.mu.Lock()
	ended := c.ended
	if b := l.run.belated(); b != nil && c.late {
		t.wait(ctx, l, b)
		if err := l.run.check(); err != nil {
			return nil, err
		}
	}
	t.mu.Unlock()
	byDeadline := ended == context.DeadlineExceeded
	if byDeadline {
		l.ranOut(ctx)
	}
	if ctx.Err() != nil {
		return v, err
	}
	if ended == nil || byDeadline && t.ownLimit(ctx, nil) == 0 {
		return v, err
	}
	if byDeadline {
		t.mu.Lock()
		t.tree.Freeze()
		t.unlock()
	}
	t.awaitEnd(ctx, l, byDeadline)
	l.waitedLonger(c)
	return v, err
}

// awaitEnd waits until the code's own context ends. Code that ended it before does so
// again within as long as the task has taken so far, if it repeats itself at all. Where
// it has not, it is not waited for as long again. The task is not stuck meanwhile: the
// wait ends by itself.
func (t *task) awaitEnd(ctx context.Context, l *lane, byDeadline bool) {
	t.mu.Lock()
	l.idle.Store(true)
	t.dog.ends++
	l.run.rests()
	t.unlock()
	defer func() {
		t.mu.Lock()
		l.idle.Store(false)
		t.dog.ends--
		t.unlock()
	}()
	var late <-chan time.Time
	if !byDeadline {
		most := endsWithin
		if !l.endless.Load() {
			most += time.Since(t.began)
		}
		timer := time.NewTimer(most)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-ctx.Done():
	case <-l.run.ctx.Done():
	case <-l.gone():
	case <-late:
		l.endless.Store(true)
	}
}

// endsWithin is how long is waited for what code did before, and may not do again.
const endsWithin = 250 * time.Millisecond

// giveWay waits, before a call that the right run went on without since the code's
// context had ended there, until it has ended here, and reports whether it has. It is
// called under mu.
func (t *task) giveWay(ctx context.Context, l *lane) (ended bool) {
	t.mu.Unlock()
	t.awaitEnd(ctx, l, false)
	ended = ctx.Err() != nil
	t.mu.Lock()
	return ended
}

// held is how long a lane's code had waited for its guesses when it first used a
// context with this deadline.
type held struct {
	deadline time.Time
	before   time.Duration
}

// ownLimit returns what ctx's deadline leaves if it is earlier than the task's,
// and 0 otherwise. Nothing is left if that is 1 ns. What the lane's code waited for
// its guesses, since it used that deadline first, does not count.
func (t *task) ownLimit(ctx context.Context, l *lane) time.Duration {
	if !t.bounded(ctx) {
		return 0
	}
	d, _ := ctx.Deadline()
	left := time.Until(d)
	if l != nil {
		t.mu.Lock()
		left += l.heldSince(d)
		t.mu.Unlock()
	}
	return max(left, 1)
}

// bounded reports whether ctx has a deadline earlier than the task's.
func (t *task) bounded(ctx context.Context) bool {
	d, ok := ctx.Deadline()
	whole, all := t.ctx.Deadline()
	return ok && (!all || d.Before(whole))
}

// sinceBegan returns ctx's deadline, counted from the task's beginning; 0 if it has none.
func (t *task) sinceBegan(ctx context.Context) time.Duration {
	d, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	if since := d.Sub(t.began); since != 0 {
		return since
	}
	return -1
}

// outwait deals with a time limit of the code's own that ran out, perhaps while the code
// waited only for its guesses, if it had any: once these are known to be right the
// function is run again, see spectree.Renew. It returns nil if the limit is to have run
// out.
func (l *lane) outwait(ctx context.Context) error {
	if ctx.Err() != context.DeadlineExceeded {
		return nil
	}
	return l.renew(ctx)
}

// renew has the function run again, without predictions, if ctx has a time limit of the
// code's own that may have run while the code waited only for its guesses.
func (l *lane) renew(ctx context.Context) error {
	t := l.run.task
	if l.givenUp() || !t.bounded(ctx) {
		return nil
	}
	t.mu.Lock()
	if err := l.run.check(); err != nil {
		return err
	}
	if !l.run.tree.Guessed() {
		t.mu.Unlock()
		return nil
	}
	if t.tree.Renew(l.tree); !l.run.tree.Speculative() {
		t.tree.RenewNow(l.tree)
		t.unlock()
		t.mu.Lock()
		err := l.run.check()
		if err == nil {
			t.mu.Unlock()
		}
		return err
	}
	return t.barrier(&l.run.ctx, l)
}

// heldSince returns how long the lane's code waited for its guesses since it first
// used this deadline. Under mu.
func (l *lane) heldSince(deadline time.Time) time.Duration {
	i := slices.IndexFunc(l.limits, func(h held) bool { return h.deadline.Equal(deadline) })
	switch {
	case i >= 0:
		return l.waited - l.limits[i].before
	case l.tree.Speculative():
		l.limits = append(l.limits, held{deadline, l.waited})
		l.limited.Store(true)
	}
	return 0
}

// ranOut notes that the code was told that its time limit is over: from then on it is,
// however long the code waited for its guesses.
func (l *lane) ranOut(ctx context.Context) {
	d, _ := ctx.Deadline()
	l.run.task.mu.Lock()
	defer l.run.task.mu.Unlock()
	if i := slices.IndexFunc(l.limits, func(h held) bool { return h.deadline.Equal(d) }); i >= 0 {
		l.limits[i].before = math.MaxInt64 / 2
	}
}

// asks returns when code asks for something that it may have to wait for with its
// guesses; zero if that makes no difference.
func (l *lane) asks() time.Time {
	if !l.limited.Load() {
		return time.Time{}
	}
	return time.Now()
}

// answered notes that the lane's code has what it asked for, for which it would
// plainly have waited that long. Under mu.
func (l *lane) answered(asked time.Time, plainly time.Duration) {
	if !asked.IsZero() {
		l.waited += max(0, time.Since(asked)-plainly)
	}
}

// heldUp notes that the lane's code waited, since it asked, for its guesses only.
func (l *lane) heldUp(asked time.Time) {
	if asked.IsZero() {
		return
	}
	l.run.task.mu.Lock()
	defer l.run.task.mu.Unlock()
	l.answered(asked, 0)
}

// plainly returns how long code without speculation would have waited for the
// answer. Under mu.
func (c *call) plainly(answer int) time.Duration {
	if answer != spectree.Actual {
		return math.MaxInt64 // it is not known yet
	}
	return c.took()
}

// endsPlainly reports whether ctx, which the code itself ended, would have ended
// without speculation as well.
func (t *task) endsPlainly(ctx context.Context, l *lane) bool {
	return ctx.Err() == context.Canceled || t.ownLimit(ctx, l) == 1
}

// gone is closed once nobody needs what the lane's code computes; nil: it always is needed.
func (l *lane) gone() <-chan struct{} {
	if l.future == nil {
		return nil
	}
	return l.future.gone
}

// givenUp reports whether nobody needs what the lane's code computes.
func (l *lane) givenUp() bool { return l.future != nil && isClosed(l.future.gone) }

// unneeded returns the error of code that gave up since nobody needs what it computes.
func unneeded(where string) error {
	if where != "" {
		where += ": "
	}
	return fmt.Errorf("foresay: %sgave up waiting: %w (%w)", where, context.Canceled, errNotNeeded)
}

// letGo ends the wait for an answer that nobody needs: its attempt ends, as in plain
// code, or nobody waits for it any more, which is an error. A call with side effects
// comes to its end.
func (t *task) letGo(l *lane, c *call, u *spectree.Use) error {
	t.mu.Lock()
	if err := l.run.check(); err != nil {
		return err
	}
	defer t.unlock()
	switch {
	case u.Answer() != spectree.Waiting, c.tree.Effect() != spectree.None:
	case c.attempt != nil && c.tree.Uses() == 1 && !l.run.tree.Speculative():
		t.todo = append(t.todo, duty{kind: dutyCancel, of: c.attempt})
	default:
		where := t.whereOf(c.tree)
		t.tree.Drop(u, true)
		return unneeded(where)
	}
	return nil
}

// Code that goes on with a guess at a future may end the context of those who still compute it, by
// `defer cancel()` most often: plain code has the result by then. If they were told, and gave up,
// the guess would count as wrong, and what they waited for would be asked for again. So the run is
// replayed without the guess instead, while all that is under way: the replay finds it, waits as
// plain code does, and shows what else ends the context. From then on the task takes no guesses at
// futures in contexts that may end like that, since each would cost another run.

// outrun deals with a cancelled context of code that is about to give up, or not to make a call. It
// returns an error if the lane's run is replayed for that.
func (l *lane) outrun(ctx context.Context) error {
	if ctx.Err() != context.Canceled || l.run.ctx.Err() != nil || givenUp(ctx) {
		return nil
	}
	t := l.run.task
	t.mu.Lock()
	defer t.unlock()
	if l.run.tree.Discarded() || !t.tree.Outrun(l.tree) {
		return nil
	}
	t.wasOutrun()
	return ErrMisspeculated
}

// wasOutrun notes that a run was replayed for that. Under mu.
func (t *task) wasOutrun() {
	t.mayDoubt()
	t.doubts.outrun = true
}

// A goroutine that went on with a guess has ended. Somebody cancels the context that it was started
// with before anybody waits for it: code that stands on none of its guesses, so plain code does the
// same at that time, and what is guessed ends, right or wrong. A doubter finds that out at once.
// Most contexts end later, as code that has waited for a goroutine returns, and tell nothing.

// cutOff reports whether the code of the run has cancelled the context with which goroutines were
// started, which have ended. It is called without mu: the context may be the user's.
func (r *run) cutOff(ctx context.Context) bool {
	return ctx.Err() == context.Canceled && r.ctx.Err() == nil && !givenUp(ctx)
}

// cutFutures returns the lanes of futures of the run, which has ended, whose contexts were
// cancelled.
func (r *run) cutFutures() (lanes []*lane) {
	for _, l := range r.forked {
		if f := l.future; f != nil && f.name == l.tree.ID() && r.cutOff(f.ctx) {
			lanes = append(lanes, l)
		}
	}
	return lanes
}

// doubtNow starts a doubter of what lanes guess whose contexts were cancelled before anybody waited
// for them. Under mu.
func (t *task) doubtNow(lanes []*lane) {
	var uses []*spectree.Use
	for _, l := range lanes {
		if l.tree.WaitedFor() {
			continue
		}
		for _, u := range l.tree.Guesses() {
			if !slices.Contains(uses, u) {
				uses = append(uses, u)
			}
		}
	}
	if len(uses) > 0 {
		t.tree.Doubt(uses)
	}
}

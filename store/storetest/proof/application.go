package proof

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/front"
)

// A txn is a transaction as its application saw it.
type txn struct {
	n, session int
	begin, end time.Duration
	verdict    store.Verdict // what the client said
	run        *result       // nil if there is no result
	watch      *watch
	nested     bool // in a task of the application
	relaxed    bool // it asks to be serializable, and no more
}

// An application makes one transaction after the other.
type application struct {
	w *world
	n int
	// links is how many it has had: each is a session.
	links int
	site  int
	mode  client.Mode
	rand  *rand.Rand
	// attempts bounds how often a transaction is tried. 0: until its context ends.
	attempts int
}

func (a *application) drive(ctx context.Context) {
	l := a.w.link(a)
	defer func() { l.close() }()
	for ctx.Err() == nil && !a.w.stopped.Load() {
		if l.crashed.Load() {
			l.close()
			l = a.w.link(a)
		}
		if a.rand.IntN(6) == 0 {
			a.nest(ctx, l)
		} else {
			a.transact(ctx, l)
		}
		time.Sleep(time.Duration(a.rand.IntN(40)) * time.Millisecond)
	}
}

// transact makes a transaction and notes how it ended.
func (a *application) transact(ctx context.Context, l *link) {
	t := a.w.newTxn(l.session, l.watch)
	limit := time.Minute
	if a.rand.IntN(4) == 0 {
		limit = time.Duration(5+a.rand.IntN(200)) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(forTxn(ctx, t.n, t.n), limit)
	defer cancel()
	p := newPlot(t.n, a.rand, a.w.sc.Protocol)
	t.relaxed = p.relaxed
	err := a.run(ctx, l, p, t)
	a.w.note(t, err)
	if u, ok := errors.AsType[*client.UnknownError](err); ok && !u.Txn.ID.IsZero() && a.rand.IntN(2) == 0 {
		a.resolve(l, t, u.Txn)
	}
}

// run calls the client, and takes panics of the function for results.
func (a *application) run(ctx context.Context, l *link, p plot, t *txn) (err error) {
	defer func() {
		if r := recover(); r != nil {
			if f, ok := r.(*foresay.PanicError); ok {
				r = f.Value
			}
			u, ok := r.(*userError)
			if !ok {
				panic(r)
			}
			err = u
		}
	}()
	t.run, err = client.Run(ctx, l.client, p.play, p.hint...)
	return err
}

// nest makes two transactions in a task, which begins with a guess; or some more, if the store lets
// the task go on at their local commits.
func (a *application) nest(ctx context.Context, l *link) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(20+a.rand.IntN(2000))*time.Millisecond)
	defer cancel()
	n := 2
	if l.watch.Speculates() {
		n += a.rand.IntN(3)
	}
	// To the history each is another client's, as all end when the task does.
	var txns []*txn
	for i := range n {
		txns = append(txns, a.w.newTxn(1_000_000*i+l.session, l.watch))
	}
	var plots []plot
	for _, t := range txns {
		t.nested = true
		p := newPlot(t.n, a.rand, a.w.sc.Protocol)
		p.panics = false
		t.relaxed = p.relaxed
		plots = append(plots, p)
	}
	slow := time.Duration(a.rand.IntN(100)) * time.Millisecond
	sure := foresay.Go(ctx, func(context.Context) (bool, error) {
		time.Sleep(slow)
		return true, nil
	}, foresay.Guess(a.rand.IntN(2) == 0))
	type part struct {
		run *result
		err error
	}
	parts, err := foresay.Do(ctx, func(ctx context.Context) (parts []part, err error) {
		parts = make([]part, n)
		right, err := sure.Wait(ctx)
		for i, p := range plots {
			p.misled = !right
			if err == nil {
				parts[i].run, parts[i].err = client.Run(forTxn(ctx, p.n, txns[0].n), l.client, p.play, p.hint...)
			}
		}
		return parts, err
	})
	if errors.Is(err, foresay.ErrDiverged) && ctx.Err() != nil {
		err = ctx.Err() // which the function ran into while it ran again, so that it came to another end
	}
	for i, t := range txns {
		switch {
		case err == nil:
			t.run = parts[i].run
			a.w.note(t, parts[i].err)
		case len(t.watch.attempts(t.n)) > 0:
			a.w.note(t, &client.UnknownError{})
		default:
			a.w.note(t, err)
		}
	}
}

// resolve asks for an outcome once more.
func (a *application) resolve(l *link, t *txn, txn store.Txn) {
	ctx, cancel := context.WithTimeout(forTxn(context.Background(), t.n, t.n), 2*time.Second)
	defer cancel()
	switch err := l.client.Resolve(ctx, txn); {
	case err == nil:
		a.w.end(t, store.Committed)
	case isA[*client.AbortedError](err):
		a.w.end(t, store.Aborted)
	}
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// verdict says what an error of the client's means for a transaction.
func verdict(err error) (v store.Verdict, understood bool) {
	switch {
	case err == nil, isA[*userError](err):
		return store.Committed, true
	case isA[*client.UnknownError](err), isA[*client.BlockedError](err):
		return store.Unknown, true
	case isA[*client.AbortedError](err), isA[*client.UnavailableError](err), isA[*client.CanceledError](err),
		errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, front.ErrClosed):
		return store.Aborted, true
	}
	// nothing was sent
	r, ok := errors.AsType[*client.RejectedError](err)
	if ok && (r.Detail == front.ErrClosed.Error() || len(r.Sites) > 0) {
		return store.Aborted, true
	}
	return store.Unknown, false
}

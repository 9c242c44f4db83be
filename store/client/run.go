package client

import (
	"context"
	"errors"

	"github.com/foresay/foresay/driver"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/store"
)

// Run is Txn with a result.
func Run[T any](
	ctx context.Context, c *Client, f func(ctx context.Context, tx *Tx) (T, error), opts ...Option,
) (T, error) {
	var zero T
	t := newTxn(ctx, c, optionsOf(c.cfg.Backend, opts))
	if t.options.err != nil {
		return zero, t.options.err
	}
	for {
		a := t.begin(ctx)
		out, d, err := try(ctx, a, f)
		if err != nil {
			a.trace.ended()
			if out.panicked != nil {
				panic(out.panicked)
			}
			return zero, t.unread(ctx, a, err)
		}
		t.quorum = t.quorum || a.watch.failed()
		t.decided(a, d)
		t.learnFrom(ctx, d, out.values)
		v := d.Outcome.Verdict
		switch {
		case out.panicked != nil && v != store.Aborted && v != store.Rejected:
			// Of a rejected one nobody has looked at what it read.
			panic(out.panicked) // what it rests on is right or, if nobody knows, all there is to tell
		case v == store.Committed:
			if t.tentative != nil && !t.tentative.told && out.err == nil {
				t.tentative.final()
			}
			return out.value, out.err
		case v == store.Aborted && d.Outcome.Reason == store.NoReason && len(d.Txn.Writes) == 0 &&
			(ctx.Err() == nil || len(d.Outcome.Sites) > 0):
			// nobody said a word about a transaction without effect, or it could not begin
			return zero, Unread(ctx, &UnavailableError{Sites: d.Outcome.Sites, Detail: d.Outcome.Detail})
		case v != store.Aborted:
			return zero, unsure(ctx, failure(d, a.number))
		}
		if err := t.again(ctx, d); err != nil {
			return zero, err
		}
	}
}

// try makes an attempt. The error says that there was nothing to commit.
func try[T any](
	ctx context.Context, a *attempt, f func(ctx context.Context, tx *Tx) (T, error),
) (out outcome[T], d Decision, err error) {
	defer a.end(ctx)
	out, err = once(ctx, a, f)
	var ended *EndedError
	switch sent := a.validation.wait(); {
	case sent != nil:
		return out, *sent, nil
	case a.watch.failed() && ctx.Err() == nil:
		return out, Decision{Txn: store.Txn{Priority: a.priority}, Outcome: store.Outcome{Verdict: store.Aborted,
			Reason: store.StaleRead}}, nil
	case errors.As(err, &ended):
		return out, Decision{Txn: store.Txn{Priority: a.priority}, Outcome: store.Outcome{Verdict: store.Aborted,
			Reason: ended.Reason}}, nil
	case err != nil:
		return out, d, err
	}
	early := func() bool { return out.err == nil && out.panicked == nil && a.tentative.allows(out.notes) }
	return out, a.commit(ctx, out.reads, out.writes, early), nil
}

// An outcome is what a run of the user's function comes to.
type outcome[T any] struct {
	value    T
	err      error
	panicked any // not nil: it did
	reads    []store.Read
	values   []store.Value // of reads
	writes   []store.Write
	notes    map[string]any
}

// once runs the function once, as far as it knows; with the engine that is one task of as many runs
// as it takes. The error says that there is no outcome.
func once[T any](
	ctx context.Context, a *attempt, f func(ctx context.Context, tx *Tx) (T, error),
) (out outcome[T], err error) {
	ctx, end := a.watch.begin(ctx)
	defer end()
	if a.mode == GRPC {
		return play(ctx, a, f)
	}
	var submitted outcome[T] // of the run whose commit has left: it alone counts, whatever becomes of the task
	if a.validation != nil {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		defer a.validation.begin(ctx, cancel)()
		defer func() {
			if !a.validation.hasLeft() {
				return // what the task did counts, panics too
			}
			if p := recover(); p != nil {
				a.validation.wait() // of a goroutine that nobody waits for, while the commit is on its way
				panic(p)
			}
			out, err = submitted, nil
		}()
	}
	return foresay.Do(ctx, func(ctx context.Context) (outcome[T], error) {
		out, err := play(ctx, a, f)
		// what rests on no read of the transaction's own leaves when the task has ended
		if err == nil && a.validation != nil && len(out.reads) > 0 {
			a.validation.submit(ctx, out.reads, out.writes, func() { submitted = out })
		}
		return out, err
	}, foresay.WithName("txn"), foresay.WithLimits(a.client.cfg.Limits))
}

// play is one run. What the function fails with is an outcome too, which must stand on valid reads;
// it writes nothing then. Only what ended its reads is an error.
func play[T any](
	ctx context.Context, a *attempt, f func(ctx context.Context, tx *Tx) (T, error),
) (out outcome[T], err error) {
	tx := &Tx{attempt: a, lane: func() any { return driver.Lane(ctx) }}
	a.watch.note(tx)
	returned := false
	defer func() {
		if returned {
			return
		}
		if out.panicked = recover(); out.panicked == nil {
			return // it ended its goroutine, and this with it
		}
		if err = tx.failed(); err == nil {
			out.reads, _, _ = tx.accesses()
		}
	}()
	out.value, out.err = f(ctx, tx)
	returned = true
	if err := tx.failed(); err != nil {
		return out, err
	}
	out.reads, out.values, out.writes = tx.accesses()
	if out.notes = tx.noted(); out.err != nil {
		out.writes = nil
	}
	return out, nil
}

package client

import (
	"context"
	"sync/atomic"

	"github.com/foresay/foresay/driver"

	"github.com/foresay/foresay/store"
)

// reading is a read as the engine sees it: somebody's answer is a prediction of what the
// transaction stands on.
type reading struct {
	*attempt
	tx  *Tx // of the run that was the first to ask
	key store.Key
}

// Start implements driver.Transport.
func (r *reading) Start(ctx context.Context, a *driver.Attempt) {
	// else nobody goes on before the actual answer, and no commit is sent that would bring it
	if r.validation != nil && a.MayPredict() {
		go r.validate(ctx, a)
	} else {
		go r.quorum(ctx, a)
	}
}

// quorum reads from a quorum, whose first answer is the prediction.
func (r *reading) quorum(ctx context.Context, a *driver.Attempt) {
	read := r.trace.read(r.key)
	r.reads.ask(r.key, 1)
	var guess atomic.Pointer[store.Value]
	got, err := r.sites.Read(ctx, r.key, func(first Answer) {
		read.first(first)
		guess.Store(&first.Value)
		a.Predict(first.Value)
	})
	read.done(got, err)
	if err != nil {
		a.Finish(nil, err)
		return
	}
	r.reads.saw(r.key, got)
	if g := guess.Load(); g != nil {
		r.client.stats.guessed(g.Version == got.Value.Version)
	}
	a.Finish(got.Value, nil)
}

// validate takes what the client's predictor or else the nearest site says. Whether that was right
// is for who prepares the key to say or, if that is not known before, for the commit; and if that
// is long in coming, for a quorum.
func (r *reading) validate(ctx context.Context, a *driver.Attempt) {
	v := r.validation
	if v.isLate() {
		r.quorum(ctx, a)
		return
	}
	read := r.trace.read(r.key)
	r.reads.ask(r.key, 1)
	said := r.prepares.of(r.key)
	first, err := r.guess(ctx)
	if err != nil {
		a.Finish(nil, err)
		return
	}
	r.reads.ask(r.key, -1)
	read.first(first)
	v.add(r.key, first.Value)
	a.Predict(first.Value)
	select {
	case <-v.settled:
	case <-said.done:
		if r.settle(ctx, a, read, first, said.answer, nil) {
			return
		}
	case <-v.late:
		r.reads.ask(r.key, 1)
		got, err := r.sites.Read(ctx, r.key, nil)
		if err == nil {
			r.reads.ask(r.key, -1)
		}
		if r.settle(ctx, a, read, first, got, err) {
			return
		}
	case <-ctx.Done():
	}
	switch committed, carried := v.result(r.key, first.Value.Version); {
	case ctx.Err() == nil && carried:
		r.client.stats.guessed(true)
		read.right()
		a.Finish(first.Value, nil)
	case ctx.Err() == nil && committed: // of a goroutine that the function left behind
		got, err := r.sites.Read(ctx, r.key, nil)
		a.Finish(got.Value, err)
	default:
		<-ctx.Done() // the attempt is over, or nobody needs the answer
		if over := func() { a.Finish(nil, ctx.Err()) }; !v.end(r.key, over) {
			over() // a commit is on its way that nobody waits for any more
		}
	}
}

// settle has a read's actual result counted, in place of what the commit would say of the first
// answer. It returns false if the commit was faster, and counts: it has been decided then.
func (r *reading) settle(ctx context.Context, a *driver.Attempt, read *readTracer, first, got Answer, err error) bool {
	read.done(got, err)
	ended := r.validation.end(r.key, func() {
		if err != nil {
			a.Finish(nil, err)
			return
		}
		right := first.Value.Version == got.Value.Version
		if !right {
			r.reads.refute(r.key, got.Value)
		}
		r.client.stats.guessed(right)
		a.Finish(got.Value, nil)
	})
	if ended {
		return true
	}
	select {
	case <-r.validation.settled:
	case <-ctx.Done():
	}
	return false
}

// guess returns what is known of the key since the last attempt or, if that is nothing, what the
// predictor says, unless it was wrong in this transaction. The nearest site comes last, as it takes
// time: what the function has reached is prepared meanwhile.
func (r *reading) guess(ctx context.Context) (Answer, error) {
	if seed, ok := r.validation.seeds[r.key]; ok {
		return Answer{Value: seed, Site: seedSite}, nil
	}
	if !r.unpredictable[r.key] {
		r.reads.predict(r.key)
		if v, ok := r.client.guess(ctx, r.key); ok {
			return Answer{Value: v, Site: predictorSite}, nil
		}
	}
	r.prepares.reached(ctx, r.tx, r.key)
	return r.sites.ReadNearest(ctx, r.key)
}

// ReadTrace.FirstSite is one of these for a read whose answer came with the refusal of an earlier
// attempt, or from the client's predictor.
const (
	seedSite      = "refusal"
	predictorSite = "predictor"
)

// Equal implements driver.Transport: a prediction is right when the version is.
func (r *reading) Equal(prediction, actual any) bool { return r.Same(prediction, actual) }

// Same implements driver.Transport.
func (r *reading) Same(a, b any) bool {
	v, ok := a.(store.Value)
	w, ok2 := b.(store.Value)
	return ok && ok2 && v.Version == w.Version
}

// Accept implements driver.Transport. Values are not changed by anybody, so they need no copy.
func (r *reading) Accept(v any) (any, bool) {
	value, ok := v.(store.Value)
	return value, ok
}

package foresay

import (
	"context"

	"github.com/foresay/foresay/internal/engine"
)

// Future is the result of a call of Go, Then, All, Any or Quorum. It may be
// used by several goroutines.
type Future[T any] engine.Future[T]

// Go starts f, which typically makes one call, and returns its future. f has
// the rights of a function given to Do. Values offered with Guess, and results
// of f that stand on predictions of f's own calls, are predictions for what
// depends on the future. Outside of a task the future is a task of its own; in
// a task, f is part of the run, like a Group's function: whether or not somebody
// waits for the future, f comes to its end before the run does.
func Go[T any](ctx context.Context, f func(ctx context.Context) (T, error), opts ...CallOption) *Future[T] {
	return (*Future[T])(engine.Go(ctx, f, opts...))
}

// Then attaches f to the future: f runs once for each distinct value predicted
// for it, and once for the actual value if no prediction matched; exactly one
// of these runs wins. If a prediction inside f is wrong, f runs again from its
// top, not from the chain's. If the future fails, so does the result, and f does
// not run for the error. [SpecRPC §2, callbacks and factories]
func Then[T, U any](future *Future[T], f func(ctx context.Context, v T) (U, error), opts ...CallOption) *Future[U] {
	return (*Future[U])(engine.Then((*engine.Future[T])(future), f, opts...))
}

// Wait waits for the result. Outside of a task it returns confirmed values
// only, after their commit hooks ran; in a task it may return a prediction, on
// which the run then depends. If ctx ends first it returns an error that wraps
// ctx's and ErrUnfinished, in a task that of the call that f is waiting for. It panics with a
// *PanicError if a confirmed function panicked. Of a nil future it returns an error.
func (f *Future[T]) Wait(ctx context.Context) (T, error) {
	return (*engine.Future[T])(f).Wait(ctx)
}

// All returns the results of all futures, in order, or the error of the first
// one that failed, in order; the others run on. A nil future is an error.
func All[T any](futures ...*Future[T]) *Future[[]T] {
	return (*Future[[]T])(engine.All(own(futures)...))
}

// Any returns the result of the first future to succeed, or, if none does, the
// errors of all; if one panicked then, Wait panics. The others run on. In a task
// those that have not ended when the function returns are given up: their calls
// without side effects fail, and calls with side effects are carried out, once
// each. No futures, or a nil one, is an error.
func Any[T any](futures ...*Future[T]) *Future[T] {
	return (*Future[T])(engine.Any(own(futures)...))
}

// Quorum returns the first value that n of the futures agree on by equal (nil: plain equality; a
// panic counts as "no"). The first of them to answer is a prediction for it: what depends on a
// quorum goes on with the nearest replica's answer. If too many fail or disagree the error wraps
// ErrNoQuorum; if one of them panicked then, Wait panics. What was not needed ends as with Any. An
// n that is not within 1 and the number of futures, or a nil future, is another error. [SpecRPC
// §4.1]
func Quorum[T any](n int, equal func(a, b T) bool, futures ...*Future[T]) *Future[T] {
	return (*Future[T])(engine.Quorum(n, equal, own(futures)...))
}

// own returns the futures as the engine knows them.
func own[T any](futures []*Future[T]) []*engine.Future[T] {
	out := make([]*engine.Future[T], len(futures))
	for i, f := range futures {
		out[i] = (*engine.Future[T])(f)
	}
	return out
}

// Package foresay lets a program act on an answer before it arrives, and take the act back if the
// answer was another one. The result is always the one that sequential execution would have given;
// only the waiting is gone.
//
// A call may return a prediction of its response at once. What the code does next is a run that
// stands on this assumption. The actual response confirms the run, or the run is discarded and the
// code runs again with what is now known. Nothing computed on an open assumption leaves the task:
// no result, no effect, no message to anybody who is not part of the speculation.
//
// This package is for the author of a program. Package specgrpc predicts the calls of generated
// gRPC clients, package predict has predictors, package control is for who operates the service,
// package report shows what happened in a task, and package driver is for the author of a
// transport.
//
// # Two ways to write a program
//
// Straight line: [Do] runs ordinary sequential code.
//
//	total, err := foresay.Do(ctx, func(ctx context.Context) (int64, error) {
//		user, err := users.Get(foresay.Predicting(ctx, cached), req) // returns the prediction
//		if err != nil {
//			return 0, err
//		}
//		cart, err := carts.Get(ctx, cartOf(user)) // sent at once
//		...
//	})
//
// After a wrong prediction the function runs again from the top. Calls that it already made are
// answered from the task's record: one whose request is unchanged is not sent again. [Group] is for
// goroutines within it.
//
// Futures: [Go] starts a call, [Then] attaches what depends on it, [Future.Wait] is the way out.
// After a wrong prediction only the function given to Then runs again. [All], [Any] and [Quorum]
// combine futures.
//
// Predictions come from a call site's predictors (control.CallSiteConfig), from the code
// ([Predicting], [Guess]), from the server ([Predict], in its handler), and from whichever of
// several futures is first.
//
// # Rules for the code
//
// A function given to Do, Go, Then or Group.Go may run several times. Discarded runs leave no trace
// if it keeps to these rules:
//
//   - It is deterministic, given the results of its calls. What changes by itself (time, random
//     numbers, local files, the order of map iteration) goes through [Memo].
//   - It touches the world only through calls, [Act], [OnCommit] and [OnRollback], or after
//     [Barrier]. It does not change variables that outlive the run.
//   - It passes on the context that it was given: that is how calls know their run.
//   - It starts goroutines with Group or Go.
//   - It does not change requests and responses that others may hold (specgrpc copies them).
//   - It returns errors that it does not understand, such as [ErrMisspeculated].
//
// A call site's effect class (control.Effect) says when a call may be sent on a guess. At a limit
// (control.Limits) a task waits as it would without Foresay; it does not fail. An error where a
// response was predicted is a wrong prediction: the code sees it when it runs again. Do and
// Future.Wait return the function's own errors, [ErrDiverged], [ErrForeignFuture], an error that
// wraps that of a context which ended, and, from Quorum, one that wraps [ErrNoQuorum].
//
// docs/guide.md, in the repository, has all of this at length, with deadlines, panics and limits.
//
// # Sources
//
// The model is that of SpecRPC: Yan, Cassell, Joa, Szepesi, Wong, Naouach and Lam, SpecRPC: A
// General Framework for Performing Speculative Remote Procedure Calls, Middleware 2018, cited as
// [SpecRPC]. That no effect escapes before its assumptions hold goes back to Nightingale, Chen and
// Flinn, Speculative Execution in a Distributed File System, SOSP 2005.
package foresay

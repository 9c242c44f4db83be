// Package foresay lets a program act on an answer before it arrives, and take
// the act back if the answer was another one. The result is always the one that
// sequential execution would have given; only the waiting is gone.
//
// A call may return a prediction of its response at once. What the code does
// next is a run that stands on this assumption. When the actual response comes,
// it confirms the run, or the run is discarded and the code runs again with what
// is now known. Nothing computed on an open assumption leaves the task: no
// result, no effect, no message to anybody who is not part of the speculation.
//
// This package is the engine. Package specgrpc joins it to gRPC, with generated
// clients and servers as they are; package predict has predictors.
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
// After a wrong prediction the function runs again from the top, and the calls
// that it already made are answered from the task's record: a call whose request
// is unchanged is not sent again. [Group] is for goroutines within it.
//
// Futures: [Go] starts a call, [Then] attaches what depends on it, [Future.Wait]
// is the way out. After a wrong prediction only the function given to Then runs
// again. [All], [Any] and [Quorum] combine futures. Within a task futures are
// parts of its run, as a nested Do is.
//
// Predictions come from the call site's predictors ([SiteConfig]), from the code
// ([Predicting], [Guess]), from the server ([Predict], in its handler), and from
// whichever of several futures is first. Several predictions for one call make
// several runs, of which exactly one wins.
//
// # Rules for the code
//
// A function given to Do, Go, Then or Group.Go may run several times, and
// discarded runs leave no trace, if it keeps to these rules.
//
//   - It is deterministic, given the results of its calls. What changes by itself
//     (time, random numbers, local files, the order of map iteration) goes through
//     [Memo]. A function that does not repeat a call with side effects ends its
//     task with [ErrDiverged].
//   - It touches the world only through calls, [Act], [OnCommit] and
//     [OnRollback], or after [Barrier]. It does not change variables that outlive
//     the run, and does not print, send on channels or write files.
//   - It passes on the context that it was given: that is how calls know their
//     run. Calls under another context are ordinary calls, and happen each time.
//   - It starts goroutines with Group or Go. Where goroutines share a context
//     instead and their calls overlap, nobody knows which of them made which: the
//     next call with side effects waits as at a Barrier.
//   - It does not change requests and responses that others may hold. Clients of
//     specgrpc copy them; users of [Perform] see to it themselves.
//   - It returns errors that it does not understand. A discarded run's operations
//     return [ErrMisspeculated], and its context ends with that cause; nobody
//     outside the run sees what it returns. One that goes on regardless for 100
//     operations is ended with runtime.Goexit.
//
// # Calls with side effects
//
// A site's [Effect] says what a call does besides answering, and so when it may
// be sent. A call without side effects is sent at once, speculative caller or
// not. One whose server stages its effects is sent at once and confirmed later.
// One that takes effect immediately, which is assumed where nothing is declared,
// waits until its caller stands on no assumption. A call begun after a predicted
// one with side effects is sent only when that one's actual result is in, unless
// their sites' ConflictKeys say that they commute.
//
// Of two reads of one key in a task the later may see the older state, unless
// their site is Ordered: its calls wait for each other's answers.
//
// # Contexts and deadlines
//
// Once it has returned a prediction, a call keeps its context's values but not
// its cancellation: that the code which made it returns, cancelling its
// context, is no reason to give the call up. A time limit that the code set for
// a call which is then held starts anew when the call is really made, within the
// task's own. When the task's context ends, a run that stands on no assumption
// goes on and sees its calls fail, as without Foresay; a task without such a run
// ends with an error that wraps the context's.
//
// # Limits
//
// [Limits] bound each task: the open assumptions that a run stands on (32), the
// runs alive (4), replays (64), runs executing, discarded ones included (16). At
// a limit a task waits as it would without Foresay; it does not fail. A discarded
// run's calls stay adoptable until the run in its place has returned, or for
// 250 ms when none has, then they are abandoned. Where an answer usually comes
// within MinSaving (500 µs), what depends on a guess at it waits for that long
// before it is sent. [SiteLimits] bound what one site causes: its calls with a
// prediction and no result yet, the depth at which it is called, the predictions
// of one call, and its own MinSaving; none is set by default. What bounds no task
// is its code: a run that ignores its context keeps its goroutine.
//
// # Errors and panics
//
// An error where a response was predicted is a wrong prediction; the code sees
// the error when it runs again. Besides the function's own errors, Do and
// Future.Wait return [ErrDiverged], an error that wraps that of a context which
// ended, and, from Quorum, one that wraps [ErrNoQuorum]; [ErrForeignFuture] tells
// of a future that was carried into another task. A panic of a confirmed run is
// raised again in the goroutine that waits, as a [*PanicError]; a discarded run's
// counts for nothing. Panics of predictors, of equivalences and of rollback hooks
// are logged and contained.
//
// # Seeing what happened
//
// [WithReport] hands over a task's [Report]: runs, calls, predictions, what was
// held, adopted or abandoned and why, with times. It can be written as text, as
// a timeline, as a Graphviz graph, as SVG and as JSON. [WithLogger] logs the same
// as it happens, [Site.Stats] counts per site, [State] tells the code itself.
//
// # Concurrency
//
// Do, Go and the functions on futures may be called concurrently, and sites be
// shared. A Group's Go is called from one goroutine. Transports, predictors and
// equivalences are called concurrently.
//
// # Sources
//
// The model (assumptions, predictions from both sides, speculation across
// several services, specReturn and specBlock) is that of SpecRPC: Yan, Cassell,
// Joa, Szepesi, Wong, Naouach and Lam, SpecRPC: A General Framework for
// Performing Speculative Remote Procedure Calls, Middleware 2018, cited as
// [SpecRPC]. That no effect escapes before its assumptions hold goes back to
// Nightingale, Chen and Flinn, Speculative Execution in a Distributed File
// System, SOSP 2005.
package foresay

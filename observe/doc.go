// Package observe measures what speculation would save a service before any of it is switched on,
// and what it saves once it is.
//
// A [Collector] is told of every request that ends, by its method Record in
// control.Config.OnRequest. For each kind of request it works out how much earlier the request
// would have ended had the right predictions of its calls been used and the wrong ones been taken
// back, and how many calls that would have wasted. [Collector.Report] tells, per kind of request
// and per method that it calls, whether predicting pays, and the sum that says so.
//
// A request begins with an interceptor ([UnaryServerInterceptor], [StreamServerInterceptor]), a
// middleware ([Handler]), or control.Control.Begin. Nothing that the program does changes: no call
// is added, delayed, or answered otherwise.
//
// # What is foreseen, and how
//
// The model is that of a request's critical path: a call stands on all calls of the request that
// had ended when it began, a right prediction lets what stands on the call begin at once, a wrong
// one costs the calls that were sent on it, and the request ends no earlier than each call's actual
// answer. Calls with side effects are never sent on a guess, nor any to a server that takes none,
// and Barrier, streams, Act and OnCommit functions wait. For steps that follow each other it is
// what a clock says, and for staged calls less; see docs/report.md for the rule and where it errs.
// Requests in which calls were really speculated are not put into the model: they are the realised
// side, and what was realised is measured.
//
// # Memory and time
//
// A Collector keeps sums and histograms, never requests. A histogram takes 21 KB. It keeps at most
// Config.MaxRequests kinds of request, with two histograms each and up to six more once calls are
// speculated or a canary runs, and at most Config.MaxMethods methods each, with one. The defaults
// bound it at 16 MB; a service with five kinds of request of four calls each keeps 620 KB. What is
// beyond goes under "(other)". To record a request of five calls takes a few microseconds. Large
// requests cost more. A kind of request takes at most half a percent of a processor on average:
// where that does not do, only some requests are worked out, and the report says how many.
package observe

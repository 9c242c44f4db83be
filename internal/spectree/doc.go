// Package spectree decides who depends on which guess.
//
// It is the pure core of the engine: a state machine over one task, its runs,
// its calls and its assumptions. It is told what happened (a call was made,
// predicted, answered, refused; a run returned; the task's caller was confirmed
// or refuted) and says what to do (start a run, discard one, send, hold, adopt,
// confirm, abandon, resume, offer a result). Values never enter: a prediction
// is its index in the order of arrival, and whoever compares values tells which
// index the actual result matched. [SpecRPC §3.1, §3.2, §3.3]
//
// A Tree is not safe for concurrent use: the engine calls it under the task's
// lock. It never blocks and starts nothing.
package spectree

// Package client is the blocking client of a replicated service.
//
// A program has a client node, run by a host, that knows the protocol. A [Client] stands between
// the two: it hands the node calls and waits for what becomes of them. [Typed] adds the types of a
// state machine's commands and results.
//
// What a call returns says what is known. A nil error: what was asked for is the case. A
// [*RejectedError]: it is not, and never will be by this call. A [*UnknownError]: nobody could tell
// before the context ended, or the session that would know is gone; the command may have been
// executed, once, or may still be. Treating that as a failure and asking again can execute it
// twice.
package client

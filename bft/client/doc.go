// Package client makes calls to a group of package bft's family by a client node, and waits for
// what becomes of them.
//
// [Client.Execute] and [Client.Read] return when the group has confirmed the result, [Client.Start]
// tells of the first reply too: a guess, which the caller may act on if it can take that back.
// Errors are those of smr's clients: a [*RejectedError] says that nothing happened, nor will; an
// [*UnknownError] that a command may have been executed, or may yet, once.
package client

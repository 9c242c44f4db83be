// Package client makes calls to a group of package bft's family by a client node, and waits for
// what becomes of them.
//
// [Client.Execute] and [Client.Read] return when the group has confirmed the result, [Client.Start]
// tells of the first reply too: a guess, which the caller may act on if it can take that back.
// Errors are those of smr's clients: a [*RejectedError] says that nothing happened, nor will; an
// [*UnknownError] that a command may have been executed, or may yet, once.
//
// In a task of package foresay, such as the function of [foresay.Do], they return the first reply,
// or what code or a predictor guesses, at once. What the code calls next leaves at once too, and is
// executed only if all that the code assumed is confirmed; otherwise the code runs again from
// there. foresay.Barrier and the end of the task wait until everything is confirmed. There is
// nothing else to do, and nothing that is not confirmed leaves the task.
package client

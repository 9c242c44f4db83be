// Package specfs is the vocabulary of remote file systems whose clients need not wait: objects,
// their attributes and versions, the operations on them, their results, and what a client assumes.
//
// A file system is a tree of objects, each with an [ID] that is never used again. An [Op] is one
// operation, as a kernel asks for it: by object and name, not by path. Package tree executes
// operations on a key space. The server runs it on the truth; a client runs the same code on the
// objects that it has cached, and so predicts what the server will answer.
//
// Each [Aspect] of an object has a [Version] of its own. The result of an operation depends on a
// few aspects only. An [Assumption] says which version of an aspect a client has used: a prediction
// is right if all of its assumptions are.
//
// Errors of operations are results: see [Errno]. They are those of POSIX, with Linux's numbers, on
// all operating systems.
package specfs

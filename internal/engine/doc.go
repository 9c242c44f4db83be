// Package engine runs tasks: it is what packages foresay and driver are the doors to.
//
// A task is one invocation of a user's function. package spectree decides, as a pure state machine,
// what its runs stand on, which calls are sent and which results are final; this package has the
// goroutines, contexts and values, and calls the transports. docs/architecture.md, "From Do to
// answer", follows a call through the files.
package engine

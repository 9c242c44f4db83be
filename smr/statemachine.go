package smr

import "io"

// A StateMachine is what a service replicates. Replicas apply the same commands in the same order, so all of it must depend on
// nothing else: no clock, no chance, no order of a map. A replica calls it from one goroutine at a time.
//
// A command may be malformed, or of a version that is not known: Apply then returns a result that says so.
type StateMachine interface {
	// Apply executes a command and returns its result. It keeps neither, and the result is not changed afterwards.
	Apply(command []byte) (result []byte)
	// Read answers a query and changes nothing.
	Read(query []byte) (result []byte)
	// Snapshot writes the state.
	Snapshot(w io.Writer) error
	// Restore replaces the state by one that Snapshot wrote. After an error the state is not used.
	Restore(r io.Reader) error
}

package smr

import "io"

// A StateMachine is what a service replicates. Replicas apply the same commands in the same order,
// so all of it must depend on nothing else: no clock, no chance, no order of a map. A replica calls
// it from one goroutine at a time.
//
// A command may be malformed, or of a version that is not known: Apply then returns a result that
// says so.
type StateMachine interface {
	// Apply executes a command and returns its result, which it does not keep and which is not
	// changed afterwards. Nobody changes the command either, so parts of it may be kept.
	Apply(command []byte) (result []byte)
	// Read answers a query and changes nothing.
	Read(query []byte) (result []byte)
	// Snapshot writes the state.
	Snapshot(w io.Writer) error
	// Restore replaces the state by one that Snapshot wrote. After an error the state is not used.
	Restore(r io.Reader) error
}

// A Freezer is a StateMachine of which a moment can be kept at little cost, like a tree whose nodes
// are copied when they are written. Its snapshots are written a part at a time, between commands. A
// machine that is none is written whole into memory first, and commands wait for that.
type Freezer interface {
	// Freeze returns what Snapshot would write now. Commands that are applied later do not change
	// it. It is read by the goroutine that applies them, and may be dropped half read.
	Freeze() io.Reader
}

// A Differ is a Freezer that can tell what has changed since an earlier moment. Its snapshots are
// what has changed since the one before, as long as that is less than the state.
type Differ interface {
	StateMachine
	Freezer
	// Mark begins to note what changes, and forgets what was noted before.
	Mark()
	// Changes returns what has changed since the last Mark, in the way of Freeze. There was one.
	Changes() io.Reader
	// Patch brings a state that is as it was at a Mark to the moment in which Changes was called.
	// After an error the state is not used.
	Patch(r io.Reader) error
}

// A Restorer is a StateMachine that takes a snapshot a piece at a time, beside the state that it
// has. A replica that lags restores the snapshot that it gets as it comes, between other calls. For
// a machine that is none the bytes are kept in memory until all are there, and what others ask
// waits while it restores them.
type Restorer interface {
	StateMachine
	// Restoring begins to restore a snapshot. It may be dropped half done.
	Restoring() Restoration
}

// A Restoration is a snapshot that is being restored beside the state of its machine, which goes on
// meanwhile and does not change by it.
type Restoration = interface {
	// Write takes the next bytes of what Snapshot wrote, and keeps none of them.
	io.Writer
	// End says that these were all. If the machine is a Differ, what Changes wrote may follow, and
	// another End.
	End() error
	// Become puts what was restored in the place of the machine's state. It is the last call, and
	// takes a moment only, however large the state is.
	Become() error
}

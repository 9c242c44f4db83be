package faultfs

import "fmt"

// A Kind says what an operation does.
type Kind int

// The operations that change the disk are numbered and traced; reads are not.
const (
	KindCreate   Kind = iota // a file gets a name: create, hard link
	KindMkdir                // a directory
	KindRemove               // a name goes away
	KindRename               // a name changes, within a directory or to another one; a file that is there is replaced
	KindWrite                // bytes of a file
	KindSync                 // a file's content becomes durable
	KindSyncDir              // a directory's names become durable
	KindRead                 // not a change; the next bytes of a file
	KindReadAt               // not a change; bytes at an offset
	KindOpen                 // not a change
	kindSyncLost             // a sync that failed
)

// String returns the kind's name.
func (k Kind) String() string {
	names := [...]string{"create", "mkdir", "remove", "rename", "write", "sync", "sync directory", "read", "read at",
		"open", "lost sync"}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("kind %d", int(k))
	}
	return names[k]
}

// An Op is an operation as an injected fault sees it, before it is done.
type Op struct {
	Kind      Kind
	Path      string // what it is done to; of a rename, the new name
	SizeBytes int    // of a write, a read
}

// A Fault decides about each operation: nil lets it pass, an error is returned in its place. It is
// called with the disk's lock held and must not call the disk.
type Fault func(Op) error

// A ShortError, returned by a fault for a write or a read, lets the first bytes of it happen. Of a
// read, the caller gets them without an error, as a kernel may do; of a write, with Err.
type ShortError struct {
	SizeBytes int
	Err       error
}

// Error describes it.
func (e *ShortError) Error() string { return fmt.Sprintf("only %d bytes: %v", e.SizeBytes, e.Err) }

// Unwrap returns the cause.
func (e *ShortError) Unwrap() error { return e.Err }

// change is an operation as the trace keeps it.
type change struct {
	kind     Kind
	node     int // what it is done to, or what gets a name
	dir      int // where a name is changed
	name     string
	toDir    int // of a rename
	toName   string
	offset   int64
	data     []byte
	newIsDir bool
}

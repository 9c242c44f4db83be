package host

import (
	"iter"

	"github.com/foresay/foresay/protocol"
)

// A Disk keeps what one node writes. Package host/waldisk has the one that survives the machine,
// [NewMemory] makes one that does not survive the process.
//
// A host calls Commit and reads the keys from one goroutine.
type Disk interface {
	// Identity names the disk: it is the same after a restart, unless the disk was lost.
	Identity() string
	// Records goes through the log from its lowest index on.
	Records() iter.Seq2[Record, error]
	// NextIndex is the index that the next record gets, 1 in a new log.
	NextIndex() uint64
	// Keys is the key space, with all that was committed, durable or not.
	Keys() protocol.Keys
	// Commit makes the operations durable, together or not at all, and after those of earlier
	// calls. It calls done once: with nil when they are durable, before it returns or later, in the
	// order of the calls; with an error if they may not be, and then all later calls fail too. The
	// slice is the caller's again when Commit returns; Value and Refs of records when done was
	// called, other bytes never. Commit may wait while too much is on its way.
	Commit(ops []Op, done func(error))
}

// A PatientDisk can keep what nobody waits for until there is more to write.
type PatientDisk interface {
	Disk
	// CommitUnhurried is Commit for operations that may become durable some milliseconds later:
	// with those of the next Commit or Hurry, or after a time of the disk's choice.
	CommitUnhurried(ops []Op, done func(error))
	// Hurry has the disk wait no longer with what it was given.
	Hurry()
}

// A Record is an entry of a node's log as bytes.
type Record struct {
	Index uint64
	Bytes []byte
}

// An Op is one of the kinds of effects that are durable: KindAppend with Index, Value and Refs,
// KindTruncate with Index, KindPut with Key and Value, KindDelete with Key. Refs are large byte
// strings that belong into a record, which is protocol.AppendJoined of Value and Refs.
type Op struct {
	Kind  protocol.Kind
	Index uint64
	Key   []byte
	Value []byte
	Refs  []protocol.Ref
}

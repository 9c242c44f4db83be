package smr

import (
	"errors"
)

// Salvaged is what was found on the disk of a replica whose group has lost its quorum. The state
// machine has executed all of it.
type Salvaged struct {
	Members  []Member // of the group, as the disk knows it, in order of their IDs
	Snapshot Slot     // of the snapshot on the disk
	Applied  Slot     // of the last entry that was executed
	// Doubtful counts the entries that were executed though the disk does not say that they were
	// decided: whether their clients were told so, nobody can know.
	Doubtful int
}

// ErrNoSalvage says that the disks of a protocol's replicas do not tell what was executed.
var ErrNoSalvage = errors.New("a replica's disk has its votes, which do not tell what was decided and executed")

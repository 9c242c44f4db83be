package history

import (
	"fmt"
)

// Level is an isolation level: the phenomena that it forbids. Those of its row in Adya's table are
// found among the transactions' dependencies on single keys; predicates are not looked at.
//
// Every level forbids what no store may do: garbage reads, duplicate versions, a transaction that
// does not see its own writes, aborted writes that stay, committed ones that vanish, incompatible
// orders.
type Level uint8

const (
	// ReadCommitted is Adya's PL-2: no G0, G1a, G1b, G1c.
	ReadCommitted Level = iota + 1
	// SnapshotIsolation is PL-SI with snapshots of any age: no G-single, G-nonadjacent or lost
	// update either, which is to say no cycle without two adjacent anti-dependencies [Cerone and
	// Gotsman, PODC 2016].
	SnapshotIsolation
	// Serializable is PL-3, less predicates: no cycle at all.
	Serializable
	// SessionReadCommitted is ReadCommitted where each client's transactions depend on its earlier
	// ones.
	SessionReadCommitted
	// SessionSnapshotIsolation is strong session snapshot isolation [Daudjee and Salem, VLDB 2006]:
	// snapshots hold what the client committed before.
	SessionSnapshotIsolation
	// SessionSerializable is strong session serializability.
	SessionSerializable
	// StrongSnapshotIsolation is SnapshotIsolation in real time: snapshots hold what anybody
	// committed before they began.
	StrongSnapshotIsolation
	// StrictSerializable is Serializable in real time, which includes each client's order.
	StrictSerializable
)

// String returns the level's name.
func (l Level) String() string {
	switch l {
	case ReadCommitted:
		return "read committed"
	case SnapshotIsolation:
		return "snapshot isolation"
	case Serializable:
		return "serializable"
	case SessionReadCommitted:
		return "session read committed"
	case SessionSnapshotIsolation:
		return "session snapshot isolation"
	case SessionSerializable:
		return "session serializable"
	case StrongSnapshotIsolation:
		return "strong snapshot isolation"
	case StrictSerializable:
		return "strict serializable"
	}
	return fmt.Sprintf("Level(%d)", uint8(l))
}

// order returns the strongest order that the level keeps between transactions without a dependency.
func (l Level) order() Order {
	switch l {
	case SessionReadCommitted, SessionSnapshotIsolation, SessionSerializable:
		return Session
	case StrongSnapshotIsolation, StrictSerializable:
		return RealTime
	}
	return NoOrder
}

// cycles returns the weakest phenomenon among those of cycles that the level forbids: it forbids
// the graver ones too.
func (l Level) cycles() Phenomenon {
	switch l {
	case SnapshotIsolation, SessionSnapshotIsolation, StrongSnapshotIsolation:
		return GNonadjacent
	case Serializable, SessionSerializable, StrictSerializable:
		return G2Item
	}
	return G1c
}

// Order is an order between transactions that need not depend on each other.
type Order uint8

const (
	// NoOrder is none.
	NoOrder Order = iota
	// Session is the order of one client's transactions.
	Session
	// RealTime is that one transaction ended before the other began.
	RealTime
)

// String returns how the order shows in the name of an anomaly.
func (o Order) String() string {
	switch o {
	case NoOrder:
		return "none"
	case Session:
		return "session"
	case RealTime:
		return "realtime"
	}
	return fmt.Sprintf("Order(%d)", uint8(o))
}

// Phenomenon is a kind of thing that should not be. The cycles come last, the gravest first.
type Phenomenon uint8

const (
	// GarbageRead: a version was read, or ordered, that nobody wrote.
	GarbageRead Phenomenon = iota + 1
	// Duplicate: a version is in a recorded order or in a list twice, as if it had been written
	// twice.
	Duplicate
	// Internal: a transaction did not read what it had written itself, or read what it wrote only
	// later.
	Internal
	// IncompatibleOrder: two reads of a list show different orders, or a read and the recorded
	// order do.
	IncompatibleOrder
	// LostWrite: a committed write is not among the versions that the store recorded.
	LostWrite
	// DirtyUpdate: an aborted write is among the recorded versions, or others built on it.
	DirtyUpdate
	// G1a: aborted read. A committed transaction read an aborted write.
	G1a
	// G1b: intermediate read. A transaction read what another one overwrote before it committed.
	G1b
	// LostUpdate: a transaction read a version of a key and wrote the key, after another one had
	// replaced that version.
	LostUpdate
	// G0: write cycle, of write dependencies only.
	G0
	// G1c: circular information flow, of write and read dependencies.
	G1c
	// GSingle: a cycle with exactly one anti-dependency, such as a read of a part of what a
	// transaction wrote.
	GSingle
	// GNonadjacent: a cycle with several anti-dependencies, no two of them in a row. Snapshot
	// isolation forbids it.
	GNonadjacent
	// G2Item: a cycle with anti-dependencies in a row, such as write skew.
	G2Item
)

// String returns the phenomenon's name.
func (p Phenomenon) String() string {
	switch p {
	case GarbageRead:
		return "garbage-read"
	case Duplicate:
		return "duplicate"
	case Internal:
		return "internal"
	case IncompatibleOrder:
		return "incompatible-order"
	case LostWrite:
		return "lost-write"
	case DirtyUpdate:
		return "dirty-update"
	case G1a:
		return "G1a"
	case G1b:
		return "G1b"
	case LostUpdate:
		return "lost-update"
	case G0:
		return "G0"
	case G1c:
		return "G1c"
	case GSingle:
		return "G-single"
	case GNonadjacent:
		return "G-nonadjacent"
	case G2Item:
		return "G2-item"
	}
	return fmt.Sprintf("Phenomenon(%d)", uint8(p))
}

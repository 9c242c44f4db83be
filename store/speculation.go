package store

import (
	"fmt"
	"time"
)

type (
	// SpeculationStatus is what a coordinator has seen, since its start, of transactions that build on
	// each other. It answers StatusQuery (Protocol.CoordinatorStatus).
	SpeculationStatus struct {
		Ref uint64
		// Locals is how many were committed locally, and Misspeculated how many of them were aborted
		// later. Finals is how many transactions are committed for good, those that only read included.
		Locals, Misspeculated, Finals uint64
		// Builders is how many have read what was not final, or were certified on top of it.
		Builders uint64
		// Aborted counts the aborted ones by cause. One that was aborted in vain, as somebody else had
		// committed it, is one of Finals, too.
		Aborted [AbortCauses]uint64
		// Chains counts those that were committed locally by on how many others, which were not final,
		// they depended then, directly or through others: as the first of ChainBounds that is not less
		// or, in the last place, as more than all. ChainSum is of these numbers, Longest the largest.
		Chains   [ChainCounts]uint64
		ChainSum uint64
		Longest  int
		// Unfinal is how many are committed locally at present, and not final.
		Unfinal int
		// Blocked is how many wait at present for what they have read, as their snapshot may have two
		// that conflict [STR: OLC < FFC]; OldestBlocked is the one that has waited the longest, and
		// BlockedFor for how long.
		Blocked       int
		OldestBlocked TxnID
		BlockedFor    time.Duration
		// Degree is how far transactions build on what is not final: "off", "reads", or how many of a
		// client's chain are committed locally at most.
		Degree string
		// Tuning is how the cluster chooses the degree; nil: the coordinator is not the one that does.
		Tuning *TuningStatus
	}

	// TuningStatus is how a degree is chosen, by the one coordinator that does.
	TuningStatus struct {
		Settled bool   // it has found one, and looks for no other
		Windows uint64 // that are over; Last are the latest of them, the latest last
		Last    []TuningWindow
	}

	// TuningWindow is what has become of transactions in a time in which the degree was the same.
	TuningWindow struct {
		Degree             string
		Length             time.Duration
		Committed, Aborted uint64        // finally
		Latency            time.Duration // from begin to final commit: the 99th percentile
	}

	// SnapshotStatus is what a server goes by that serves snapshots to coordinators.
	SnapshotStatus struct {
		Serves bool // it does, as far as it knows
		// It serves no snapshot above Ceiling, and none below Horizon; 0: not known yet.
		Ceiling, Horizon uint64
		// Silent are the places of the sites whose servers of the shard serve none.
		Silent []int
	}
)

// AbortCause is why a coordinator has aborted a transaction.
type AbortCause uint8

const (
	// LocalCertification: another transaction of its site was in its way.
	LocalCertification AbortCause = iota
	// RemoteCertification: a shard has refused what was committed locally.
	RemoteCertification
	// SnapshotTooOld: versions that its snapshot needs are gone.
	SnapshotTooOld
	// Cascade: what it depended on was aborted.
	Cascade
	// WriterTooLate: what it depended on has committed above its snapshot.
	WriterTooLate
	// GaveWay: another site's transaction was certified first.
	GaveWay
	// GivenUp: its client was silent or did not want it, or there was no room.
	GivenUp
	// AbortCauses is how many causes there are.
	AbortCauses
)

// String returns the cause in words.
func (c AbortCause) String() string {
	switch c {
	case LocalCertification:
		return "local certification"
	case RemoteCertification:
		return "remote certification"
	case SnapshotTooOld:
		return "snapshot too old"
	case Cascade:
		return "cascade"
	case WriterTooLate:
		return "writer finished too late"
	case GaveWay:
		return "gave way"
	case GivenUp:
		return "given up"
	}
	return fmt.Sprintf("AbortCause(%d)", uint8(c))
}

// ChainCounts is how many counts SpeculationStatus.Chains has: one more than there are ChainBounds.
const ChainCounts = 8

// ChainBounds are the bounds of SpeculationStatus.Chains, in ascending order.
func ChainBounds() [ChainCounts - 1]int { return [ChainCounts - 1]int{0, 1, 2, 4, 8, 16, 32} }

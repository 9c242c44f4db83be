package domino

import (
	"math"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// A slot is a time in nanoseconds, whose remainder by stride says whose it is: 0 anybody's (DFP), 1
// to maxMembers that of the member with this number in the order of IDs (DM), controlDigit that of
// the coordinator, for changes of the members. This is the paper's sharding of timestamps by low
// digits [Thesis §4.3.3], for DM's tracks too; the order of the log is the order of these numbers.
const (
	stride       = 16
	maxMembers   = 14
	sharedDigit  = 0
	controlDigit = 15
)

// A trackID is a part of the slots that is filled on its own: that of a member is named by its ID.
type trackID uint32

const (
	// shared is the track of DFP.
	shared trackID = 0
	// control is the coordinator's track.
	control trackID = math.MaxUint32
)

// trackOf returns the track of a replica.
func trackOf(id protocol.ID) trackID { return trackID(id) }

// owned reports whether the track is a replica's.
func (l trackID) owned() bool { return l != shared && l != control }

// at returns the time of a slot.
func at(s smr.Slot) time.Duration { return time.Duration(s) }

// slotAt returns the slot of a time, 0 if that is negative.
func slotAt(t time.Duration) smr.Slot { return smr.Slot(max(t, 0)) }

// above returns the lowest slot above one that has the digit.
func above(s smr.Slot, digit uint64) smr.Slot {
	next := uint64(s) + 1
	return smr.Slot(next + (digit+stride-next%stride)%stride)
}

func digitOf(s smr.Slot) uint64 { return uint64(s) % stride }

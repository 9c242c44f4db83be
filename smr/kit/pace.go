package kit

import (
	"time"

	"github.com/foresay/foresay/smr"
)

// Pace returns how long to wait with what is to be sent, so that what comes up soon after the last
// message travels together: a five-hundredth of a round trip, which nobody notices. It is not
// positive if there was none for so long. A clock that was set back costs no more than that either.
func Pace(now, last, roundTrip time.Duration) time.Duration {
	gap := roundTrip / 500
	if now < last {
		return 0
	}
	return last + gap - now
}

// UntilBeat returns how long it is until the next beat of an engine that beats so often. Where
// hosts have several groups, and vouch for each other, beats fall on multiples of that time: so
// those of many groups come at one moment, and what they have to say to another host is one message
// on the way.
func UntilBeat(c smr.ReplicaConfig, now, every time.Duration) time.Duration {
	if c.Vouch == nil {
		return every
	}
	return untilBeat(now, every)
}

// untilBeat returns how long it is until the next multiple, which is more than 0.
func untilBeat(now, every time.Duration) time.Duration { return every - (now%every+every)%every }

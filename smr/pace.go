package smr

import "time"

// Pace returns how long to wait with what is to be sent, so that what comes up soon after the last message travels together: a five-hundredth of a round trip, which nobody notices.
// It is not positive if there was none for so long. A clock that was set back costs no more than that either.
func Pace(now, last, roundTrip time.Duration) time.Duration {
	gap := roundTrip / 500
	if now < last {
		return 0
	}
	return last + gap - now
}

package kit

import "time"

// Underway is what was sent to a peer and is not acknowledged. One that was away is brought up to
// date a part at a time: the whole log at once would keep it, and all that is said to it meanwhile,
// waiting until it had read that. Flow is for what a peer takes in order.
type Underway struct {
	parcels []parcel // in the order of their positions
	bytes   int
}

type parcel struct {
	last  uint64 // the last position in it
	bytes int
	sent  time.Duration
}

// cheapBytes cost little to send once too often.
const cheapBytes = 64 << 10

// Sent notes a message with positions up to one.
func (u *Underway) Sent(now time.Duration, last uint64, entries, bytes int) {
	bytes += entries * entryRoom
	u.parcels = append(u.parcels, parcel{last, bytes, now})
	u.bytes += bytes
}

// done notes that the peer has all positions up to one.
func (u *Underway) done(to uint64) {
	for len(u.parcels) > 0 && u.parcels[0].last <= to {
		u.bytes -= u.parcels[0].bytes
		u.parcels = u.parcels[1:]
	}
}

// Full reports whether the peer should acknowledge something before it is sent more than the bound
// of smr.ReplicaConfig.MaxUnderwayBytes.
func (u *Underway) Full(bound int) bool { return u.bytes >= bound }

// lost reports whether to send again what a peer lacks from a position on, and if so forgets that
// it was sent. Much that was sent less than a round trip ago is probably still on its way.
func (u *Underway) lost(now time.Duration, from uint64, roundTrip time.Duration) bool {
	if u.bytes > cheapBytes {
		for _, p := range u.parcels {
			if p.last < from {
				continue
			}
			if since := now - p.sent; since >= 0 && since < roundTrip {
				return false
			}
			break
		}
	}
	u.forget()
	return true
}

// Expire forgets what was sent a round trip ago or more, for what nobody acknowledges.
func (u *Underway) Expire(now, roundTrip time.Duration) {
	for len(u.parcels) > 0 {
		if since := now - u.parcels[0].sent; since >= 0 && since < roundTrip {
			return
		}
		u.bytes -= u.parcels[0].bytes
		u.parcels = u.parcels[1:]
	}
}

func (u *Underway) forget() { u.parcels, u.bytes = nil, 0 }

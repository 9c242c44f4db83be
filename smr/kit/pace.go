package kit

import (
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// A Batch has what comes up soon after the last message wait for what else comes up, so that it
// travels, and is written, together. Its zero value waits for nothing.
type Batch struct {
	waits bool          // FlushTimer is set
	sent  time.Duration // when it ran out last
}

// FlushTimer is a node's timer for what has come up since Batch.Soon: it is to be sent.
type FlushTimer struct{}

// Soon sets the FlushTimer, unless it is set.
func (b *Batch) Soon(env *protocol.Env[smr.Message], roundTrip time.Duration) {
	if !b.waits {
		b.waits = true
		env.After(pace(env.Now, b.sent, roundTrip), FlushTimer{})
	}
}

// Waits reports whether the FlushTimer is set.
func (b *Batch) Waits() bool { return b.waits }

// Flushed says that the FlushTimer has run out.
func (b *Batch) Flushed(now time.Duration) { b.waits, b.sent = false, now }

// Stop forgets what has come up.
func (b *Batch) Stop(env *protocol.Env[smr.Message]) {
	*b = Batch{}
	env.Stop(FlushTimer{})
}

// pace returns how long to wait with what is to be sent: until a five-hundredth of a round trip
// after the last message, which nobody notices. It is not positive if there was none for so long. A
// clock that was set back costs no more than that either.
func pace(now, last, roundTrip time.Duration) time.Duration {
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

package kit

import (
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// A Tempo is how long a round trip takes at present: as long as the configuration says, or longer
// where answers have come later of late, since much is on its way or machines are busy. Who waits
// for an answer before it repeats a question, or looks for another leader, waits by it: to send
// large messages again that are on their way only makes them later.
type Tempo struct {
	roundTrip time.Duration // the configuration's
	peak      time.Duration // what answers have taken at most lately
	window    time.Duration // and since the last look
	looked    time.Duration
	beaten    time.Duration // the last beat of that pace
	idle      int           // calls of Asks since something was under way
}

// A Ping is answered by a Pong with the same time, of the clock of who asks. Both wait behind what
// is on its way, and for what is to be written: so they tell how long any answer takes.
type (
	Ping struct{ Sent time.Duration }
	Pong struct{ Sent time.Duration }
)

// Of a tempo: what it is at most, in round trips or on a near network in time, and which part of
// the way to what answers take by now it goes in each round trip.
const (
	maxTempo   = 8
	nearTempo  = time.Second
	tempoDecay = 8
)

// askedIdle is how many times in a row the way is measured when nothing is under way any more.
const askedIdle = 16

// NewTempo returns the tempo of a configured round-trip time.
func NewTempo(roundTrip time.Duration) Tempo { return Tempo{roundTrip: roundTrip} }

// Saw notes that an answer has come after so long.
func (t *Tempo) Saw(now, took time.Duration) {
	t.window = max(t.window, took)
	t.peak = max(t.peak, min(took, max(maxTempo*t.roundTrip, nearTempo)))
	if since := now - t.looked; since >= 0 && since < t.roundTrip {
		return
	}
	t.peak -= max(t.peak-t.window, 0) / tempoDecay
	t.window, t.looked = 0, now
}

// Missed notes that no answer has come in time: next time twice as long is waited, so that what
// takes long comes to an end at last.
func (t *Tempo) Missed(now time.Duration) { t.Saw(now, t.Times(2)) }

// Busy notes that commands are under way.
func (t *Tempo) Busy() { t.idle = 0 }

// Asks reports whether the way to the peers should be measured in this beat: a group that is idle
// sends no messages for it, unless answers were late when they last came.
func (t *Tempo) Asks() bool {
	t.idle++
	return t.idle <= askedIdle || t.peak > 2*t.roundTrip
}

// Ask measures the way to a peer.
func (t *Tempo) Ask(env *protocol.Env[smr.Message], peer protocol.ID) {
	env.Send(peer, Ping{Sent: env.Now})
}

// Receive answers a Ping, or takes what a Pong tells.
func (t *Tempo) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	switch m := msg.(type) {
	case Ping:
		env.Send(from, Pong(m))
	case Pong:
		t.Saw(env.Now, env.Now-m.Sent)
	}
}

// Beat reports whether the beat of an engine that comes once in so many configured round trips is
// also one at the present pace: what waits for answers counts those. A round trip that takes hardly
// longer than configured leaves all beats.
func (t *Tempo) Beat(now time.Duration, n float64) bool {
	due := t.Times(n) - time.Duration(n*float64(t.roundTrip)/2)
	if since := now - t.beaten; since >= 0 && since < due {
		return false
	}
	t.beaten = now
	return true
}

// Times returns a multiple of the present round trip.
func (t *Tempo) Times(n float64) time.Duration {
	return time.Duration(n * float64(max(t.roundTrip, t.peak)))
}

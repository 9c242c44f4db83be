package smr

import "time"

// A Tempo is how long a round trip takes at present: as long as the configuration says, or longer where answers have come later of late, since much is on its way or machines are busy. Who waits for an
// answer before it repeats a question, or looks for another leader, waits by it: to send large messages again that are on their way only makes them later.
type Tempo struct {
	roundTrip time.Duration // the configuration's
	peak      time.Duration // what answers have taken at most lately
	window    time.Duration // and since the last look
	looked    time.Duration
}

// Of a tempo: what it is at most, in round trips or on a near network in time, and which part of the way to what answers take by now it goes in each round trip.
const (
	maxTempo   = 8
	nearTempo  = time.Second
	tempoDecay = 8
)

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

// Missed notes that no answer has come in time: next time twice as long is waited, so that what takes long comes to an end at last.
func (t *Tempo) Missed(now time.Duration) { t.Saw(now, t.Times(2)) }

// Times returns a multiple of the present round trip.
func (t *Tempo) Times(n float64) time.Duration {
	return time.Duration(n * float64(max(t.roundTrip, t.peak)))
}

package replicatedcommit

import (
	"time"

	"github.com/foresay/foresay/store"
)

// A pace is how long sites take to answer a client's reads or commits, or decisions take to follow
// a server's votes: Config.RoundTrip says what the network takes, and what is more has to do with
// load and with how much is sent.
type pace struct {
	mean, deviation time.Duration // averages that forget, of the longest in each round trip; 0: there was none
	longest, since  time.Duration // the longest of this round trip, and when that began
	bytes           int           // of transactions that are on their way
}

const (
	// What is waited for slow answers is at most so many round trips, and on a near network so
	// long: later is a failure.
	maxLag   = 16
	leastLag = time.Second
)

// longestLag bounds what is waited for slow answers.
func longestLag(roundTrip time.Duration) time.Duration {
	return max(maxLag*roundTrip, leastLag)
}

// saw learns from an answer that came after so long. Under load answers come in bursts, as disks
// write them, with hardly a difference within a burst: so one in each round trip counts, the
// slowest.
func (p *pace) saw(now, took, roundTrip time.Duration) {
	took = min(max(took, 0), longestLag(roundTrip))
	if p.mean == 0 {
		p.mean, p.deviation, p.since = took, took/2, now
		return
	}
	since := now - p.since
	if since > longestLag(roundTrip) {
		p.longest = 0 // what the last burst before an idle time took says nothing any more
	}
	p.longest = max(p.longest, took)
	if since >= 0 && since < roundTrip {
		return
	}
	took, p.longest, p.since = p.longest, 0, now
	p.deviation += (max(took-p.mean, p.mean-took) - p.deviation) / 4
	p.mean += (took - p.mean) / 8
}

// lag returns how long answers take, all but a few, a number of round trips at least.
func (p *pace) lag(least int, roundTrip time.Duration) time.Duration {
	return max(time.Duration(least)*roundTrip, min(p.mean+4*p.deviation, longestLag(roundTrip)))
}

// Patience returns how long the client waits at present until it asks for votes again: two round
// trips, or more if answers have taken longer lately, as TCP's timeouts do, and the time that it
// takes to send all that is on its way. Whoever carries the client's messages may ask, but not
// concurrently with its other methods.
func (c *client) Patience() time.Duration {
	return c.pace.lag(2, c.cfg.RoundTrip) + store.SendTime(c.pace.bytes)
}

// ReadPatience returns how long the client waits at present for answers to a read that nothing
// holds up. Whoever carries the client's messages may ask, as with Patience.
func (c *client) ReadPatience() time.Duration { return c.reading.lag(2, c.cfg.RoundTrip) }

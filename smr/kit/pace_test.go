package kit

import (
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

func TestPace(t *testing.T) {
	const trip = 100 * time.Millisecond
	for _, c := range []struct{ now, last, want time.Duration }{
		{time.Hour, 0, -1},
		{time.Hour, time.Hour, 200 * time.Microsecond},
		{time.Hour + 150*time.Microsecond, time.Hour, 50 * time.Microsecond},
		{time.Hour + 300*time.Microsecond, time.Hour, -1},
		{time.Hour - time.Minute, time.Hour, 0}, // the clock was set back
	} {
		if got := pace(c.now, c.last, trip); got != c.want && (got > 0 || c.want > 0) {
			t.Errorf("now %v, last %v: %v, want %v", c.now, c.last, got, c.want)
		}
	}
}

// TestBusyClientSendsFewMessages has a call every 10 µs for 10 ms.
func TestBusyClientSendsFewMessages(t *testing.T) {
	c := newChaos(t, 1, smr.ClientConfig{RoundTrip: 100 * time.Millisecond})
	now := time.Millisecond
	c.step(t, now, func() { c.client.Receive(c.env, 1, OpenReply{Nonce: c.client.nonce, Session: 1, Window: 10_000}) })
	c.mail = nil
	commands := 0
	for id := smr.CallID(1); id <= 1000; id++ {
		now += 10 * time.Microsecond
		c.step(t, now, func() { c.client.Receive(c.env, protocol.App, smr.Call{ID: id, Kind: smr.Propose}) })
		if at, ok := c.timers[FlushTimer{}]; ok && at <= now {
			delete(c.timers, FlushTimer{})
			c.step(t, now, func() { c.client.Expire(c.env, FlushTimer{}) })
		}
	}
	for _, l := range c.mail {
		commands += len(l.msg.(Request).Commands)
	}
	if n := len(c.mail); n > 52 || commands < 980 {
		t.Errorf("%d messages with %d commands", n, commands)
	}
}

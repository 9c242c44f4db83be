package store

import (
	"cmp"
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
)

// Config is what a node is made from. Zero fields have the defaults that they name.
type Config struct {
	ID     protocol.ID
	Layout Layout
	// Epoch rises with each change of the layout. A server that has seen a later one refuses to
	// start. 0 is the first.
	Epoch uint64
	// RoundTrip is between the sites that are farthest from each other; 0 is 250 ms. Timeouts are
	// multiples of it.
	RoundTrip time.Duration
	// Retain is how long decided transactions are remembered for clients that ask; 0 is a minute. A
	// transaction that comes to a site later than this is not accepted.
	Retain time.Duration
	// MaxAhead bounds how far a transaction's version, or a priority, may be ahead of a server's
	// clock; 0 is a minute.
	MaxAhead time.Duration
	// MaxOffset is how far the clocks of any two machines may be apart, for protocols that are strict
	// as long as that is so; 0 is 10 ms. Commits wait until their time has passed on all clocks,
	// which takes no longer than their votes if MaxOffset is a small part of the round trips.
	MaxOffset time.Duration
	// MaxTxns bounds the transactions that a server or a coordinator remembers; 0 is a million. A
	// server that has as many forgets those that are carried out everywhere before their time, and
	// if there are none takes no new ones: their clients are told that it is Overloaded.
	MaxTxns int
	// MaxWaiting bounds the reads of a server that wait for locked keys, its reservations, the
	// votes that it holds back, and the calls of a client; 0 is 10000 of each.
	MaxWaiting int

	// ByArrival has requests to prepare handled in the order in which they should have arrived at all
	// servers that they are sent to, as their senders predict it: of protocols that can
	// (Protocol.Orders).
	ByArrival bool

	// Speculate is how far transactions build on what is not final: one of Protocol.Degrees, "" for
	// the first of them.
	Speculate string

	// Readers is how many copies of each shard serve reads, and are waited for by commits; 0 is all.
	// Of protocols that can have fewer (Protocol.Readers).
	Readers int

	// Retired has a server vote for nothing new from its start on: see Retire.
	Retired bool

	// Applied gets each value that a server writes, for tests and figures. It is called in the
	// node's own calls, and must not wait. nil: nobody.
	Applied func(Key, Value)
}

// What a Config's RoundTrip and MaxOffset are that say nothing.
const (
	DefaultRoundTrip = 250 * time.Millisecond
	DefaultMaxOffset = 10 * time.Millisecond
)

// WithDefaults returns the configuration with all fields set, or an error that names the field.
func (c Config) WithDefaults() (Config, error) {
	if err := c.Layout.Validate(); err != nil {
		return c, err
	}
	for _, s := range c.Layout.Sites {
		if s.Since > c.Epoch {
			return c, fmt.Errorf("store: site %q is of epoch %d, and Config.Epoch is %d", s.Name, s.Since, c.Epoch)
		}
	}
	switch {
	case c.ID == protocol.App:
		return c, fmt.Errorf("store: Config.ID is 0")
	case c.RoundTrip < 0 || c.Retain < 0 || c.MaxAhead < 0 || c.MaxOffset < 0:
		return c, fmt.Errorf("store: Config.RoundTrip, Retain, MaxAhead or MaxOffset of %v, %v, %v, %v is negative",
			c.RoundTrip, c.Retain, c.MaxAhead, c.MaxOffset)
	case c.MaxTxns < 0 || c.MaxWaiting < 0:
		return c, fmt.Errorf("store: Config.MaxTxns or MaxWaiting of %d, %d is negative", c.MaxTxns, c.MaxWaiting)
	}
	c.RoundTrip = cmp.Or(c.RoundTrip, DefaultRoundTrip)
	c.Retain = cmp.Or(c.Retain, time.Minute)
	c.MaxAhead = cmp.Or(c.MaxAhead, time.Minute)
	c.MaxOffset = cmp.Or(c.MaxOffset, DefaultMaxOffset)
	c.MaxTxns = cmp.Or(c.MaxTxns, 1_000_000)
	c.MaxWaiting = cmp.Or(c.MaxWaiting, 10_000)
	return c, nil
}

// IsNew reports whether a site took the place of a lost one in this epoch.
func (c Config) IsNew(site int) bool {
	since := c.Layout.Sites[site].Since
	return since > 0 && since == c.Epoch
}

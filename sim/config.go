package sim

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/wan"
)

// Config is what a simulation is made from. The zero Config is a network without delays or faults,
// on disks that take no time.
type Config[M any] struct {
	Seed uint64
	// WAN is what lies between sites. Without it all nodes are at the site "" and messages arrive
	// at once.
	WAN wan.Matrix
	// Datagrams makes links lose, repeat and reorder single messages. nil: links are like TCP
	// connections, whose messages arrive in order or are lost together.
	Datagrams *Datagrams
	// Disk is that of nodes that have none of their own.
	Disk Disk
	// Service tells for how long a node is at work on a call, which is made when that is over: its
	// effects and its clock are those of that time. Further calls wait in line meanwhile, so that a
	// node can be asked for more than it can do. It must depend on its argument alone, and 0 or less
	// is no time. nil: calls take no time.
	Service func(c Call[M]) time.Duration
	// Machine tells which nodes share a processor, which is at one call at a time: those for which it
	// returns the same. nil: each has its own.
	Machine func(protocol.ID) protocol.ID
	// Shuffle makes what happens to different nodes at one instant come in an order of chance.
	// Otherwise it comes in the order in which it was caused.
	Shuffle bool
	// Codec makes messages and records travel as bytes, so that it is proven and nodes share no
	// memory. They are part of the hash then. nil: as values.
	Codec protocol.Codec[M]
	// CodecChance is how many messages take that way, the others being values; 0 is all of them.
	CodecChance float64
	// SizeBytes tells the size of a message, for links with a bandwidth. nil: that of its bytes if
	// there is a codec, else 0.
	SizeBytes func(msg M) int
	// QueueBytes bounds what waits at a site to leave for another one, on a link with a bandwidth.
	// What is more is lost, as a full queue of package transport loses it. 0: any amount waits.
	QueueBytes int
	// Check looks for broken invariants of the whole after each step. nil: none.
	Check func() error
	// CheckEvery makes only one step of so many followed by checks, the nodes' own and Check; 0 is
	// each.
	CheckEvery int
	// App gets what nodes send to their application, at the time of Now. It may call the Sim's
	// methods but Step and those that run. nil: nobody.
	App func(from protocol.ID, msg M)
	// ClockStart is what a right clock shows at the start; 0 is an hour.
	ClockStart time.Duration
	// MaxEvents bounds how many events are to come at once. A run that gets there fails: something
	// feeds itself. 0 is a million.
	MaxEvents int
	// Trace gets a line for each thing that happens. nil: only the last ones are kept, for
	// failures.
	Trace io.Writer
	// TraceKeep is how many things are kept; 0 is 1000, less than 0 none.
	TraceKeep int
	// Replay is the command that repeats this run, for failures to name.
	Replay string
}

// A Disk is how long writing takes. A disk does one sync at a time, which makes durable what was
// written before it began.
type Disk struct {
	Latency time.Duration // of a sync; 0: each call is durable when it returns
	Jitter  time.Duration // the bound of a further, random time
}

// Datagrams is what links do to single messages, beside the jitter of the network. Each is a chance
// from 0 to 1.
type Datagrams struct {
	Loss      float64 // beside that of the network
	Duplicate float64 // arrives a second time
	Reorder   float64 // arrives up to ReorderBy later
	// ReorderBy bounds how much later; 0 is 100 ms.
	ReorderBy time.Duration
}

func (c *Config[M]) validate() error {
	var errs []error
	chance := func(name string, x float64) {
		if !(x >= 0 && x <= 1) {
			errs = append(errs, fmt.Errorf("%s of %v is not in [0, 1]", name, x))
		}
	}
	chance("CodecChance", c.CodecChance)
	if d := c.Datagrams; d != nil {
		chance("Datagrams.Loss", d.Loss)
		chance("Datagrams.Duplicate", d.Duplicate)
		chance("Datagrams.Reorder", d.Reorder)
		if d.ReorderBy < 0 {
			errs = append(errs, fmt.Errorf("Datagrams.ReorderBy of %v is negative", d.ReorderBy))
		}
	}
	if c.Disk.Latency < 0 || c.Disk.Jitter < 0 {
		errs = append(errs, fmt.Errorf("Disk of %+v has a negative time", c.Disk))
	}
	if c.QueueBytes < 0 {
		errs = append(errs, fmt.Errorf("QueueBytes of %d is negative", c.QueueBytes))
	}
	if c.CheckEvery < 0 {
		errs = append(errs, fmt.Errorf("CheckEvery of %d is negative", c.CheckEvery))
	}
	if c.MaxEvents < 0 {
		errs = append(errs, fmt.Errorf("MaxEvents of %d is negative", c.MaxEvents))
	}
	if c.ClockStart < 0 {
		errs = append(errs, fmt.Errorf("a ClockStart of %v is negative", c.ClockStart))
	}
	return errors.Join(errs...)
}

func (c *Config[M]) setDefaults() {
	if c.CodecChance == 0 {
		c.CodecChance = 1
	}
	if c.Datagrams != nil {
		d := *c.Datagrams
		if d.ReorderBy == 0 {
			d.ReorderBy = 100 * time.Millisecond
		}
		c.Datagrams = &d
	}
	c.CheckEvery = max(c.CheckEvery, 1)
	if c.ClockStart == 0 {
		c.ClockStart = time.Hour
	}
	if c.MaxEvents == 0 {
		c.MaxEvents = 1_000_000
	}
	if c.TraceKeep == 0 {
		c.TraceKeep = 1000
	}
}

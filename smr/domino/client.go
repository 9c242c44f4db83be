package domino

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// client is the client's node: it measures delays, chooses slots or tracks, counts votes, and asks
// again what is not answered.
type client struct {
	kit.Calls
	cfg        smr.ClientConfig
	opt        Options
	members    []smr.Member
	generation uint64
	roads      map[protocol.ID]*road
	leader     protocol.ID // who coordinates, as somebody said

	opening int // beats since a session was asked for

	attempts map[smr.Slot]*attempt     // in slots of the shared track
	places   map[smr.Slot]*placings    // in slots of others
	lastSlot smr.Slot                  // that the client chose
	fast     record16                  // how the last attempts went
	slacks   *clock.Window             // that would have been enough for each vote, with AdaptSlack
	pause    int                       // ticks for which the fast path is left alone
	stats    struct{ fast, tried int } // attempts whose slots votes gave them, and all of which that is known
	turn     int

	active int           // probes since there was a call
	beats  time.Duration // at the present pace, each for half a round trip: what is not answered is sent again by it
}

// attempt is commands in a slot of the shared track.
type attempt struct {
	seqs    []kit.Seq
	slack   time.Duration // how far its slot is behind the predicted arrival
	yes, no quorum.Votes
	settled bool
	counted bool // in Client.stats
	age     int
}

// placings count who has accepted commands in a slot of a replica's track.
type placings struct {
	by  quorum.Votes
	age int
}

// Bounds, in ticks or beats of half a round trip.
const (
	clientPatience = 5
	forgetTicks    = 32
	pauseTicks     = 8
	maxSubmit      = 1024
	maxSlacks      = 2048
	slackWindows   = 4 // a vote that is late for want of slack is rare, so it is remembered for longer than a delay
)

type probeTimer struct{}

// newClient returns a client's node.
func newClient(cfg smr.ClientConfig, o Options) (*client, error) {
	cfg, err := cfg.WithDefaults()
	if err != nil {
		return nil, fmt.Errorf("domino: %w", err)
	}
	if o, err = o.withDefaults(cfg.RoundTrip); err != nil {
		return nil, err
	}
	c := &client{
		Calls: kit.NewCalls(cfg), cfg: cfg, opt: o, roads: map[protocol.ID]*road{},
		attempts: map[smr.Slot]*attempt{}, places: map[smr.Slot]*placings{},
	}
	if c.slacks, err = clock.NewWindow(slackWindows*o.Window, maxSlacks); err != nil {
		return nil, fmt.Errorf("domino: %w", err)
	}
	c.regroup(cfg.Members)
	return c, nil
}

// Start begins to measure, and to open a session.
func (c *client) Start(env *protocol.Env[smr.Message], _ []protocol.Record[smr.Message]) {
	c.turn = env.Rand.IntN(len(c.members))
	c.probe(env)
	c.open(env)
}

// Receive takes a call, or an answer.
func (c *client) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if from == protocol.App {
		switch msg := msg.(type) {
		case smr.Call:
			c.onCall(env, msg)
		case smr.Cancel:
			c.Cancel(env, msg)
		case smr.MembersAre:
			if len(msg.Members) > 0 {
				c.regroup(msg.Members)
			}
		}
		return
	}
	switch msg := msg.(type) {
	case echo:
		c.onEcho(env, from, msg)
	case vote:
		c.onVote(env, from, msg)
	case placed:
		c.onPlaced(env, from, msg)
	case outcome:
		c.onOutcome(env, msg)
	case ordered:
		c.onOrdered(env, msg)
	case kit.Replies:
		if c.OnReplies(env, msg) { // the session is gone, and with it all that was sent in it
			clear(c.attempts)
			clear(c.places)
			c.open(env)
		}
	case kit.ReadReplies:
		c.OnReadReplies(env, msg)
	case kit.OpenReply:
		c.OnOpenReply(env, msg)
	case kit.Redirect:
		c.onRedirect(from, msg)
	case kit.Busy:
		for p := range c.OnBusy(from, msg) {
			p.SentAt = c.beats - c.halves(clientPatience-1) // to another one, soon
		}
	case kit.NotYet:
		if p := c.OnNotYet(env, msg); p != nil {
			p.SentAt = c.beats
		}
	}
}

// Expire does what a timer is for.
func (c *client) Expire(env *protocol.Env[smr.Message], t protocol.Timer) {
	switch t.(type) {
	case kit.FlushTimer:
		c.Flushed(env.Now)
		c.flush(env)
	case kit.TickTimer:
		c.Ticked(env)
		c.tick(env)
	case probeTimer:
		c.probe(env)
	}
}

// Broken has what a replica may not have got sent again, to another one.
func (c *client) Broken(_ *protocol.Env[smr.Message], from protocol.ID) {
	for p := range c.InFlight() {
		if p.SentTo == from {
			p.SentAt -= c.halves(clientPatience)
		}
	}
}

func (c *client) halves(n int) time.Duration { return time.Duration(n) * c.cfg.RoundTrip / 2 }

func (c *client) onCall(env *protocol.Env[smr.Message], call smr.Call) {
	if call.After > maxSlot {
		kit.Reject(env, call, fmt.Sprintf("the slot %d is none", call.After))
		return
	}
	c.active = 0
	c.Take(env, call)
}

func (c *client) onRedirect(from protocol.ID, m kit.Redirect) {
	if c.leader == from || c.leader == 0 {
		c.leader = m.Leader.ID
	}
	for p := range c.InFlight() {
		if p.Kind == smr.Reconfigure && p.SentTo == from && m.Leader.ID != 0 {
			p.SentAt = c.beats - c.halves(clientPatience)
		}
	}
}

// finish ends a call of which votes tell enough.
func (c *client) finish(env *protocol.Env[smr.Message], p *kit.Pending, s smr.Slot) {
	c.Answered(env.Now, p)
	c.Finish(env, p, smr.Done{Outcome: smr.Committed, Slot: s})
}

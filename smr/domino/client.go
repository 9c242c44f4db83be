package domino

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Client is the client's node: it measures delays, chooses slots or lanes, counts votes, and asks
// again what is not answered.
type Client struct {
	cfg        smr.ClientConfig
	opt        Options
	members    []smr.Member
	generation uint64
	roads      map[protocol.ID]*road
	leader     protocol.ID // who coordinates, as somebody said

	bytes   int // of the commands of calls
	session kit.SessionID
	window  kit.Seq
	nonce   kit.Seq // of the OpenRequest that is not answered, 0 if there is none
	opening int     // ticks since it was sent

	calls     map[smr.CallID]*pending
	queue     []*pending             // that were not sent, in order
	flights   map[kit.Seq]*pending   // commands and changes that were
	first     kit.Seq                // all below it are done
	next      kit.Seq                // of the next command
	reads     map[uint64]*pending    // that were sent
	lastRead  uint64                 // number of the last one
	firstRead uint64                 // all reads below it are done
	attempts  map[smr.Slot]*attempt  // in slots of the shared lane
	places    map[smr.Slot]*placings // in slots of others
	lastSlot  smr.Slot               // that the client chose
	// floor is the highest slot that a call was told of. Later commands get slots above it,
	// whatever they ask for: they say that the answers of those before are not needed any more, and
	// what is not needed any more is not executed.
	floor  smr.Slot
	fast   record16                  // how the last attempts went
	slacks *clock.Window             // that would have been enough for each vote, with AdaptSlack
	pause  int                       // ticks for which the fast path is left alone
	stats  struct{ fast, tried int } // attempts whose slots votes gave them, and all of which that is known
	turn   int
	tempo  kit.Tempo // of answers

	active   int // probes since there was a call
	flushing bool
	flushed  time.Duration
	ticking  bool
}

// pending is a call that is not done.
type pending struct {
	smr.Call
	seq      kit.Seq // 0 before it was given one
	number   uint64  // of a read
	sentTo   protocol.ID
	sent     time.Duration // at first
	ticks    int           // since it was sent
	age      int           // ticks since it was made
	tries    int
	attempts int // that may still be decided for it. Only if there is one, its slot is the command's.
	reason   string
}

// attempt is commands in a slot of the shared lane.
type attempt struct {
	seqs    []kit.Seq
	slack   time.Duration // how far its slot is behind the predicted arrival
	yes, no quorum.Votes
	settled bool
	counted bool // in Client.stats
	age     int
}

// placings count who has accepted commands in a slot of a replica's lane.
type placings struct {
	by  quorum.Votes
	age int
}

// Bounds, in ticks of half a round trip.
const (
	clientPatience = 5
	giveUpTicks    = 256
	giveUpNotYet   = 40
	forgetTicks    = 32
	pauseTicks     = 8
	maxSubmit      = 1024
	maxSlacks      = 2048
	slackWindows   = 4 // a vote that is late for want of slack is rare, so it is remembered for longer than a delay
)

type clientTick struct{}
type probeTimer struct{}

// NewClient returns a client's node.
func NewClient(cfg smr.ClientConfig, o Options) (*Client, error) {
	cfg, err := cfg.WithDefaults()
	if err != nil {
		return nil, fmt.Errorf("domino: %w", err)
	}
	if o, err = o.withDefaults(cfg.RoundTrip); err != nil {
		return nil, err
	}
	c := &Client{
		cfg: cfg, opt: o, roads: map[protocol.ID]*road{}, calls: map[smr.CallID]*pending{}, flights: map[kit.Seq]*pending{},
		tempo: kit.NewTempo(cfg.RoundTrip), reads: map[uint64]*pending{}, attempts: map[smr.Slot]*attempt{}, places: map[smr.Slot]*placings{}, first: 1, next: 1, firstRead: 1,
	}
	if c.slacks, err = clock.NewWindow(slackWindows*o.Window, maxSlacks); err != nil {
		return nil, fmt.Errorf("domino: %w", err)
	}
	c.adopt(cfg.Members)
	return c, nil
}

// Start begins to measure, and to open a session.
func (c *Client) Start(env *protocol.Env[smr.Message], _ []protocol.Record[smr.Message]) {
	c.turn = env.Rand.IntN(len(c.members))
	c.probe(env)
	c.open(env)
}

// Receive takes a call, or an answer.
func (c *Client) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if from == protocol.App {
		switch msg := msg.(type) {
		case smr.Call:
			c.onCall(env, msg)
		case smr.Cancel:
			if p := c.calls[msg.ID]; p != nil {
				c.abandon(env, p, msg.Reason)
			}
		}
		return
	}
	switch msg := msg.(type) {
	case Echo:
		c.onEcho(env, from, msg)
	case Vote:
		c.onVote(env, from, msg)
	case Placed:
		c.onPlaced(env, from, msg)
	case Outcome:
		c.onOutcome(env, msg)
	case Ordered:
		c.onOrdered(env, msg)
	case kit.Replies:
		c.onReplies(env, msg)
	case kit.ReadReplies:
		c.onReadReplies(env, msg)
	case kit.OpenReply:
		c.onOpenReply(env, msg)
	case kit.Redirect:
		c.onRedirect(from, msg)
	case kit.Busy:
		c.onBusy(from, msg)
	case kit.NotYet:
		c.onNotYet(env, msg)
	}
}

// Expire does what a timer is for.
func (c *Client) Expire(env *protocol.Env[smr.Message], t protocol.Timer) {
	switch t.(type) {
	case flushTimer:
		c.flushing, c.flushed = false, env.Now
		c.flush(env)
	case clientTick:
		c.ticking = false
		c.tick(env)
	case probeTimer:
		c.probe(env)
	}
}

// Broken has what a replica may not have got sent again, to another one.
func (c *Client) Broken(_ *protocol.Env[smr.Message], from protocol.ID) {
	for _, p := range c.inFlight() {
		if p.sentTo == from {
			p.ticks += clientPatience
		}
	}
}

func (c *Client) onCall(env *protocol.Env[smr.Message], call smr.Call) {
	reject := ""
	switch {
	case call.Kind < smr.Propose || call.Kind > smr.Reconfigure:
		reject = fmt.Sprintf("there is no %v", call.Kind)
	case call.Ack > smr.AckExecuted:
		reject = fmt.Sprintf("there is no %v", call.Ack)
	case call.After > maxSlot:
		reject = fmt.Sprintf("the slot %d is none", call.After)
	case len(call.Command) > smr.MaxCommandBytes:
		reject = fmt.Sprintf("the command has %d bytes, more than %d", len(call.Command), smr.MaxCommandBytes)
	case c.calls[call.ID] != nil:
		reject = fmt.Sprintf("call %d is not done", call.ID)
	case len(c.calls) >= c.cfg.MaxPending || c.bytes > 0 && c.bytes+len(call.Command) > c.cfg.MaxPendingBytes:
		reject = fmt.Sprintf("overload: %d calls, of %d bytes, are not done", len(c.calls), c.bytes)
	case call.Kind == smr.Reconfigure:
		if err := call.Change.Validate(); err != nil {
			reject = err.Error()
		}
	}
	if reject != "" {
		env.Send(protocol.App, smr.Done{ID: call.ID, Outcome: smr.Rejected, Reason: reject})
		return
	}
	p := &pending{Call: call}
	c.calls[call.ID] = p
	c.bytes += len(call.Command)
	c.queue = append(c.queue, p)
	c.active = 0
	c.soon(env)
}

// soon sends what is queued when the calls that come up at the same time were taken.
func (c *Client) soon(env *protocol.Env[smr.Message]) {
	if !c.flushing {
		c.flushing = true
		env.After(kit.Pace(env.Now, c.flushed, c.cfg.RoundTrip), flushTimer{})
	}
	c.keepTicking(env)
}

func (c *Client) keepTicking(env *protocol.Env[smr.Message]) {
	if !c.ticking && (len(c.calls) > 0 || c.session == 0) {
		c.ticking = true
		env.After(c.cfg.RoundTrip/2, clientTick{})
	}
}

// finish ends a call, which may be nil: one that is done already.
func (c *Client) finish(env *protocol.Env[smr.Message], p *pending, d smr.Done) {
	if p == nil || c.calls[p.ID] != p {
		return
	}
	d.ID = p.ID
	c.floor = max(c.floor, d.Slot)
	if d.Outcome == smr.Committed {
		c.tempo.Saw(env.Now, (env.Now-p.sent)/2)
	}
	delete(c.calls, p.ID)
	c.bytes -= len(p.Command)
	switch {
	case p.number != 0:
		delete(c.reads, p.number)
		for c.firstRead <= c.lastRead && c.reads[c.firstRead] == nil {
			c.firstRead++
		}
	case p.seq != 0:
		delete(c.flights, p.seq)
		for c.first < c.next && c.flights[c.first] == nil {
			c.first++
		}
	default:
		c.queue = slices.DeleteFunc(c.queue, func(q *pending) bool { return q == p })
	}
	env.Send(protocol.App, d)
}

// inFlight returns the calls that were sent, in order.
func (c *Client) inFlight() []*pending {
	var out []*pending
	for s := c.first; s < c.next; s++ {
		if p := c.flights[s]; p != nil {
			out = append(out, p)
		}
	}
	for n := c.firstRead; n <= c.lastRead; n++ {
		if p := c.reads[n]; p != nil {
			out = append(out, p)
		}
	}
	return out
}

func (c *Client) onReplies(env *protocol.Env[smr.Message], m kit.Replies) {
	if m.Session != c.session {
		return
	}
	for _, r := range m.Items {
		p := c.flights[r.Seq]
		d := smr.Done{Outcome: r.Outcome, Slot: r.Slot, Result: r.Result, Reason: r.Reason}
		if p != nil && p.Kind != smr.Execute {
			d.Result = nil
		}
		c.finish(env, p, d)
		if r.Gone {
			c.sessionGone(env, r.Reason)
			return
		}
	}
	if len(c.queue) > 0 {
		c.soon(env) // the window has moved
	}
}

// sessionGone gives up what the session would know, and opens another.
func (c *Client) sessionGone(env *protocol.Env[smr.Message], reason string) {
	for s := c.first; s < c.next; s++ {
		c.finish(env, c.flights[s], smr.Done{Outcome: smr.Unknown, Reason: reason})
	}
	c.session, c.first, c.next = 0, 1, 1
	clear(c.flights)
	clear(c.attempts)
	clear(c.places)
	c.open(env)
}

func (c *Client) onReadReplies(env *protocol.Env[smr.Message], m kit.ReadReplies) {
	for _, r := range m.Items {
		d := smr.Done{Outcome: smr.Committed, Result: r.Result}
		if r.Reason != "" {
			d = smr.Done{Outcome: smr.Rejected, Reason: r.Reason}
		}
		c.finish(env, c.reads[r.ID], d)
	}
}

func (c *Client) onOpenReply(env *protocol.Env[smr.Message], m kit.OpenReply) {
	if c.session != 0 || m.Nonce != c.nonce || m.Session == 0 {
		return
	}
	c.session, c.window, c.nonce = m.Session, max(m.Window, 1), 0
	c.soon(env)
}

func (c *Client) onRedirect(from protocol.ID, m kit.Redirect) {
	if c.leader == from || c.leader == 0 {
		c.leader = m.Leader.ID
	}
	for _, p := range c.inFlight() {
		if p.Kind == smr.Reconfigure && p.sentTo == from && m.Leader.ID != 0 {
			p.ticks = clientPatience
		}
	}
}

// onBusy has what a replica did not take sent to another one, later.
func (c *Client) onBusy(from protocol.ID, m kit.Busy) {
	later := func(p *pending) {
		if p != nil && p.sentTo == from {
			p.tries++
			p.ticks, p.reason = clientPatience-1, "overload: the replicas take no more"
		}
	}
	if m.Session == c.session {
		for _, q := range m.Seqs {
			later(c.flights[q])
		}
	}
	for _, id := range m.Queries {
		later(c.reads[id])
	}
}

func (c *Client) onNotYet(env *protocol.Env[smr.Message], m kit.NotYet) {
	p := c.flights[m.Seq]
	if m.Session != c.session || p == nil || p.Kind != smr.Reconfigure {
		return
	}
	p.ticks, p.reason = 0, m.Reason
	if p.age >= giveUpNotYet {
		c.finish(env, p, smr.Done{Outcome: smr.Unknown, Reason: m.Reason})
	}
}

package kit

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// A LeaderClient is the client node of protocols with a leader. It opens a session, finds the
// leader, sends it what the application asks for, as it comes and many calls in one message, and
// repeats what is not answered. Each call gets one Done.
type LeaderClient struct {
	cfg     smr.ClientConfig
	members []smr.Member // whom it may ask

	session SessionID
	window  Seq
	nonce   Seq // of the OpenRequest that is not answered, 0 if there is none

	calls    map[smr.CallID]*pending
	bytes    int        // of their commands
	queue    []*pending // commands that were not sent, in order
	unasked  []*pending // reads that were not sent
	commands flights
	reads    flights

	target    protocol.ID // whom it takes for the leader, or asks next
	sure      bool        // the target has answered as a leader does
	turn      int         // in members; whose turn it is if nobody is known to lead
	swept     protocol.ID // to whom all flights were sent, 0 if only some were
	silent    protocol.ID // who led and does not answer any more; what others say of it is old for a while
	silentAt  time.Duration
	redirects int  // since somebody answered as a leader does
	unknowing int  // answers of the target in a row that it knows no leader
	answered  bool // the target gave such an answer since it was last asked
	heard     time.Duration
	probe     time.Duration // when to ask the next one, if not sure
	patience  time.Duration
	tempo     Tempo // of answers to calls
	flushing  bool
	flushed   time.Duration
	ticking   bool
}

type (
	flushTimer struct{}
	tickTimer  struct{}
)

// Bounds of a LeaderClient. Times are multiples of ClientConfig.RoundTrip.
const (
	patience     = 2.5 // before an answer is missed: a command takes the round trip to the leader and the leader's own
	maxPatience  = 20
	giveUp       = 128 // on a call, altogether, unless its Patience is longer
	giveUpNotYet = 20  // on a change of the members that the leader says cannot be made
	forgive      = 8   // before a leader that did not answer is believed in again, if others say that it leads
	maxUnknowing = 8   // times that somebody who knows no leader is asked again
	maxProbe     = 64  // calls that are sent to somebody who may not lead
	maxRequest   = 1024
)

// NewLeaderClient returns the client node of a protocol with a leader.
func NewLeaderClient(cfg smr.ClientConfig) (*LeaderClient, error) {
	cfg, err := cfg.WithDefaults()
	if err != nil {
		return nil, err
	}
	return &LeaderClient{
		cfg: cfg, members: cfg.Members, calls: map[smr.CallID]*pending{}, commands: newFlights(), reads: newFlights(), target: cfg.Nearest, tempo: NewTempo(cfg.RoundTrip),
	}, nil
}

// Start begins to open a session.
func (c *LeaderClient) Start(env *protocol.Env[smr.Message], _ []protocol.Record[smr.Message]) {
	if c.target == 0 {
		c.target = c.members[env.Rand.IntN(len(c.members))].ID
	}
	c.patience = c.tempo.Times(patience)
	c.ask(env)
}

func (c *LeaderClient) times(n float64) time.Duration {
	return time.Duration(n * float64(c.cfg.RoundTrip))
}

// Receive takes a call, or an answer.
func (c *LeaderClient) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if from == protocol.App {
		switch msg := msg.(type) {
		case smr.Call:
			c.onCall(env, msg)
		case smr.Cancel:
			if p := c.calls[msg.ID]; p != nil && !p.told {
				c.abandon(env, p, msg.Reason)
			}
		case smr.MembersAre:
			c.adopt(env.Now, msg.Members)
		}
		return
	}
	switch msg := msg.(type) {
	case Replies:
		c.onReplies(env, from, msg)
	case ReadReplies:
		c.onReadReplies(env, from, msg)
	case Early:
		c.onEarly(env, from, msg)
	case OpenReply:
		c.onOpenReply(env, from, msg)
	case Redirect:
		c.onRedirect(env, from, msg)
	case Busy:
		c.onBusy(env, from, msg)
	case NotYet:
		c.onNotYet(env, from, msg)
	}
}

// Expire sends what has come up, or looks for what was not answered.
func (c *LeaderClient) Expire(env *protocol.Env[smr.Message], t protocol.Timer) {
	switch t.(type) {
	case flushTimer:
		c.flushing, c.flushed = false, env.Now
		c.flush(env)
	case tickTimer:
		c.ticking = false
		c.tick(env)
	}
}

func (c *LeaderClient) onCall(env *protocol.Env[smr.Message], call smr.Call) {
	reject := ""
	switch {
	case call.Kind < smr.Propose || call.Kind > smr.Reconfigure:
		reject = fmt.Sprintf("there is no %v", call.Kind)
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
	p := &pending{Call: call, began: env.Now}
	c.calls[call.ID] = p
	c.bytes += len(call.Command)
	if call.Kind == smr.Read {
		c.unasked = append(c.unasked, p)
	} else {
		c.queue = append(c.queue, p)
	}
	c.soon(env)
}

// soon sends what is queued when the calls that have come up by now were taken, so that they travel
// together.
func (c *LeaderClient) soon(env *protocol.Env[smr.Message]) {
	if !c.flushing {
		c.flushing = true
		env.After(Pace(env.Now, c.flushed, c.cfg.RoundTrip), flushTimer{})
	}
	if !c.ticking {
		c.ticking = true
		env.After(c.times(0.5), tickTimer{})
	}
}

// finish ends a call, which may be nil: one that is done already.
func (c *LeaderClient) finish(env *protocol.Env[smr.Message], p *pending, d smr.Done) {
	if p == nil || c.calls[p.ID] != p {
		return
	}
	d.ID = p.ID
	delete(c.calls, p.ID)
	c.bytes -= len(p.Command)
	switch {
	case p.number == 0 && p.Kind == smr.Read:
		c.unasked = without(c.unasked, p)
	case p.number == 0:
		c.queue = without(c.queue, p)
	case p.Kind == smr.Read:
		c.reads.remove(p.number)
	default:
		c.commands.remove(p.number)
	}
	if !p.told {
		env.Send(protocol.App, d)
	}
}

func without(calls []*pending, p *pending) []*pending {
	return slices.DeleteFunc(calls, func(q *pending) bool { return q == p })
}

func (c *LeaderClient) onReplies(env *protocol.Env[smr.Message], from protocol.ID, m Replies) {
	if m.Session != c.session {
		return
	}
	c.hears(env, from)
	for _, r := range m.Items {
		p := c.commands.get(uint64(r.Seq))
		d := smr.Done{Outcome: r.Outcome, Slot: r.Slot, Result: r.Result, Reason: r.Reason}
		if p != nil {
			c.answeredAfter(env, p)
			if p.Kind != smr.Execute {
				d.Result = nil
			}
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

// answeredAfter learns from how long an answer took: the round trip to the leader and the leader's
// own.
func (c *LeaderClient) answeredAfter(env *protocol.Env[smr.Message], p *pending) {
	c.tempo.Saw(env.Now, (env.Now-p.first)/2)
}

// sessionGone gives up what the session would know, and opens another.
func (c *LeaderClient) sessionGone(env *protocol.Env[smr.Message], reason string) {
	for p := range c.commands.since(0) {
		c.finish(env, p, smr.Done{Outcome: smr.Unknown, Reason: reason})
	}
	c.session, c.commands = 0, newFlights()
	c.soon(env)
}

func (c *LeaderClient) onReadReplies(env *protocol.Env[smr.Message], from protocol.ID, m ReadReplies) {
	c.hears(env, from)
	for _, r := range m.Items {
		d := smr.Done{Outcome: smr.Committed, Result: r.Result}
		if r.Reason != "" {
			d = smr.Done{Outcome: smr.Rejected, Reason: r.Reason}
		}
		p := c.reads.get(r.ID)
		if p != nil {
			c.answeredAfter(env, p)
		}
		c.finish(env, p, d)
	}
}

func (c *LeaderClient) onOpenReply(env *protocol.Env[smr.Message], from protocol.ID, m OpenReply) {
	if c.session != 0 || m.Nonce != c.nonce || m.Session == 0 {
		return
	}
	c.session, c.window, c.nonce = m.Session, max(m.Window, 1), 0
	c.hears(env, from)
	c.soon(env)
}

// hears notes that somebody answered as only a leader does.
func (c *LeaderClient) hears(env *protocol.Env[smr.Message], from protocol.ID) {
	if c.sure && from != c.target {
		return // a late answer of an earlier one
	}
	c.heard, c.redirects, c.patience = env.Now, 0, c.tempo.Times(patience)
	c.unknowing, c.silent = 0, 0
	if !c.sure {
		c.target, c.sure = from, true
		c.soon(env)
	}
}

func (c *LeaderClient) onRedirect(env *protocol.Env[smr.Message], from protocol.ID, m Redirect) {
	if from != c.target {
		return
	}
	c.sure = false
	if m.Leader.ID == protocol.App || m.Leader.ID == from || m.Leader.ID == c.silent && env.Now-c.silentAt < c.times(forgive) {
		c.unknowing++
		c.answered = true
		c.probe = env.Now + c.times(0.5)
		c.soon(env)
		return
	}
	if !slices.ContainsFunc(c.members, func(o smr.Member) bool { return o.ID == m.Leader.ID }) {
		c.members = append(slices.Clone(c.members), m.Leader)
		env.Send(protocol.App, smr.MembersChanged{Members: c.members})
	}
	c.target, c.unknowing = m.Leader.ID, 0
	if c.redirects++; c.redirects > 2*len(c.members) {
		c.redirects = 0
		c.probe = env.Now + c.times(0.5)
		c.soon(env)
		return
	}
	c.ask(env)
}

// adopt has the client ask other members than before. If it knows nobody who leads, the next one is
// asked at once: those that it has asked may be gone.
func (c *LeaderClient) adopt(now time.Duration, members []smr.Member) {
	same := func(a, b smr.Member) bool { return a.ID == b.ID }
	if len(members) == 0 || slices.EqualFunc(c.members, members, same) {
		return
	}
	c.members = slices.Clone(members)
	if !c.sure {
		c.probe, c.answered = now, false
	}
}

func (c *LeaderClient) onBusy(env *protocol.Env[smr.Message], from protocol.ID, m Busy) {
	c.hears(env, from)
	later := func(p *pending) {
		if p != nil && p.sentTo == from {
			p.tries++
			p.sentAt, p.reason = env.Now, "overload: the leader takes no more"
		}
	}
	if m.Session == c.session {
		for _, q := range m.Seqs {
			later(c.commands.get(uint64(q)))
		}
	}
	for _, id := range m.Queries {
		later(c.reads.get(id))
	}
}

func (c *LeaderClient) onNotYet(env *protocol.Env[smr.Message], from protocol.ID, m NotYet) {
	c.hears(env, from)
	p := c.commands.get(uint64(m.Seq))
	if m.Session != c.session || p == nil || p.Kind != smr.Reconfigure {
		return
	}
	p.sentAt, p.reason = env.Now, m.Reason
	if env.Now-p.began >= c.times(giveUpNotYet) {
		c.finish(env, p, smr.Done{Outcome: smr.Unknown, Reason: m.Reason})
	}
}

package kit

import (
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// A Client is the client node of a protocol. It opens a session, finds the leader, sends it what
// the application asks for, as it comes and many calls in one message, and repeats what is not
// answered. Each call gets one Done. Where there is no leader, the replica that answers is one to
// the client.
type Client struct {
	Calls
	hooks   Hooks
	members []smr.Member // whom it may ask

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
}

// Hooks are what the client of a protocol does beside what a Client does. All may be left out.
type Hooks struct {
	// Send sends a request to whom the client takes for the leader, and to whom else it is for.
	Send func(env *protocol.Env[smr.Message], to protocol.ID, req Request)
	// Receive takes what replicas say, before the client does. It reports whether that is all.
	Receive func(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) (done bool)
}

// Bounds of a Client. Times are multiples of ClientConfig.RoundTrip.
const (
	patience     = 2.5 // before an answer is missed: a command takes the round trip to the leader and the leader's own
	maxPatience  = 20
	forgive      = 8  // before a leader that did not answer is believed in again, if others say that it leads
	maxUnknowing = 8  // times that somebody who knows no leader is asked again
	maxProbe     = 64 // calls that are sent to somebody who may not lead
)

// NewClient returns the client node of a protocol.
func NewClient(cfg smr.ClientConfig, hooks Hooks) (*Client, error) {
	cfg, err := cfg.WithDefaults()
	if err != nil {
		return nil, err
	}
	return &Client{Calls: NewCalls(cfg), hooks: hooks, members: cfg.Members, target: cfg.Nearest}, nil
}

// PlainClient returns the client node of a protocol that does nothing beside.
func PlainClient(cfg smr.ClientConfig) (protocol.Node[smr.Message], error) {
	return NodeOf(func(cfg smr.ClientConfig) (*Client, error) { return NewClient(cfg, Hooks{}) })(cfg)
}

// NodeOf makes a constructor of nodes of one that returns a type of its own.
func NodeOf[C any, N protocol.Node[smr.Message]](build func(C) (N, error)) func(C) (protocol.Node[smr.Message], error) {
	return func(cfg C) (protocol.Node[smr.Message], error) {
		n, err := build(cfg)
		if err != nil {
			return nil, err
		}
		return n, nil
	}
}

// Members returns the members that the client knows of.
func (c *Client) Members() []smr.Member { return c.members }

// Start begins to open a session.
func (c *Client) Start(env *protocol.Env[smr.Message], _ []protocol.Record[smr.Message]) {
	if c.target == 0 {
		c.target = c.members[env.Rand.IntN(len(c.members))].ID
	}
	c.patience = c.Tempo.Times(patience)
	c.ask(env)
}

func (c *Client) times(n float64) time.Duration {
	return time.Duration(n * float64(c.cfg.RoundTrip))
}

// Receive takes a call, or an answer.
func (c *Client) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if from == protocol.App {
		switch msg := msg.(type) {
		case smr.Call:
			c.Take(env, msg)
		case smr.Cancel:
			c.Cancel(env, msg)
		case smr.MembersAre:
			c.regroup(env.Now, msg.Members)
		}
		return
	}
	if c.hooks.Receive != nil && c.hooks.Receive(env, from, msg) {
		return
	}
	switch msg := msg.(type) {
	case Replies:
		if msg.Session == c.Session {
			c.hears(env, from)
			if c.OnReplies(env, msg) {
				c.Soon(env)
			}
		}
	case ReadReplies:
		c.hears(env, from)
		c.OnReadReplies(env, msg)
	case Early:
		c.OnEarly(env, from, msg)
	case OpenReply:
		if c.OnOpenReply(env, msg) {
			c.hears(env, from)
		}
	case Redirect:
		c.onRedirect(env, from, msg)
	case Busy:
		c.onBusy(env, from, msg)
	case NotYet:
		c.onNotYet(env, from, msg)
	}
}

// Expire sends what has come up, or looks for what was not answered.
func (c *Client) Expire(env *protocol.Env[smr.Message], t protocol.Timer) {
	switch t.(type) {
	case FlushTimer:
		c.Flushed(env.Now)
		c.flush(env)
	case TickTimer:
		c.Ticked(env)
		c.tick(env)
	}
}

// hears notes that somebody answered as only a leader does.
func (c *Client) hears(env *protocol.Env[smr.Message], from protocol.ID) {
	if c.sure && from != c.target {
		return // a late answer of an earlier one
	}
	c.heard, c.redirects, c.patience = env.Now, 0, c.Tempo.Times(patience)
	c.unknowing, c.silent = 0, 0
	if !c.sure {
		c.target, c.sure = from, true
		c.Soon(env)
	}
}

// onRedirect follows what the target says of the leader. Replicas may disagree, or know an old
// leader, so redirections can go in circles: after two rounds, and if the one is named that has
// just been silent, the client waits for half a round trip before it asks again.
func (c *Client) onRedirect(env *protocol.Env[smr.Message], from protocol.ID, m Redirect) {
	if from != c.target {
		return
	}
	c.sure = false
	if m.Leader.ID == protocol.App || m.Leader.ID == from || m.Leader.ID == c.silent &&
		env.Now-c.silentAt < c.times(forgive) {
		c.unknowing++
		c.answered = true
		c.probe = env.Now + c.times(0.5)
		c.Soon(env)
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
		c.Soon(env)
		return
	}
	c.ask(env)
}

// regroup has the client ask other members than before. If it knows nobody who leads, the next one
// is asked at once: those that it has asked may be gone.
func (c *Client) regroup(now time.Duration, members []smr.Member) {
	same := func(a, b smr.Member) bool { return a.ID == b.ID }
	if len(members) == 0 || slices.EqualFunc(c.members, members, same) {
		return
	}
	c.members = slices.Clone(members)
	if !c.sure {
		c.probe, c.answered = now, false
	}
}

// onBusy has calls that were refused wait as if they had just been sent: tick sends them again.
func (c *Client) onBusy(env *protocol.Env[smr.Message], from protocol.ID, m Busy) {
	c.hears(env, from)
	for p := range c.OnBusy(from, m) {
		p.SentAt = env.Now
	}
}

// onNotYet has a change of the members wait, as onBusy does with calls.
func (c *Client) onNotYet(env *protocol.Env[smr.Message], from protocol.ID, m NotYet) {
	c.hears(env, from)
	if p := c.OnNotYet(env, m); p != nil {
		p.SentAt = env.Now
	}
}

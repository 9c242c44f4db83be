package epaxos

import (
	"fmt"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Client is a client's node. It asks the nearest replica, and the next one if that is silent.
type Client struct {
	*kit.LeaderClient // each replica answers as a leader does
	floor             smr.Slot
	plain             map[smr.CallID]bool // Propose calls that wait for more than the decision
}

// NewClient returns a client's node.
func NewClient(cfg smr.ClientConfig) (*Client, error) {
	inner, err := kit.NewLeaderClient(cfg)
	if err != nil {
		return nil, fmt.Errorf("epaxos: %w", err)
	}
	return &Client{LeaderClient: inner, plain: map[smr.CallID]bool{}}, nil
}

// Start begins to open a session.
func (c *Client) Start(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message]) {
	c.LeaderClient.Start(env, log)
	c.put(env)
}

// Receive takes a call, or an answer.
func (c *Client) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if call, ok := msg.(smr.Call); ok && from == protocol.App {
		c.floor = max(c.floor, call.After)
		if call.Kind == smr.Propose && call.Awaits() != smr.AckDurable && !c.plain[call.ID] {
			call.Kind = smr.Execute
			c.plain[call.ID] = true
		}
		msg = call
	}
	c.LeaderClient.Receive(env, from, msg)
	c.put(env)
}

// Expire does what a timer is for.
func (c *Client) Expire(env *protocol.Env[smr.Message], t protocol.Timer) {
	c.LeaderClient.Expire(env, t)
	c.put(env)
}

// Broken sends again what may be lost.
func (c *Client) Broken(env *protocol.Env[smr.Message], from protocol.ID) {
	c.LeaderClient.Broken(env, from)
	c.put(env)
}

// put puts the causal floor into requests, and makes of answers what the calls have asked for.
func (c *Client) put(env *protocol.Env[smr.Message]) {
	for k := range env.Out {
		e := &env.Out[k]
		switch m := e.Msg.(type) {
		case kit.Request:
			if e.To != protocol.App {
				e.Msg = Submit{After: c.floor, Request: m}
			}
		case smr.Done:
			if e.To != protocol.App {
				continue
			}
			if m.Outcome == smr.Committed {
				c.floor = max(c.floor, m.Slot)
			}
			if c.plain[m.ID] {
				delete(c.plain, m.ID)
				m.Result = nil
				e.Msg = m
			}
		}
	}
}

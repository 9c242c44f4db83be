package fastpaxos

import (
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// client is the client node. It finds the coordinator as clients of a leader do, sends each new
// command to all members, and counts their votes.
type client struct {
	*kit.Client
	roundTrip time.Duration

	closed   bool // a member has said that it does not vote
	closedAt time.Duration

	session kit.SessionID
	sent    kit.Seq // commands up to it were sent to all
	counts  map[kit.Seq][]count
}

// count is the votes for a command in one slot of an era.
type count struct {
	era        kit.Ballot
	generation uint64
	slot       smr.Slot
	by         []protocol.ID
}

// maxCounted bounds the commands whose votes are counted, and maxSlots the slots of each. Of others
// the coordinator tells.
const (
	maxCounted = 4096
	maxSlots   = 8
)

// closedFor is for how many round trips large commands are not sent to all, after a member has said
// that it does not vote. If slots are opened meanwhile, the coordinator sees to the votes.
const closedFor = 4

// newClient returns a client node.
func newClient(cfg smr.ClientConfig) (*client, error) {
	cfg, err := cfg.WithDefaults()
	if err != nil {
		return nil, err
	}
	c := &client{roundTrip: cfg.RoundTrip, counts: map[kit.Seq][]count{}}
	c.Client, err = kit.NewClient(cfg, kit.Hooks{Send: c.send, Receive: c.receive})
	return c, err
}

// receive takes what members say of votes. A command that is answered needs no votes any more.
func (c *client) receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) bool {
	switch msg := msg.(type) {
	case cast:
		if c.closed = msg.Need == 0; c.closed {
			c.closedAt = env.Now
		}
		c.onCast(env, from, msg)
		return true
	case kit.Replies:
		for _, r := range msg.Items {
			delete(c.counts, r.Seq)
		}
	}
	return false
}

// votes reports whether members vote, as far as is known.
func (c *client) votes(now time.Duration) bool {
	since := now - c.closedAt
	return !c.closed || since < 0 || since >= closedFor*c.roundTrip
}

// send sends a request to the supposed coordinator, and those of its commands that are sent for the
// first time to the other members as well, but for large ones that they have no use for.
func (c *client) send(env *protocol.Env[smr.Message], to protocol.ID, req kit.Request) {
	env.Send(to, req)
	if req.Session != c.session {
		c.session, c.sent = req.Session, 0
		clear(c.counts)
	}
	fresh := req
	fresh.Commands = nil
	for _, cmd := range req.Commands {
		if cmd.Seq > c.sent {
			if len(cmd.Command) < largeBytes || c.votes(env.Now) {
				fresh.Commands = append(fresh.Commands, cmd)
			}
			c.sent = cmd.Seq
			if cmd.Early && len(c.counts) < maxCounted {
				c.counts[cmd.Seq] = []count{}
			}
		}
	}
	if len(fresh.Commands) == 0 {
		return
	}
	for _, m := range c.Members() {
		if m.ID != to {
			env.Send(m.ID, requestCopy{fresh})
		}
	}
}

// onCast counts votes: with those of a fast quorum in one slot, the position is fixed.
func (c *client) onCast(env *protocol.Env[smr.Message], from protocol.ID, m cast) {
	if m.Session != c.session || m.Need == 0 {
		return
	}
	for _, item := range m.Items {
		counts, wanted := c.counts[item.Seq]
		if !wanted {
			continue
		}
		i := 0
		for i < len(counts) && (counts[i].era != m.Era || counts[i].slot != item.Slot ||
			counts[i].generation != m.Generation) {
			i++
		}
		if i == len(counts) {
			if i >= maxSlots {
				continue
			}
			counts = append(counts, count{era: m.Era, generation: m.Generation, slot: item.Slot})
			c.counts[item.Seq] = counts
		}
		if n := &counts[i]; n.add(from) && len(n.by) >= int(m.Need) {
			delete(c.counts, item.Seq)
			c.OnEarly(env, m.Era.Owner(), kit.Early{Session: m.Session, Items: []kit.EarlyReply{item}})
		}
	}
}

func (n *count) add(id protocol.ID) bool {
	for _, b := range n.by {
		if b == id {
			return false
		}
	}
	n.by = append(n.by, id)
	return true
}

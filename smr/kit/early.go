package kit

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// Early tells a client that the positions of commands are fixed, before they can be executed. Their
// Replies follow.
type Early struct {
	Session SessionID
	Items   []EarlyReply
}

// EarlyReply is what Early says of one command.
type EarlyReply struct {
	Seq  Seq
	Slot smr.Slot
}

// EarlyReplies are what clients are to be told early, in one call of a replica. Its zero value is
// empty.
type EarlyReplies struct{ out []earlyOut }

type earlyOut struct {
	to protocol.ID
	Early
}

// Add notes that a command has its position.
func (o *EarlyReplies) Add(e Entry, slot smr.Slot) {
	i := slices.IndexFunc(o.out, func(x earlyOut) bool { return x.to == e.Client && x.Session == e.Session })
	if i < 0 {
		i = len(o.out)
		o.out = append(o.out, earlyOut{to: e.Client, Early: Early{Session: e.Session}})
	}
	o.out[i].Items = append(o.out[i].Items, EarlyReply{e.Seq, slot})
}

// Flush sends what was noted. It does not wait for the replica's own disk: what it says is on those
// of a majority.
func (o *EarlyReplies) Flush(env *protocol.Env[smr.Message]) {
	for _, x := range o.out {
		env.SendAhead(x.to, x.Early)
	}
	o.out = nil
}

// OnEarly ends the calls that wait for no more than a fixed position. The commands stay among those
// that the client waits for until they are executed: what it acknowledges before would not be
// executed any more.
func (c *Client) OnEarly(env *protocol.Env[smr.Message], from protocol.ID, m Early) {
	if m.Session != c.Session {
		return
	}
	c.hears(env, from)
	for _, item := range m.Items {
		if p := c.Command(item.Seq); p != nil && !p.told && p.wantsEarly() {
			p.told = true
			c.seen = max(c.seen, item.Slot)
			env.Send(protocol.App, smr.Done{ID: p.ID, Outcome: smr.Committed, Slot: item.Slot})
		}
	}
}

// Waits reports whether somebody waits at this desk for what becomes of an entry. Protocols in
// which each replica has a desk ask it before Applied.
func (d *Desk) Waits(e Entry) bool {
	_, ok := d.taken[ticketFor(e)]
	return ok
}

package kit

import (
	"iter"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// flush sends what was not sent to the target yet. Usually that is what Launch has just numbered;
// only a target that was not sent everything (swept) needs a look at all calls.
func (c *Client) flush(env *protocol.Env[smr.Message]) {
	if !c.sure {
		return // tick asks around
	}
	unsent, unread := c.commands.next(), c.reads.next()
	if c.swept != c.target {
		unsent, unread, c.swept = 0, 0, c.target
	}
	if c.Session == 0 {
		c.Open(env, c.target)
	}
	c.Launch(env.Now)
	c.send(env, c.commands.since(unsent), c.reads.since(unread), func(p *Pending) bool { return p.SentTo != c.target })
}

// ask sends the target a little of what is to be done, to see whether it leads. All of it, sent to
// one member after the other, would be megabytes for replicas that only redirect.
func (c *Client) ask(env *protocol.Env[smr.Message]) {
	c.probe, c.answered = env.Now+c.patience, false
	if c.Session == 0 {
		c.Open(env, c.target)
	}
	n := c.commands.count + c.reads.count
	if n == 0 && c.Session != 0 {
		for ; n < maxProbe && n < len(c.queue); n++ {
			c.launch(env.Now, &c.commands, c.queue[n])
		}
		c.queue = slices.Delete(c.queue, 0, n)
	}
	if n == 0 && len(c.unasked) > 0 {
		c.launch(env.Now, &c.reads, c.unasked[0])
		c.unasked = slices.Delete(c.unasked, 0, 1)
	}
	some := 0
	c.send(env, c.commands.since(0), c.reads.since(0), func(*Pending) bool { some++; return some <= maxProbe })
	c.swept = 0
	c.Soon(env)
}

// send sends to the target those calls that ought to be. A call that is sent again has the number
// that it had, by which the session table knows it, so it does not matter how often, and to how
// many.
func (c *Client) send(env *protocol.Env[smr.Message], commands, reads iter.Seq[*Pending], ought func(*Pending) bool) {
	sending := func(calls iter.Seq[*Pending]) iter.Seq[*Pending] {
		return func(yield func(*Pending) bool) {
			for p := range calls {
				if !ought(p) {
					continue
				}
				c.sent(env, p)
				if p.Kind == smr.Reconfigure {
					c.SendChange(env, c.target, p)
				} else if !yield(p) {
					return
				}
			}
		}
	}
	for req := range c.Requests(sending(commands), maxRequest) {
		if c.hooks.Send != nil {
			c.hooks.Send(env, c.target, req)
		} else {
			env.Send(c.target, req)
		}
	}
	for req := range c.ReadRequests(sending(reads)) {
		env.Send(c.target, req)
	}
}

// Broken sends again what the leader may not have got, or its answers to which may be lost.
func (c *Client) Broken(env *protocol.Env[smr.Message], from protocol.ID) {
	if !c.sure || from != c.target {
		return
	}
	for p := range c.InFlight() {
		p.SentTo = protocol.App
	}
	c.swept = protocol.App
	if len(c.calls) > 0 || c.Session == 0 {
		c.Soon(env)
	}
}

func (c *Client) sent(env *protocol.Env[smr.Message], p *Pending) {
	if p.SentTo == c.target {
		p.Tries++
	} else {
		p.first = env.Now
	}
	p.SentTo, p.SentAt = c.target, env.Now
}

// tick repeats what was not answered, and asks the next member if nobody answers. While the leader
// answers anything, what is late was lost, and only that is sent again, after a longer wait each
// time: a leader that is slow must not get all of it twice. If the leader has been silent for as
// long as an answer may take, somebody else may lead; the old one is asked once more beside.
func (c *Client) tick(env *protocol.Env[smr.Message]) {
	late := func(p *Pending) bool {
		return p.SentTo == c.target && env.Now-p.SentAt >= max(c.Tempo.Times(patience), c.times(patience)<<min(p.Tries, 3))
	}
	waiting := len(c.calls) > 0 || c.Session == 0
	switch {
	case !waiting:
		return
	case !c.sure && env.Now >= c.probe:
		c.askAgain(env)
	case c.sure && env.Now-c.heard < c.Tempo.Times(patience):
		if c.Session == 0 {
			c.Open(env, c.target)
		}
		c.send(env, c.commands.since(0), c.reads.since(0), late)
	case c.sure && (c.Session == 0 || c.any(late)):
		c.sure, c.silent, c.silentAt = false, c.target, env.Now
		c.ask(env) // perhaps only a message was lost
		c.next()
		c.ask(env)
	}
	c.KeepTicking(env)
}

// askAgain asks the target once more if it is there and may learn who leads, and the next member
// otherwise.
func (c *Client) askAgain(env *protocol.Env[smr.Message]) {
	if c.answered && c.unknowing <= maxUnknowing {
		c.patience = c.Tempo.Times(patience)
	} else {
		c.unknowing = 0
		c.patience = max(min(2*c.patience, c.times(maxPatience)), c.Tempo.Times(patience))
		c.next()
	}
	c.ask(env)
}

func (c *Client) any(late func(*Pending) bool) bool {
	for p := range c.InFlight() {
		if late(p) {
			return true
		}
	}
	return false
}

// next turns to another member: all get their turn, wherever redirections lead meanwhile.
func (c *Client) next() {
	old := c.target
	for range 2 {
		c.turn++
		if c.target = c.members[c.turn%len(c.members)].ID; c.target != old {
			return
		}
	}
}

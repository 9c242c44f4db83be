package domino

import (
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// flush sends what is queued.
func (c *Client) flush(env *protocol.Env[smr.Message]) {
	var commands, reads, rest []*pending
	for _, p := range c.queue {
		p.sent = env.Now
		switch {
		case p.Kind == smr.Read:
			c.lastRead++
			p.number = c.lastRead
			c.reads[p.number] = p
			reads = append(reads, p)
		case c.session == 0 || c.next >= c.first+c.window:
			rest = append(rest, p)
		default:
			p.seq = c.next
			c.next++
			c.flights[p.seq] = p
			if p.Kind == smr.Reconfigure {
				c.sendChange(env, p)
			} else {
				commands = append(commands, p)
			}
		}
	}
	c.queue = rest
	c.sendReads(env, reads)
	if len(commands) == 0 {
		return
	}
	if way := c.choose(env.Now); way.fast {
		c.cast(env, commands, way)
	} else {
		c.submit(env, commands, way.target)
	}
}

// request returns the messages' common part for as many of the calls as go in one, and at most so
// many, and the others.
func (c *Client) request(calls []*pending, most int) (m Submit, some, rest []*pending) {
	m.Request = kit.Request{Session: c.session, Acked: c.first}
	size := 0
	for i, p := range calls {
		if size += len(p.Command) + 32; i == most || size > kit.MessageBytes && i > 0 {
			return m, calls[:i], calls[i:]
		}
		m.Commands = append(m.Commands, kit.RequestedCommand{Seq: p.seq, Brief: p.Kind == smr.Propose, Command: p.Command})
		m.Acks = append(m.Acks, p.Awaits())
		m.After = max(m.After, c.floor, p.After)
	}
	return m, calls, nil
}

// cast asks all replicas to vote for commands in a slot of the shared lane.
func (c *Client) cast(env *protocol.Env[smr.Message], calls []*pending, way way) {
	for len(calls) > 0 {
		m, some, rest := c.request(calls, c.opt.Batch)
		calls = rest
		m.Slot, m.Answer = above(max(way.slot, c.lastSlot, m.After), sharedDigit), way.target
		c.lastSlot = m.Slot
		a := &attempt{slack: at(m.Slot) - way.arrival}
		for _, p := range some {
			a.seqs = append(a.seqs, p.seq)
			p.attempts++
			p.sentTo, p.ticks = protocol.App, 0
		}
		c.attempts[m.Slot] = a
		for _, o := range c.members {
			env.Send(o.ID, m)
		}
	}
}

// submit asks a replica to propose commands in its lane, by default the one from which the answer
// comes first.
func (c *Client) submit(env *protocol.Env[smr.Message], calls []*pending, to protocol.ID) {
	if to == protocol.App {
		to = c.chooseOwner(env.Now, protocol.App)
	}
	for len(calls) > 0 {
		m, some, rest := c.request(calls, maxSubmit)
		calls = rest
		for _, p := range some {
			p.attempts++
			p.sentTo, p.ticks = to, 0
		}
		env.Send(to, m)
	}
}

func (c *Client) sendReads(env *protocol.Env[smr.Message], calls []*pending) {
	for len(calls) > 0 {
		to := c.nearest(env.Now, calls[0].sentTo)
		if to == protocol.App {
			c.turn++
			to = c.members[c.turn%len(c.members)].ID
		}
		var m kit.ReadRequest
		size, n := 0, 0
		for _, p := range calls {
			if size += len(p.Command) + 32; n == maxSubmit || size > kit.MessageBytes && n > 0 {
				break
			}
			m.Queries = append(m.Queries, kit.Query{ID: p.number, Body: p.Command})
			p.sentTo, p.ticks = to, 0
			n++
		}
		calls = calls[n:]
		env.Send(to, m)
	}
}

func (c *Client) sendChange(env *protocol.Env[smr.Message], p *pending) {
	to := c.leader
	if to == protocol.App || to == p.sentTo && p.tries%2 == 1 {
		c.turn++
		to = c.members[c.turn%len(c.members)].ID
	}
	p.sentTo, p.ticks = to, 0
	env.Send(to, kit.ChangeRequest{Session: c.session, Acked: c.first, Seq: p.seq, Change: p.Change})
}

func (c *Client) open(env *protocol.Env[smr.Message]) {
	for c.nonce == 0 {
		c.nonce = kit.Seq(env.Rand.Uint64())
	}
	c.opening = 0
	to := c.cfg.Nearest
	if id := c.nearest(env.Now, protocol.App); id != protocol.App {
		to = id
	}
	if to == protocol.App || c.turn%2 == 1 {
		to = c.members[c.turn%len(c.members)].ID
	}
	c.turn++
	env.Send(to, kit.OpenRequest{Nonce: c.nonce})
	c.keepTicking(env)
}

// tick asks again for what was not answered, and gives up on what has waited for too long.
func (c *Client) tick(env *protocol.Env[smr.Message]) {
	beat := 0
	if c.tempo.Beat(env.Now, 0.5) {
		beat = 1
	}
	c.pause = max(0, c.pause-beat)
	if c.session == 0 {
		if c.opening += beat; c.opening >= clientPatience {
			c.open(env)
		}
	}
	var commands, reads, old []*pending
	for _, p := range slices.Concat(c.inFlight(), c.queue) {
		p.age++
		p.ticks += beat
		switch {
		case p.age >= giveUpTicks && time.Duration(p.age)*c.cfg.RoundTrip/2 >= p.Patience:
			old = append(old, p)
		case p.seq == 0 && p.number == 0 || p.ticks < clientPatience<<min(p.tries, 3):
		case p.Kind == smr.Read:
			p.tries++
			reads = append(reads, p)
		case p.Kind == smr.Reconfigure:
			p.tries++
			c.sendChange(env, p)
		default:
			p.tries++
			commands = append(commands, p)
		}
	}
	c.retry(env, commands)
	c.sendReads(env, reads)
	c.giveUp(env, old)
	c.forget()
	if len(c.queue) > 0 {
		c.soon(env)
	}
	c.keepTicking(env)
}

// retry has commands proposed by another replica than before. The session sees to it that they are
// executed once.
func (c *Client) retry(env *protocol.Env[smr.Message], commands []*pending) {
	for len(commands) > 0 {
		from := commands[0].sentTo
		n := 1
		for n < len(commands) && commands[n].sentTo == from {
			n++
		}
		c.submit(env, commands[:n], c.chooseOwner(env.Now, from))
		commands = commands[n:]
	}
}

func (c *Client) giveUp(env *protocol.Env[smr.Message], old []*pending) {
	for _, p := range old {
		c.abandon(env, p, "nobody has answered in "+(time.Duration(p.age)*c.cfg.RoundTrip/2).String())
	}
}

// abandon ends a call that is not answered.
func (c *Client) abandon(env *protocol.Env[smr.Message], p *pending, why string) {
	d := smr.Done{Outcome: smr.Unknown, Reason: why}
	if p.seq == 0 && p.number == 0 {
		d = smr.NotSent(why)
	}
	if p.reason != "" {
		d.Reason += ": " + p.reason
	}
	c.finish(env, p, d)
}

// forget drops attempts whose commands are all done, or that nobody will tell more about.
func (c *Client) forget() {
	for s, a := range c.attempts { //pure:ok each on its own
		a.age++
		if a.age > forgetTicks && (a.settled || !slices.ContainsFunc(a.seqs, func(q kit.Seq) bool { return c.flights[q] != nil })) {
			c.count(a, false)
			delete(c.attempts, s)
		}
	}
	for s, v := range c.places { //pure:ok each on its own
		if v.age++; v.age > forgetTicks {
			delete(c.places, s)
		}
	}
}

package domino

import (
	"iter"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// A command goes to all replicas, for a slot at about the time at which it will have come to enough
// of them (cast), or to one that proposes it in a track of its own (submit); client.choose says
// which is quicker. Either way it says which answers its session needs no more, and what those were
// for is not executed afterwards. So its slot must be above theirs, although slots are times and
// the ways are different ones: that is what After is for.
//
// A second attempt never casts. The first one's slot may still be decided, and the time for which
// it was predicted is over; what an owner's track decides rests on no prediction.

// flush sends what is queued.
func (c *client) flush(env *protocol.Env[smr.Message]) {
	launched, reads := c.Launch(env.Now)
	var commands []*kit.Pending
	for p := range launched {
		if p.Kind == smr.Reconfigure {
			c.sendChange(env, p)
		} else {
			commands = append(commands, p)
		}
	}
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

// sent notes that a call was sent, to all replicas if to is 0.
func (c *client) sent(p *kit.Pending, to protocol.ID) { p.SentTo, p.SentAt = to, c.beats }

// requests yields messages for the calls, at most so many in one, and the calls of each. Commands
// get slots above all that calls were told of, whatever they ask for: they say that the answers of
// those before are not needed any more, and what is not needed any more is not executed.
func (c *client) requests(calls []*kit.Pending, most int) iter.Seq2[submit, []*kit.Pending] {
	return func(yield func(submit, []*kit.Pending) bool) {
		for req, some := range c.Requests(slices.Values(calls), most) {
			m := submit{Request: req}
			m.After = max(m.After, c.Seen())
			for _, p := range some {
				p.Attempts++
				m.Acks = append(m.Acks, p.Awaits())
			}
			if !yield(m, some) {
				return
			}
		}
	}
}

// cast asks all replicas to vote for commands in a slot of the shared track, which lies a little
// behind the time of their predicted arrival. Slots rise, so that no two batches of this client
// meet in one. Those of two clients may, and then at most one is decided there.
func (c *client) cast(env *protocol.Env[smr.Message], calls []*kit.Pending, way way) {
	for m, some := range c.requests(calls, c.opt.Batch) {
		m.Slot, m.Answer = above(max(way.slot, c.lastSlot, m.After), sharedDigit), way.target
		c.lastSlot = m.Slot
		a := &attempt{slack: at(m.Slot) - way.arrival}
		for _, p := range some {
			a.seqs = append(a.seqs, kit.Seq(p.Number))
			c.sent(p, protocol.App)
		}
		c.attempts[m.Slot] = a
		for _, o := range c.members {
			env.Send(o.ID, m)
		}
	}
}

// submit asks a replica to propose commands in its track: by default the one whose way is predicted
// to bring the answer first.
func (c *client) submit(env *protocol.Env[smr.Message], calls []*kit.Pending, to protocol.ID) {
	if to == protocol.App {
		to = c.chooseOwner(env.Now, protocol.App)
	}
	for m, some := range c.requests(calls, maxSubmit) {
		for _, p := range some {
			c.sent(p, to)
		}
		env.Send(to, m)
	}
}

func (c *client) sendReads(env *protocol.Env[smr.Message], reads iter.Seq[*kit.Pending]) {
	for m, some := range c.ReadRequests(reads) {
		to := c.nearest(env.Now, some[0].SentTo)
		if to == protocol.App {
			c.turn++
			to = c.members[c.turn%len(c.members)].ID
		}
		for _, p := range some {
			c.sent(p, to)
		}
		env.Send(to, m)
	}
}

func (c *client) sendChange(env *protocol.Env[smr.Message], p *kit.Pending) {
	to := c.leader
	if to == protocol.App || to == p.SentTo && p.Tries%2 == 1 {
		c.turn++
		to = c.members[c.turn%len(c.members)].ID
	}
	c.sent(p, to)
	c.SendChange(env, to, p)
}

func (c *client) open(env *protocol.Env[smr.Message]) {
	c.opening = 0
	to := c.cfg.Nearest
	if id := c.nearest(env.Now, protocol.App); id != protocol.App {
		to = id
	}
	if to == protocol.App || c.turn%2 == 1 {
		to = c.members[c.turn%len(c.members)].ID
	}
	c.turn++
	c.Open(env, to)
	c.KeepTicking(env)
}

// tick asks again for what was not answered.
func (c *client) tick(env *protocol.Env[smr.Message]) {
	if c.Tempo.Beat(env.Now, 0.5) {
		c.beats += c.halves(1)
		c.pause = max(0, c.pause-1)
		if c.opening++; c.Session == 0 && c.opening >= clientPatience {
			c.open(env)
		}
	}
	var commands, reads []*kit.Pending
	for p := range c.InFlight() {
		if c.beats-p.SentAt < c.halves(clientPatience)<<min(p.Tries, 3) {
			continue
		}
		p.Tries++
		switch p.Kind {
		case smr.Read:
			reads = append(reads, p)
		case smr.Reconfigure:
			c.sendChange(env, p)
		default:
			commands = append(commands, p)
		}
	}
	c.retry(env, commands)
	c.sendReads(env, slices.Values(reads))
	c.forget()
	if c.Queued() {
		c.Soon(env)
	}
	c.KeepTicking(env)
}

// retry has commands proposed by another replica than before, in its own track. They may be decided
// in both slots, and the session sees to it that they are executed once. In which slot is not known
// then, so such a command is acknowledged when it is executed.
func (c *client) retry(env *protocol.Env[smr.Message], commands []*kit.Pending) {
	for len(commands) > 0 {
		from := commands[0].SentTo
		n := 1
		for n < len(commands) && commands[n].SentTo == from {
			n++
		}
		c.submit(env, commands[:n], c.chooseOwner(env.Now, from))
		commands = commands[n:]
	}
}

// forget drops attempts whose commands are all done, or that nobody will tell more about.
func (c *client) forget() {
	for s, a := range c.attempts { //pure:ok each on its own
		a.age++
		if a.age > forgetTicks && (a.settled || !slices.ContainsFunc(a.seqs, func(q kit.Seq) bool {
			return c.Command(q) != nil
		})) {
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

package kit

import (
	"iter"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// flush sends what was not sent to the target yet.
func (c *LeaderClient) flush(env *protocol.Env[smr.Message]) {
	if !c.sure {
		return // tick asks around
	}
	unsent, unread, n := c.commands.next(), c.reads.next(), 0
	if c.swept != c.target {
		unsent, unread, c.swept = 0, 0, c.target
	}
	if c.session == 0 {
		c.open(env)
	} else {
		for n < len(c.queue) && c.commands.next() < c.commands.first+uint64(c.window) {
			c.commands.add(c.queue[n])
			n++
		}
		c.queue = slices.Delete(c.queue, 0, n)
	}
	for _, p := range c.unasked {
		c.reads.add(p)
	}
	clear(c.unasked)
	c.unasked = c.unasked[:0]
	c.send(env, c.commands.since(unsent), c.reads.since(unread), func(p *pending) bool { return p.sentTo != c.target })
}

// ask sends the target a little of what is to be done, to see whether it leads.
func (c *LeaderClient) ask(env *protocol.Env[smr.Message]) {
	c.probe, c.answered = env.Now+c.patience, false
	if c.session == 0 {
		c.open(env)
	}
	n := c.commands.count + c.reads.count
	if n == 0 && c.session != 0 {
		for ; n < maxProbe && n < len(c.queue); n++ {
			c.commands.add(c.queue[n])
		}
		c.queue = slices.Delete(c.queue, 0, n)
	}
	if n == 0 && len(c.unasked) > 0 {
		c.reads.add(c.unasked[0])
		c.unasked = slices.Delete(c.unasked, 0, 1)
	}
	some := 0
	c.send(env, c.commands.since(0), c.reads.since(0), func(*pending) bool { some++; return some <= maxProbe })
	c.swept = 0
	c.soon(env)
}

func (c *LeaderClient) open(env *protocol.Env[smr.Message]) {
	for c.nonce == 0 {
		c.nonce = Seq(env.Rand.Uint64())
	}
	env.Send(c.target, OpenRequest{Nonce: c.nonce})
}

// send sends to the target those calls that ought to be.
func (c *LeaderClient) send(env *protocol.Env[smr.Message], commands, reads iter.Seq[*pending], ought func(*pending) bool) {
	req := Request{Session: c.session, Acked: Seq(c.commands.first)}
	length := 0
	for p := range commands {
		if !ought(p) {
			continue
		}
		c.sent(env, p)
		if p.Kind == smr.Reconfigure {
			env.Send(c.target, ChangeRequest{Session: c.session, Acked: req.Acked, Seq: Seq(p.number), Change: p.Change})
			continue
		}
		if len(req.Commands) >= maxRequest || length+len(p.Command) > MessageBytes && length > 0 {
			env.Send(c.target, req)
			req.Commands, req.After, length = nil, 0, 0
		}
		req.Commands = append(req.Commands, RequestedCommand{Seq: Seq(p.number), Brief: p.Kind == smr.Propose, Early: p.wantsEarly(), Command: p.Command})
		req.After = max(req.After, p.After)
		length += len(p.Command)
	}
	if len(req.Commands) > 0 {
		env.Send(c.target, req)
	}
	c.sendReads(env, reads, ought)
}

func (c *LeaderClient) sendReads(env *protocol.Env[smr.Message], reads iter.Seq[*pending], ought func(*pending) bool) {
	var req ReadRequest
	length := 0
	for p := range reads {
		if !ought(p) {
			continue
		}
		c.sent(env, p)
		if len(req.Queries) >= maxRequest || length+len(p.Command) > MessageBytes && length > 0 {
			env.Send(c.target, req)
			req.Queries, length = nil, 0
		}
		req.Queries = append(req.Queries, Query{ID: p.number, Body: p.Command})
		length += len(p.Command)
	}
	if len(req.Queries) > 0 {
		env.Send(c.target, req)
	}
}

// Broken sends again what the leader may not have got, or its answers to which may be lost.
func (c *LeaderClient) Broken(env *protocol.Env[smr.Message], from protocol.ID) {
	if !c.sure || from != c.target {
		return
	}
	for _, f := range []*flights{&c.commands, &c.reads} {
		for p := range f.since(0) {
			p.sentTo = protocol.App
		}
	}
	c.swept = protocol.App
	if len(c.calls) > 0 || c.session == 0 {
		c.soon(env)
	}
}

func (c *LeaderClient) sent(env *protocol.Env[smr.Message], p *pending) {
	if p.sentTo == c.target {
		p.tries++
	} else {
		p.first = env.Now
	}
	p.sentTo, p.sentAt = c.target, env.Now
}

// tick repeats what was not answered, asks the next member if nobody answers, and gives up on what
// has waited for too long.
func (c *LeaderClient) tick(env *protocol.Env[smr.Message]) {
	c.giveUpOld(env)
	late := func(p *pending) bool {
		return p.sentTo == c.target && env.Now-p.sentAt >= max(c.tempo.Times(patience), c.times(patience)<<min(p.tries, 3))
	}
	waiting := c.commands.count+c.reads.count+len(c.queue)+len(c.unasked) > 0 || c.session == 0
	switch {
	case !waiting:
		return
	case !c.sure && env.Now >= c.probe:
		c.askAgain(env)
	case c.sure && env.Now-c.heard < c.tempo.Times(patience):
		if c.session == 0 {
			c.open(env)
		}
		c.send(env, c.commands.since(0), c.reads.since(0), late)
	case c.sure && (c.session == 0 || c.any(late)):
		c.sure, c.silent, c.silentAt = false, c.target, env.Now
		c.ask(env) // perhaps only a message was lost
		c.next()
		c.ask(env)
	}
	if !c.ticking {
		c.ticking = true
		env.After(c.times(0.5), tickTimer{})
	}
}

// askAgain asks the target once more if it is there and may learn who leads, and the next member
// otherwise.
func (c *LeaderClient) askAgain(env *protocol.Env[smr.Message]) {
	if c.answered && c.unknowing <= maxUnknowing {
		c.patience = c.tempo.Times(patience)
	} else {
		c.unknowing = 0
		c.patience = max(min(2*c.patience, c.times(maxPatience)), c.tempo.Times(patience))
		c.next()
	}
	c.ask(env)
}

func (c *LeaderClient) any(late func(*pending) bool) bool {
	for _, f := range []*flights{&c.commands, &c.reads} {
		for p := range f.since(0) {
			if late(p) {
				return true
			}
		}
	}
	return false
}

// next turns to another member: all get their turn, wherever redirections lead meanwhile.
func (c *LeaderClient) next() {
	old := c.target
	for range 2 {
		c.turn++
		if c.target = c.members[c.turn%len(c.members)].ID; c.target != old {
			return
		}
	}
}

func (c *LeaderClient) giveUpOld(env *protocol.Env[smr.Message]) {
	var old []*pending
	note := func(p *pending) {
		if env.Now-p.began >= max(c.times(giveUp), p.Patience) && !p.told {
			old = append(old, p)
		}
	}
	for p := range c.commands.since(0) {
		note(p)
	}
	for p := range c.reads.since(0) {
		note(p)
	}
	for _, p := range slices.Concat(c.queue, c.unasked) {
		note(p)
	}
	for _, p := range old {
		c.abandon(env, p, "nobody has answered in "+(env.Now-p.began).Round(time.Millisecond).String())
	}
}

// abandon ends a call that is not answered.
func (c *LeaderClient) abandon(env *protocol.Env[smr.Message], p *pending, why string) {
	d := smr.Done{Outcome: smr.Unknown, Reason: why}
	if p.number == 0 {
		d = smr.NotSent(why)
	}
	if p.reason != "" {
		d.Reason += ": " + p.reason
	}
	c.finish(env, p, d)
}

// Check returns what is wrong with the client's books, or nil.
func (c *LeaderClient) Check() error {
	if err := c.check(); err != "" {
		return clientError(err)
	}
	return nil
}

type clientError string

func (e clientError) Error() string { return "smr: client: " + string(e) }

func (c *LeaderClient) check() string {
	n := c.commands.count + c.reads.count + len(c.queue) + len(c.unasked)
	bytes := 0
	for _, p := range c.calls { //pure:ok a sum
		bytes += len(p.Command)
	}
	switch {
	case bytes != c.bytes:
		return "the bytes of calls are miscounted"
	case n != len(c.calls):
		return "calls that are neither queued nor sent, or both"
	case c.session == 0 && c.commands.count > 0:
		return "commands were sent without a session"
	case len(c.calls) > 0 && !c.ticking:
		return "calls wait and no timer is set"
	}
	return ""
}

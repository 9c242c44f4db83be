package domino

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// onVote counts an acceptor's vote for commands in a slot of the shared track. The client learns by
// itself what is decided there, at the same time as the coordinator: the votes of a supermajority
// decide, for the commands or for a no-op. In between it waits for the coordinator, which has to
// choose.
func (c *client) onVote(env *protocol.Env[smr.Message], from protocol.ID, m vote) {
	a := c.attempts[m.Slot]
	if a == nil || a.settled || m.Session != c.Session || m.Members == 0 || m.Members > maxMembers {
		return
	}
	if c.opt.AdaptSlack && (m.Verdict == yes || m.Late > 0) { // else it is not for the time that there is no vote
		c.needed(env.Now, m.Late+a.slack)
	}
	switch m.Verdict {
	case yes:
		a.yes.Add(from)
	case no:
		a.no.Add(from)
	}
	// How many are enough the acceptor says, as the client may not know of the last change of the
	// members yet. All votes in a slot are of one group: nobody votes before it is decided who the
	// members are there.
	needed := quorum.Fast(int(m.Members))
	if a.yes.Len() >= needed {
		c.count(a, true)
	} else if a.no.Len() > int(m.Members)-needed {
		c.count(a, false)
	}
	switch {
	case a.yes.Len() >= needed:
		c.settle(env, m.Slot, a, true)
	case a.no.Len() >= needed: // the slot is a no-op
		c.settle(env, m.Slot, a, false)
	}
}

// count notes whether the votes of a supermajority gave an attempt its slot. If they rarely do, the
// fast path is left alone for a while. It does not matter how that is known: with a replica gone,
// or too much to do, there may be no vote that tells.
func (c *client) count(a *attempt, fast bool) {
	if a.counted {
		return
	}
	a.counted = true
	if c.stats.tried++; fast {
		c.stats.fast++
	}
	if c.fast.add(fast); c.fast.failing() {
		c.fast, c.pause = record16{}, pauseTicks
	}
}

// FastPath returns how many attempts of DFP the votes of a supermajority decided in favour of the
// commands, and of how many that is known. What is sent together is one attempt. One that the
// coordinator decided, or nobody told about, is not on the fast path.
func (c *client) FastPath() (taken, tried int) { return c.stats.fast, c.stats.tried }

// onOutcome takes the coordinator's word.
func (c *client) onOutcome(env *protocol.Env[smr.Message], m outcome) {
	if a := c.attempts[m.Slot]; a != nil && !a.settled && m.Session == c.Session {
		c.count(a, false)
		c.settle(env, m.Slot, a, m.Committed)
	}
}

// settle notes what was decided for an attempt. One that failed is made again at once, by way of a
// track: the slot is known to be lost, so there is at most one that counts.
func (c *client) settle(env *protocol.Env[smr.Message], s smr.Slot, a *attempt, committed bool) {
	a.settled = true
	var again []*kit.Pending
	for _, q := range a.seqs {
		p := c.Command(q)
		switch {
		case p == nil:
		case committed:
			c.placed(env, p, s)
		default:
			p.Attempts--
			again = append(again, p)
		}
	}
	if len(again) > 0 {
		c.submit(env, again, protocol.App)
	}
}

// placed notes that a command's slot is decided. That is all that AckDurable waits for, unless
// another attempt at the command may be decided as well: then only its execution tells which slot
// counts.
func (c *client) placed(env *protocol.Env[smr.Message], p *kit.Pending, s smr.Slot) {
	if p.Attempts == 1 && p.Awaits() == smr.AckDurable {
		c.finish(env, p, s)
	}
}

// onPlaced counts who has accepted commands in a slot of a replica's track. Only the owner proposes
// there, so a majority is enough, and there are no votes against. Whole is the owner's word that it
// has counted them.
func (c *client) onPlaced(env *protocol.Env[smr.Message], from protocol.ID, m placed) {
	if m.Session != c.Session || m.Members == 0 || m.Members > maxMembers {
		return
	}
	if !m.Whole {
		v := c.places[m.Slot]
		if v == nil {
			v = &placings{}
			c.places[m.Slot] = v
		}
		if v.by.Add(from); v.by.Len() < quorum.Majority(int(m.Members)) {
			return
		}
	}
	for _, q := range m.Seqs {
		if p := c.Command(q); p != nil {
			c.placed(env, p, m.Slot)
		}
	}
}

func (c *client) onOrdered(env *protocol.Env[smr.Message], m ordered) {
	if m.Session != c.Session {
		return
	}
	for _, q := range m.Seqs {
		if p := c.Command(q); p != nil && p.Attempts == 1 && p.Kind == smr.Propose && p.Awaits() != smr.AckExecuted {
			c.finish(env, p, m.Slot)
		}
	}
}

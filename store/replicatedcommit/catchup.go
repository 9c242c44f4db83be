package replicatedcommit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/foresay/foresay/protocol"
)

// catchUpTimer has the server go on with its copy, or begin one.
type catchUpTimer struct{}

// catchUp is a server's copying of what others have carried out while it was away. Meanwhile it votes and answers reads as before: its own votes are on its disk, and what it has missed
// others refuse.
type catchUp struct {
	owing  map[protocol.ID]Owing  // by server: what it says, if that is not paid
	paid   map[protocol.ID]uint64 // the serial of what was paid last, should the word of it be lost
	source protocol.ID            // zero: none is copied
	round  uint64                 // tells this copy from earlier ones, whose pages may still be on their way
	from   string
	since  uint64
	covers map[protocol.ID]uint64 // the serials of debts that the copy pays
	tries  int                    // how often the page was asked for
	timed  bool                   // the timer runs
}

// Limits of catching up.
const (
	catchUpTries = 5 // then another source is looked for
	catchUpPace  = 4 // pages in a round trip at most: nobody waits for them, others have work to do
)

func newCatchUp() catchUp {
	return catchUp{owing: map[protocol.ID]Owing{}, paid: map[protocol.ID]uint64{}}
}

// onOwing begins a copy soon: others may owe something as well, which the same copy pays.
func (s *Server) onOwing(env *protocol.Env[Message], from protocol.ID, m Owing) {
	c := &s.catchUp
	if !s.isPeer(from) || s.newcomer.syncing {
		return
	}
	if serial, ok := c.paid[from]; ok && serial == m.Serial {
		env.Send(from, Paid{serial})
		return
	}
	c.owing[from] = m
	if s.cfg.skip.has(ruleOwedCopy) {
		env.Send(from, Paid{m.Serial})
		return
	}
	if !c.timed {
		c.timed = true
		env.After(6*s.cfg.RoundTrip, catchUpTimer{})
	}
}

// goOnCatchingUp asks for the next page, or for the same one again.
func (s *Server) goOnCatchingUp(env *protocol.Env[Message]) {
	c := &s.catchUp
	c.timed = false
	if s.admission.refused != "" {
		return
	}
	if c.tries++; c.source != 0 && c.tries > catchUpTries {
		c.source = 0
		clear(c.owing) // those that are there say it again
	}
	if c.source == 0 && !s.beginCatchUp(env) {
		return
	}
	env.Send(c.source, Copy{Stage: CopyValues, From: c.from, Since: c.since, Round: c.round})
	c.timed = true
	env.After(2*s.cfg.RoundTrip, catchUpTimer{})
}

// beginCatchUp chooses whom to copy: a server that has carried out what others owe, since they do not owe it to that server as well.
func (s *Server) beginCatchUp(env *protocol.Env[Message]) bool {
	c := &s.catchUp
	c.source, c.from, c.tries, c.covers, c.round = 0, "", 1, nil, 1+env.Rand.Uint64()>>1
	all := slices.Sorted(maps.Keys(c.owing))
	for _, source := range all {
		covers, since := map[protocol.ID]uint64{}, uint64(0)
		for _, from := range all {
			if m := c.owing[from]; m.To&(1<<s.shards[source].site) == 0 {
				if len(covers) == 0 || m.Since < since {
					since = m.Since
				}
				covers[from] = m.Serial
			}
		}
		if len(covers) > len(c.covers) {
			c.source, c.covers, c.since = source, covers, since
		}
	}
	return c.source != 0
}

// onOwedPage takes a page, as a newcomer does.
func (s *Server) onOwedPage(env *protocol.Env[Message], from protocol.ID, m Page) {
	c := &s.catchUp
	if from != c.source || c.source == 0 || m.Stage != CopyValues || m.Round != c.round || m.From != c.from || m.Next != "" && m.Next <= m.From || !s.validPage(m) {
		return
	}
	s.takeValues(env, m.Values)
	c.from, c.tries = m.Next, 0
	env.Stop(catchUpTimer{})
	c.timed = false
	if c.from == "" {
		s.pay(env)
	}
	if c.source != 0 || len(c.owing) > 0 {
		c.timed = true
		env.After(s.cfg.RoundTrip/catchUpPace, catchUpTimer{})
	}
}

// pay tells those whose debts were covered by what has been copied.
func (s *Server) pay(env *protocol.Env[Message]) {
	c := &s.catchUp
	for _, peer := range slices.Sorted(maps.Keys(c.covers)) {
		env.Send(peer, Paid{c.covers[peer]})
		c.paid[peer] = c.covers[peer]
		if c.owing[peer].Serial == c.covers[peer] {
			delete(c.owing, peer)
		}
	}
	c.source, c.covers = 0, nil
}

func (s *Server) checkCatchUp() error {
	c := &s.catchUp
	if (c.source != 0 || len(c.owing) > 0 && !s.cfg.skip.has(ruleOwedCopy)) && !c.timed && s.admission.refused == "" {
		return fmt.Errorf("replicatedcommit: server %d: it copies server %d, is owed something by %d, and waits for nothing", s.cfg.ID, c.source, len(c.owing))
	}
	return nil
}

package replicatedcommit

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// catchUpTimer has the server go on with its copy, or begin one.
type catchUpTimer struct{}

// catchUp is a server's copying of what others have carried out while it was away. Meanwhile it
// votes and answers reads as before: its own votes are on its disk, and what it has missed others
// refuse.
type catchUp struct {
	owing  map[protocol.ID]owing  // by server: what it says, if that is not paid
	paid   map[protocol.ID]uint64 // the serial of what was paid last, should the word of it be lost
	source protocol.ID            // zero: none is copied
	round  uint64                 // tells this copy from earlier ones, whose pages may still be on their way
	from   string
	since  uint64
	covers map[protocol.ID]owing      // what was owed when the copy began
	copied map[protocol.ID]partCopied // by server: what has been copied of what it owes, if that is not all
	kept   bool                       // how far the copy is, is on disk
	tries  int                        // how often the page was asked for
	failed uint64                     // sites whose servers did not answer since a copy was completed, as bits
	pace   copyPace
	timed  bool // the timer runs
}

// catchUpLayout is what is on disk of a copy.
var catchUpLayout = wirefmt.NewLayout("replicatedcommit: how far a server has been copied, on disk", catchUpFields)

func catchUpFields(c *wirefmt.Coder, m *catchUp) {
	wirefmt.Uint32(c, &m.source)
	wirefmt.Uint(c, &m.since)
	wirefmt.String(c, &m.from)
	wirefmt.Map(c, &m.covers, 4, func(c *wirefmt.Coder, server *protocol.ID, o *owing) {
		wirefmt.Uint32(c, server)
		owingFields(c, o)
	})
	if m.covers == nil {
		m.covers = map[protocol.ID]owing{}
	}
}

// partCopied are sites that have been copied for a debt, as bits.
type partCopied struct{ serial, sites uint64 }

// Limits of catching up.
const (
	catchUpTries = 5 // then another source is looked for
	catchUpPace  = 4 // pages in a round trip at most: nobody waits for them, others have work to do
	// catchUpValue is the least time for each value, since it is work for source and server that
	// others wait behind. A transaction is as much work as two.
	catchUpValue = 100 * time.Microsecond
	// catchUpScan is the least time for each key that the source looked at.
	catchUpScan = 10 * time.Microsecond
	// catchUpTxn is how long no values are copied for each transaction that is decided meanwhile,
	// here and at the source: it is as much work as six values, which its client waits for.
	catchUpTxn = 6 * catchUpValue
	// catchUpLeast is the share of the time for values that the copy has however much is decided: a
	// site that is back must come up to the others some day. A newcomer must soon, as no other site
	// may be lost until then.
	catchUpLeast  = 0.1
	newcomerLeast = 0.5
	// catchUpYield is how much longer the server waits when the source takes longer than it did at
	// best, as then it has other work.
	catchUpYield = 4
)

// copyPace is at which pace a server copies another one, which has other work to do.
type copyPace struct {
	asked, least time.Duration // when the page was asked for, and how soon one came at best
	since        time.Duration // the last page
	decided      uint64        // how many transactions had been decided by then
	busy         float64       // the share of the time that transactions take, over the last pages
}

// pause returns how long to wait after a page, when so many transactions have been decided. The
// copy has a share of the time at least.
func (c *copyPace) pause(now, roundTrip time.Duration, decided uint64, least float64, page page) time.Duration {
	bytes := 0
	for _, kv := range page.Values {
		bytes += len(kv.Key) + len(kv.Value.Bytes)
	}
	for _, t := range page.Txns {
		bytes += store.ContentBytes(nil, t.Txn.Writes)
	}
	took := max(now-c.asked, 0)
	if c.least == 0 || took < c.least {
		c.least = took
	}
	late := min(took-c.least, 2*roundTrip)
	sent, scanned := len(page.Values)+2*len(page.Txns), min(page.Scanned, owedScan*maxOwedEntries)
	work := max(time.Duration(sent)*catchUpValue, time.Duration(scanned)*catchUpScan)
	if c.since > 0 && now > c.since {
		busy := float64(decided-c.decided) * float64(catchUpTxn) / float64(now-c.since)
		c.busy += (min(busy, 1) - c.busy) / 4
	}
	c.since, c.decided = now, decided
	work = time.Duration(float64(work) / max(1-c.busy, least))
	return max(roundTrip/catchUpPace, work, store.SendTime(bytes)) + catchUpYield*late
}

func newCatchUp() catchUp {
	return catchUp{owing: map[protocol.ID]owing{}, paid: map[protocol.ID]uint64{}, copied: map[protocol.ID]partCopied{}}
}

// startCatchUp goes on with a copy that was under way when the server stopped. All that was said
// when it began is still so.
func (s *server) startCatchUp(env *protocol.Env[message]) {
	b, ok := env.Get([]byte(catchUpKey))
	if !ok {
		return
	}
	kept, err := catchUpLayout.Decode(b)
	if err != nil {
		panic(err.Error()) // which runners stop at
	}
	c := &s.catchUp
	c.kept = true
	if !s.isPeer(kept.source) {
		s.dropCatchUp(env)
		return
	}
	c.source, c.since, c.from, c.covers = kept.source, kept.since, kept.from, kept.covers
	c.round, c.timed = newRound(env), true
	env.After(s.cfg.RoundTrip, catchUpTimer{})
}

func newRound(env *protocol.Env[message]) uint64 { return 1 + env.Rand.Uint64()>>1 }

// keepCatchUp writes how far the copy is to the disk, with what was copied.
func (s *server) keepCatchUp(env *protocol.Env[message]) {
	c := &s.catchUp
	c.kept = true
	env.Put([]byte(catchUpKey), catchUpLayout.Encode(*c))
}

// dropCatchUp ends the copy.
func (s *server) dropCatchUp(env *protocol.Env[message]) {
	c := &s.catchUp
	if c.source, c.covers = 0, nil; c.kept {
		c.kept = false
		env.Delete([]byte(catchUpKey))
	}
}

// onOwing begins a copy soon: others may owe something as well, which the same copy pays. They are
// asked.
func (s *server) onOwing(env *protocol.Env[message], from protocol.ID, m owing) {
	c := &s.catchUp
	if _, ok := s.shards[from]; !ok || from == s.cfg.ID {
		return
	}
	if s.newcomer.syncing {
		env.Send(from, paid{m.Serial, true})
		return
	}
	if serial, ok := c.paid[from]; ok && serial == m.Serial {
		env.Send(from, paid{Serial: serial})
		return
	}
	c.owing[from] = m
	if !c.timed {
		c.timed = true
		env.After(6*s.cfg.RoundTrip, catchUpTimer{})
		for _, id := range slices.Sorted(maps.Keys(s.shards)) {
			if id != s.cfg.ID {
				env.Send(id, paid{})
			}
		}
	}
}

// goOnCatchingUp asks for the next page, or for the same one again.
func (s *server) goOnCatchingUp(env *protocol.Env[message]) {
	c := &s.catchUp
	c.timed = false
	if s.admission.refused != "" {
		return
	}
	if c.tries++; c.source != 0 && c.tries > catchUpTries {
		c.failed |= 1 << s.shards[c.source].Site
		s.dropCatchUp(env)
		clear(c.owing) // those that are there say it again
	}
	if c.source == 0 && !s.beginCatchUp(env) {
		return
	}
	c.pace.asked = env.Now
	env.Send(c.source, askPage{Stage: copyValues, From: c.from, Since: c.since, Round: c.round})
	c.timed = true
	env.After(2*s.cfg.RoundTrip, catchUpTimer{})
}

// beginCatchUp chooses whom to copy: a server of the shard that pays the most debts, one that is
// there rather than others.
func (s *server) beginCatchUp(env *protocol.Env[message]) bool {
	c := &s.catchUp
	c.source, c.from, c.tries, c.covers, c.round, c.pace = 0, "", 1, maps.Clone(c.owing), newRound(env), copyPace{}
	c.since = math.MaxUint64
	for _, m := range c.owing { //pure:ok the least is the same in any order
		c.since = min(c.since, m.Since)
	}
	if bits.OnesCount64(c.failed) == len(s.peers) {
		c.failed = 0 // they are asked again
	}
	c.source = s.bestSource()
	if c.source == 0 && c.failed != 0 && len(c.owing) > 0 { // those that are left have nothing more to give
		c.failed = 0
		c.source = s.bestSource()
	}
	return c.source != 0
}

// bestSource returns the peer that pays most of what is owed, of those that have not failed; 0 if
// none pays any.
func (s *server) bestSource() (source protocol.ID) {
	c := &s.catchUp
	best := 0
	for _, peer := range s.peers {
		worth := 0
		for from, m := range c.owing { //pure:ok a sum is the same in any order
			if all, is := s.copiedWith(from, m, peer); is {
				worth += 8
			} else if all != c.copied[from].sites || m.Serial != c.copied[from].serial {
				worth += 4 // one of several
			}
		}
		if _, ok := c.owing[peer]; ok {
			worth++ // it is there
		}
		if c.failed&(1<<s.shards[peer].Site) == 0 && worth > best {
			best, source = worth, peer
		}
	}
	return source
}

// copiedWith returns the sites that are copied for a debt when a server is, and whether that pays
// it. A server that is not owed anything itself by the same debtor has carried out all that it is
// for. If there is none, as servers of all sites have been away at one time or another, so many are
// copied that a majority of the sites has one of them.
func (s *server) copiedWith(from protocol.ID, m owing, source protocol.ID) (sites uint64, is bool) {
	site := uint64(1) << s.shards[source].Site
	if n := s.catchUp.copied[from]; n.serial == m.Serial {
		sites = n.sites
	}
	sites |= site
	return sites, m.To&site == 0 || bits.OnesCount64(sites) >= len(s.cfg.Layout.Sites)-s.cfg.Layout.Majority()
}

// onOwedPage takes a page, as a newcomer does.
func (s *server) onOwedPage(env *protocol.Env[message], from protocol.ID, m page) {
	c := &s.catchUp
	if from != c.source || c.source == 0 || m.Stage != copyValues || m.Round != c.round || m.From != c.from ||
		m.Next != "" && m.Next <= m.From || !s.validPage(m) {
		return
	}
	s.takeValues(env, m.Values)
	c.from, c.tries = m.Next, 0
	env.Stop(catchUpTimer{})
	c.timed = false
	if c.from == "" {
		s.pay(env)
	} else {
		s.keepCatchUp(env)
	}
	if c.source != 0 || len(c.owing) > 0 {
		c.timed = true
		env.After(c.pace.pause(env.Now, s.cfg.RoundTrip, s.decided, catchUpLeast, m), catchUpTimer{})
	}
}

// pay tells those whose debts are covered by what has been copied.
func (s *server) pay(env *protocol.Env[message]) {
	c := &s.catchUp
	c.failed = 0
	for _, peer := range slices.Sorted(maps.Keys(c.covers)) {
		m := c.covers[peer]
		sites, is := s.copiedWith(peer, m, c.source)
		if !is {
			c.copied[peer] = partCopied{m.Serial, sites}
			continue
		}
		env.Send(peer, paid{Serial: m.Serial})
		c.paid[peer] = m.Serial
		delete(c.copied, peer)
		if c.owing[peer].Serial == m.Serial {
			delete(c.owing, peer)
		}
	}
	s.dropCatchUp(env)
}

func (s *server) checkCatchUp() error {
	c := &s.catchUp
	if (c.source != 0 || len(c.owing) > 0) && !c.timed && s.admission.refused == "" {
		return fmt.Errorf("replicatedcommit: server %d: it copies server %d, is owed something by %d, and waits for nothing",
			s.cfg.ID, c.source, len(c.owing))
	}
	return nil
}

package replicatedcommit

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// entryTimer ends what a coordinator remembers of a transaction. Its shards ask if something is
// left to do.
type entryTimer struct{ id store.TxnID }

// coordinator is a node that speaks for a site on some of its transactions. It gathers votes, tells
// them, decides by them and has the site's shards carry out the decision. All it knows are votes
// that shards have on disk, so it keeps nothing: after a crash its shards ask about what is not
// finished.
type coordinator struct {
	cfg          store.Config
	place        store.Place
	shards       map[protocol.ID]store.Place
	coordinators map[protocol.ID]store.Place
	entries      map[store.TxnID]*entry
	silent       []time.Duration               // by site: since when it has not answered; 0: it has, or need not
	quiet        map[protocol.ID]time.Duration // by server: since when it has left a question open, if it has
	// when the application was told last that there are as many as may be; 0: never
	fullSaid time.Duration
}

// newCoordinator returns a coordinator. The error names the field of the configuration that is
// wrong.
func newCoordinator(cfg store.Config) (*coordinator, error) {
	cfg, err := withDefaults(cfg)
	if err != nil {
		return nil, err
	}
	c := &coordinator{cfg: cfg, entries: map[store.TxnID]*entry{}, silent: make([]time.Duration, len(cfg.Layout.Sites)),
		quiet: map[protocol.ID]time.Duration{}}
	c.shards, c.coordinators = cfg.Layout.Places()
	p, ok := c.coordinators[cfg.ID]
	if !ok {
		return nil, fmt.Errorf("replicatedcommit: Config.ID: %d is no coordinator of a site that takes part", cfg.ID)
	}
	c.place = p
	return c, nil
}

// Start implements protocol.Node.
func (c *coordinator) Start(*protocol.Env[message], []protocol.Record[message]) {}

// Receive implements protocol.Node.
func (c *coordinator) Receive(env *protocol.Env[message], from protocol.ID, msg message) {
	if p, ok := c.shards[from]; ok {
		c.silent[p.Site] = 0
		delete(c.quiet, from)
	} else if p, ok := c.coordinators[from]; ok {
		c.silent[p.Site] = 0
	}
	switch m := msg.(type) {
	case store.CommitRequest:
		c.onCommit(env, from, m)
	case vote:
		c.onVote(env, from, m)
	case store.SiteVote:
		c.onSiteVote(env, from, m)
	case applied:
		c.onApplied(env, from, m)
	case resolve:
		c.onResolve(env, from, m)
	}
}

// Expire implements protocol.Node.
func (c *coordinator) Expire(_ *protocol.Env[message], t protocol.Timer) {
	if t, ok := t.(entryTimer); ok {
		delete(c.entries, t.id)
	}
}

// find returns what is known of a transaction, or nil if nothing is and there is no room for more.
func (c *coordinator) find(env *protocol.Env[message], id store.TxnID, shards []uint32) *entry {
	e := c.entries[id]
	switch {
	case e != nil && slices.Equal(e.shards, shards):
		return e
	case e != nil || id.IsZero() || !c.cfg.Layout.ValidShards(shards) || len(c.entries) >= c.cfg.MaxTxns:
		return nil
	}
	e = newEntry(id, shards, c.cfg.Layout)
	c.entries[id] = e
	env.After(c.cfg.Retain, entryTimer{id})
	return e
}

func (c *coordinator) forget(env *protocol.Env[message], e *entry) {
	delete(c.entries, e.id)
	env.Stop(entryTimer{e.id})
}

// onCommit has the site's shards vote, for a client.
func (c *coordinator) onCommit(env *protocol.Env[message], from protocol.ID, m store.CommitRequest) {
	if from == protocol.App || m.Txn.Validate() != nil || c.cfg.Layout.Coordinator(c.place.Site, m.Txn.ID) != c.cfg.ID {
		return
	}
	parts, shards := c.cfg.Layout.Split(m.Txn)
	if len(shards) == 0 {
		return
	}
	e := c.find(env, m.Txn.ID, shards)
	if e == nil {
		if len(c.entries) >= c.cfg.MaxTxns {
			c.turnAway(env, from, m.Txn.ID)
		}
		return
	}
	e.readOnly = m.Txn.ReadOnly()
	e.addClient(from)
	if e.outcome != undecided {
		c.tellOutcome(env, e, from)
		return
	}
	if e.said {
		env.Send(from, c.siteVote(e))
	}
	for i, s := range shards {
		if e.rows[c.place.Site].cells[i] == undecided {
			c.ask(env, c.cfg.Layout.Sites[c.place.Site].Shards[s], prepare{Txn: parts[i], Shards: shards, ReadOnly: e.readOnly,
				Firm: m.Firm, Hold: m.Hold || m.Firm})
		}
	}
	if m.Recover && !e.readOnly {
		c.recover(env, e)
	}
}

func (c *coordinator) onVote(env *protocol.Env[message], from protocol.ID, m vote) {
	p, ok := c.shards[from]
	e := c.entries[m.ID]
	if !ok || e == nil {
		return
	}
	i, ok := slices.BinarySearch(e.shards, uint32(p.Index))
	if !ok {
		return
	}
	own := &e.rows[c.place.Site]
	before := own.vote()
	e.rows[p.Site].take(i, m)
	if p.Site == c.place.Site {
		e.current = m.Current // goes with the site's vote, if it follows from this one
	}
	c.step(env, e)
	e.current = nil
	if m.State == gone && p.Site == c.place.Site && e.outcome == undecided {
		for _, client := range e.clients { // to whom it is too old either way
			env.Send(client, store.SiteVote{ID: e.id, Shards: e.shards, Reason: store.Old, Hint: m.Hint})
		}
	}
	switch {
	case c.entries[m.ID] != e || e.outcome != undecided || !e.recovering:
	case before == undecided && own.vote() == no:
		c.recover(env, e) // others were asked when they could still vote yes
	case m.State == undecided && own.vote() == yes:
		env.Send(c.cfg.Layout.Sites[c.place.Site].Shards[p.Index], urge{ID: e.id, Site: uint32(p.Site)})
	}
}

func (c *coordinator) onSiteVote(env *protocol.Env[message], from protocol.ID, m store.SiteVote) {
	p, ok := c.coordinators[from]
	if !ok || p.Site == c.place.Site || !c.cfg.Layout.ValidShards(m.Shards) {
		return
	}
	for _, s := range m.Shards {
		if m.Yes { // they have all answered
			delete(c.quiet, c.cfg.Layout.Sites[p.Site].Shards[s])
		}
	}
	e := c.find(env, m.ID, m.Shards)
	if e == nil {
		return
	}
	e.rows[p.Site].takeSite(m)
	c.step(env, e)
}

func (c *coordinator) onApplied(env *protocol.Env[message], from protocol.ID, m applied) {
	p, ok := c.coordinators[from]
	e := c.entries[m.ID]
	if !ok || e == nil || p.Site == c.place.Site {
		return
	}
	e.rows[p.Site].applied = true
	c.step(env, e)
}

// onResolve finds out about a transaction for a shard of the site.
func (c *coordinator) onResolve(env *protocol.Env[message], from protocol.ID, m resolve) {
	p, ok := c.shards[from]
	if !ok || p.Site != c.place.Site || m.State == undecided || m.State == old ||
		c.cfg.Layout.Coordinator(p.Site, m.ID) != c.cfg.ID {
		return
	}
	e := c.find(env, m.ID, m.Shards)
	if e == nil {
		return
	}
	if i, ok := slices.BinarySearch(e.shards, uint32(p.Index)); ok {
		e.rows[p.Site].take(i, vote{ID: m.ID, State: m.State, Reason: m.Reason})
	}
	c.step(env, e)
	if c.entries[m.ID] == nil {
		return
	}
	c.recover(env, e)
}

// recover asks the shards of all sites for votes that are missing or, once there is a decision,
// tells those that have not carried it out.
//
// Shards of other sites that have not voted do so on the transaction's merits if this site has
// voted yes, and refuse it if this site has refused: they may be about to hear from the client, and
// a refusal that nothing but haste is the reason for blocks the transaction while a third site is
// away. What lacks here is refused, so that this site's vote is known.
func (c *coordinator) recover(env *protocol.Env[message], e *entry) {
	e.recovering = true
	own := e.rows[c.place.Site].vote()
	for _, i := range c.cfg.Layout.Unfenced() {
		row := &e.rows[i]
		for j, s := range e.shards {
			to := c.cfg.Layout.Sites[i].Shards[s]
			switch {
			case e.outcome != undecided && !row.applied && !settled(row.cells[j]):
				c.ask(env, to, e.decide())
			case e.outcome == undecided:
				// Also who has voted: it may know the decision by now.
				fence := own == no || i == c.place.Site
				c.ask(env, to, ask{ID: e.id, Shards: e.shards, Fence: fence})
			}
		}
	}
}

// step does what follows from what is known by now.
func (c *coordinator) step(env *protocol.Env[message], e *entry) {
	own := &e.rows[c.place.Site]
	if !e.said && own.vote() != undecided {
		e.said = true
		c.tellVote(env, e)
	}
	if e.readOnly {
		if e.said {
			c.forget(env, e)
		}
		return
	}
	if e.outcome == undecided {
		if e.outcome, e.reason = e.tally(c.cfg.Layout.Majority()); e.outcome != undecided {
			c.carryOut(env, e)
		} else if !e.asked && e.lost(c.cfg.Layout.Majority()) {
			e.asked = true
			c.recover(env, e)
		}
		return
	}
	if own.allSettled() && !own.applied {
		own.applied = true
		c.toPeers(env, e.id, applied{e.id})
	}
	if but, ok := c.carriedOut(env, e); ok {
		for _, i := range c.cfg.Layout.Unfenced() {
			if i != c.place.Site && len(but) == 0 && !e.recovering {
				continue // its coordinator has seen the same
			}
			for _, s := range e.shards {
				env.Send(c.cfg.Layout.Sites[i].Shards[s], forget{e.id, but})
			}
		}
		c.forget(env, e)
	}
}

// ask sends a server what it has to answer.
func (c *coordinator) ask(env *protocol.Env[message], server protocol.ID, m message) {
	if _, ok := c.quiet[server]; !ok {
		c.quiet[server] = env.Now
	}
	env.Send(server, m)
}

// How long a site or a server may leave something unanswered until others no longer wait for it: so
// many round trips, and a time that a busy machine on a near network may need. What is kept for it
// until then is little; what it is owed after that costs a walk over all keys.
const (
	awayAfter = 16
	leastAway = 3 * time.Second
)

// away reports whether nothing has been heard for long of a server that has something to answer, or
// of its whole site.
func (c *coordinator) away(env *protocol.Env[message], server protocol.ID) bool {
	site := c.shards[server].Site
	since, quiet := c.quiet[server]
	if c.silent[site] != 0 && (!quiet || c.silent[site] < since) {
		since, quiet = c.silent[site], true
	}
	return quiet && env.Now-since > max(awayAfter*c.cfg.RoundTrip, leastAway)
}

// carriedOut reports whether all servers have carried out a decision, but for those that are away,
// which are returned. A majority of the sites has whole, so that what it wrote can be copied and
// what is left cannot decide otherwise.
func (c *coordinator) carriedOut(env *protocol.Env[message], e *entry) (but []protocol.ID, ok bool) {
	n := 0
	for _, i := range c.cfg.Layout.Unfenced() {
		r := &e.rows[i]
		if r.applied || r.allSettled() {
			n++
			continue
		}
		for j, s := range e.shards {
			server := c.cfg.Layout.Sites[i].Shards[s]
			if settled(r.cells[j]) {
				continue
			}
			if !c.away(env, server) {
				return nil, false
			}
			but = append(but, server)
		}
	}
	return but, len(but) == 0 || n >= c.cfg.Layout.Majority()
}

// carryOut tells clients and the site's shards a decision that was just made.
func (c *coordinator) carryOut(env *protocol.Env[message], e *entry) {
	for _, client := range e.clients {
		c.tellOutcome(env, e, client)
	}
	for j, s := range e.shards {
		if !settled(e.rows[c.place.Site].cells[j]) {
			c.ask(env, c.cfg.Layout.Sites[c.place.Site].Shards[s], e.decide())
		}
	}
	c.step(env, e)
}

func (c *coordinator) tellVote(env *protocol.Env[message], e *entry) {
	v := c.siteVote(e)
	for _, client := range e.clients {
		env.Send(client, v)
	}
	v.Current = nil
	if !e.readOnly {
		for _, i := range c.cfg.Layout.Unfenced() {
			if c.silent[i] == 0 && i != c.place.Site {
				c.silent[i] = max(env.Now, 1) // it tells when it has carried out the decision
			}
		}
		c.toPeers(env, e.id, v)
	}
}

func (c *coordinator) siteVote(e *entry) store.SiteVote {
	r := &e.rows[c.place.Site]
	return store.SiteVote{ID: e.id, Shards: e.shards, Yes: r.vote() == yes, Reason: r.reason, Hint: r.hint,
		Current: e.current}
}

func (c *coordinator) toPeers(env *protocol.Env[message], id store.TxnID, m message) {
	for _, i := range c.cfg.Layout.Unfenced() {
		if i != c.place.Site {
			env.Send(c.cfg.Layout.Coordinator(i, id), m)
		}
	}
}

func (c *coordinator) tellOutcome(env *protocol.Env[message], e *entry, client protocol.ID) {
	d := store.Decided{ID: e.id, Verdict: store.Aborted, Reason: e.reason}
	switch {
	case e.outcome == committed:
		d.Verdict = store.Committed
	case e.reason == store.Old:
		d.Verdict = store.Unknown
	}
	env.Send(client, d)
}

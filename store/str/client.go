package str

import (
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// client is the node of an application. All its transactions begin, read and commit at one
// coordinator of the nearest site, so that they build on each other.
type client struct {
	kit.NearestCalls[*get, *submit]
	cfg   store.Config
	name  uint64 // of the next transaction; random at first, so that no two share one
	begun kit.Begun[*opened]
	// early came while it did not know yet which site is near: nothing is lost by waiting for that.
	early []store.Message
	seen  uint64 // the latest timestamp that it knows: a snapshot's or a commit's
	// heard is when a coordinator of each site has said something last.
	heard map[int]time.Duration
	// denied are transactions of which its application was told that they are not committed. Of those
	// that have only read a coordinator may remember that they are.
	denied []pastTxn
}

type (
	// get is a read: a transaction of its own.
	get struct{ kit.Get }
	// submit is a transaction that lacks its outcome.
	submit struct {
		kit.Submit
		ahead
	}
)

// opened is a transaction that has begun and is not submitted yet.
type opened struct {
	kit.Opened
	at  uint64 // its snapshot; 0: it is not known
	get bool   // it is a Get
	// local are those of the client's transactions that are committed locally as far as it was told
	// when this one began, and above the latest of their commits since: what has been told is in the
	// snapshot of what comes next. A commit whose timestamp is not known may be later than any.
	local map[store.TxnID]bool
	above uint64
	got   *store.Held   // of a Get: what it has read, and is not known to be final yet
	then  *store.Submit // is sent once it has begun; nil: nothing
	moves int           // how often it began anew at another site
}

// homeTimer is when a client that found no site near goes on all the same.
type homeTimer struct{}

const (
	// stepTries is how often a client asks for what a step reads: it may wait for others. quietTries
	// is after how many times it takes a site for silent of which it has heard nothing since, and
	// quietTrips for how many round trips that one is not asked.
	stepTries  = 12
	quietTries = 3
	quietTrips = 12
	// beatTrips is how many round trips there are between a client's signs that it is there.
	beatTrips = 4
	// patientTries is how often the coordinator at which a transaction has begun is asked for its
	// commit, before others are.
	patientTries = 3
)

// newClient returns a client. The error names the field of the configuration that is wrong.
func newClient(cfg store.Config) (*client, error) {
	calls, cfg, err := kit.NewNearestCalls("str", cfg, func() *get { return new(get) },
		func() *submit { return new(submit) })
	if err != nil {
		return nil, err
	}
	c := &client{NearestCalls: calls, cfg: cfg, heard: map[int]time.Duration{}}
	c.begun = kit.NewBegun(cfg.Layout, c.refuse)
	return c, nil
}

// Start implements protocol.Node.
func (c *client) Start(env *protocol.Env[store.Message], _ []protocol.Record[store.Message]) {
	c.NearestCalls.Start(env, nil)
	c.name = uint64(c.ID)
}

// Receive implements protocol.Node.
func (c *client) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	if p, ok := c.Coordinator(from); ok {
		c.heard[p.Site] = env.Now
	}
	switch m := msg.(type) {
	case store.Get, store.Declare, store.Submit:
		if !c.Lost() || c.goesOn(m) {
			c.take(env, m)
		} else if c.early = append(c.early, m); len(c.early) == 1 {
			c.FindHome(env)
			env.After(c.cfg.RoundTrip, homeTimer{})
		}
	case store.Abandon:
		c.forgetEarly(env, m.Ref)
		id, _ := c.begun.By(m.Ref)
		c.begun.Abandon(env, id)
	case store.Cancel:
		c.forgetEarly(env, m.Ref)
		if id, o := c.begun.By(m.Ref); o != nil {
			c.begun.Abandon(env, id)
			return
		}
		if s := c.SubmitBy(m.Ref); s != nil {
			s.left = true
		}
		c.NearestCalls.Receive(env, from, m)
	case store.Settle:
		c.settle(env, m)
	case store.Speculated:
		c.onSpeculated(env, from, m)
	case store.ReadReply:
		if c.Found(env, from, m) {
			env.Stop(homeTimer{})
			c.takeEarly(env)
		}
	case store.DeclareReply:
		c.onReply(env, m)
	case store.Decided:
		if m.Version.Time < maxSeen {
			c.seen = max(c.seen, m.Version.Time)
		}
		if !c.onGot(env, m) {
			c.NearestCalls.Receive(env, from, m)
		}
	case store.Busy:
		if c.begun.Of(m.ID) != nil {
			c.begun.Close(env, m.ID)
			return
		}
		c.NearestCalls.Receive(env, from, m)
	default:
		c.NearestCalls.Receive(env, from, msg)
	}
}

// goesOn reports whether a call is of a transaction that has begun.
func (c *client) goesOn(msg store.Message) bool {
	var begun uint64
	switch m := msg.(type) {
	case store.Declare:
		begun = m.Begun
	case store.Submit:
		begun = m.Begun
	}
	_, o := c.begun.By(begun)
	return o != nil
}

// maxSeen bounds timestamps that are believed.
const maxSeen = 1 << 62

// Expire implements protocol.Node.
func (c *client) Expire(env *protocol.Env[store.Message], t protocol.Timer) {
	switch t := t.(type) {
	case homeTimer:
		c.takeEarly(env)
	case partTimer:
		c.part(env, t.id)
	case kit.BeatTimer:
		if o := c.begun.Of(t.ID); o != nil {
			c.beat(env, t.ID, o)
		}
	case kit.SubmitTimer:
		if s := c.Submit(t.ID); s != nil && s.Tries < patientTries {
			s.Tries++
			c.Repeat(env, &s.Submit)
			return
		}
		c.NearestCalls.Expire(env, t)
	}
}

func (c *client) takeEarly(env *protocol.Env[store.Message]) {
	early := c.early
	c.early = nil
	for _, m := range early {
		c.take(env, m)
	}
}

// forgetEarly answers a call that is to be forgotten and has not begun.
func (c *client) forgetEarly(env *protocol.Env[store.Message], ref uint64) {
	c.early = slices.DeleteFunc(c.early, func(m store.Message) bool {
		switch m := m.(type) {
		case store.Declare:
			if m.Ref == ref {
				env.Send(protocol.App, store.Declared{Ref: ref})
				return true
			}
		case store.Submit:
			if m.Ref == ref {
				env.Send(protocol.App, c.unsent(env, m, store.NoReason))
				return true
			}
		case store.Get:
			return m.Ref == ref
		}
		return false
	})
}

// take begins what an application asks for.
func (c *client) take(env *protocol.Env[store.Message], msg store.Message) {
	full := c.begun.Len()+c.Waiting() >= c.cfg.MaxWaiting
	switch m := msg.(type) {
	case store.Get:
		ask := store.DeclareRequest{ID: store.TxnID{Time: 1}, Reads: []store.Key{m.Key}, Step: 1}
		if full || ask.Validate() != nil {
			env.Send(protocol.App, store.Got{Ref: m.Ref, Full: full})
			return
		}
		c.begin(env, &opened{Opened: kit.Opened{Ref: m.Ref}, get: true}, []store.Key{m.Key})
	case store.Declare:
		ask := store.DeclareRequest{ID: store.TxnID{Time: 1}, Reads: m.Reads, Writes: m.Writes, Step: 1}
		id, o := c.begun.By(m.Begun)
		switch {
		case full && m.Begun == 0, ask.Validate() != nil, m.Begun != 0 && o == nil:
			env.Send(protocol.App, store.Declared{Ref: m.Ref})
		case m.Begun != 0:
			c.step(env, id, o, m.Ref, m.Reads)
		default:
			c.begin(env, &opened{Opened: kit.Opened{Ref: m.Ref}}, m.Reads)
		}
	case store.Submit:
		c.submit(env, m)
	}
}

// begin begins a transaction by reading some keys.
func (c *client) begin(env *protocol.Env[store.Message], o *opened, reads []store.Key) {
	id := c.newID(env)
	o.Site, o.local = c.Home(), map[store.TxnID]bool{}
	for s := range c.Submits() {
		if s.told {
			o.local[s.Txn.ID] = true
		}
	}
	c.begun.Add(id, o)
	c.step(env, id, o, o.Ref, reads)
}

// newID returns the ID of a transaction, which says at which of a site's coordinators it is: always
// the same one.
func (c *client) newID(env *protocol.Env[store.Message]) store.TxnID {
	id := c.NextID(env.Now)
	site := c.cfg.Layout.Sites[c.Home()]
	own := site.Coordinators[uint64(c.ID)%uint64(len(site.Coordinators))]
	for {
		c.name++
		if id.Client = store.ClientID(c.name); c.cfg.Layout.Coordinator(c.Home(), id) == own {
			return id
		}
	}
}

// step has a transaction read further keys.
func (c *client) step(env *protocol.Env[store.Message], id store.TxnID, o *opened, ref uint64, reads []store.Key) {
	s := &kit.Step{Ref: ref, Ask: store.DeclareRequest{ID: id, Reads: reads, Step: uint32(len(o.Steps) + 1),
		At: o.at}}
	if len(o.Steps) == 0 {
		s.Ask.NotBefore = c.seen
	}
	o.Steps = append(o.Steps, s)
	if len(reads) == 0 && s.Ask.Step > 1 {
		s.Answered = true
		env.Send(protocol.App, store.Declared{Ref: ref, OK: true})
		return
	}
	s.Tries++
	c.begun.Tell(env, id, s.Ask)
	env.After(c.cfg.RoundTrip, kit.BeatTimer{ID: id})
}

// beat asks for what was not answered, or says that the client is there.
func (c *client) beat(env *protocol.Env[store.Message], id store.TxnID, o *opened) {
	waits := false
	for _, s := range o.Steps {
		if s.Answered {
			continue
		}
		waits = true
		s.Tries++
		if long := max(quietTries*c.cfg.RoundTrip, missAfter); s.Tries > quietTries && env.Now-c.heard[o.Site] >= long {
			c.isQuiet(env, o.Site)
		} else if s.Tries > stepTries {
			c.begun.Abandon(env, id)
		}
		if c.begun.Of(id) != o {
			return
		}
		c.ask(env, id, o, s)
	}
	if waits {
		env.After(c.cfg.RoundTrip, kit.BeatTimer{ID: id})
		return
	}
	here := o.Steps[0].Ask
	here.At = o.at
	c.begun.Tell(env, id, here)
	env.After(beatTrips*c.cfg.RoundTrip, kit.BeatTimer{ID: id})
}

// isQuiet has transactions begin elsewhere than at a site whose coordinators say nothing: those too
// that have begun there, if their applications have been told nothing. The others cannot go on.
func (c *client) isQuiet(env *protocol.Env[store.Message], site int) {
	c.Silent(site, quietTrips*c.cfg.RoundTrip)
	c.FindHome(env)
	for _, o := range c.begun.All() {
		switch id, _ := c.begun.By(o.Ref); {
		case o.Site != site:
		case o.at == 0 && len(o.Steps) == 1 && c.Home() != site && o.moves < len(c.cfg.Layout.Sites):
			c.beginAnew(env, o)
		case o.Waits():
			c.begun.Abandon(env, id)
		}
	}
}

// beginAnew has a transaction whose application has been told nothing yet begin another time.
func (c *client) beginAnew(env *protocol.Env[store.Message], o *opened) {
	id, _ := c.begun.By(o.Ref)
	keys := o.Steps[0].Ask.Reads
	for _, s := range o.Steps {
		s.Answered = true // who waits for it goes on doing so
	}
	c.begun.Abandon(env, id)
	c.begin(env, &opened{Opened: kit.Opened{Ref: o.Ref}, get: o.get, then: o.then, moves: o.moves + 1}, keys)
}

// ask asks for what a step reads or, of a Get that has read, whether that is final.
func (c *client) ask(env *protocol.Env[store.Message], id store.TxnID, o *opened, s *kit.Step) {
	if o.got == nil {
		c.begun.Tell(env, id, s.Ask)
		return
	}
	read := store.Read{Key: s.Ask.Reads[0], Version: o.got.Value.Version}
	c.begun.Tell(env, id, store.CommitRequest{Txn: store.Txn{ID: id, Reads: []store.Read{read}}})
}

// lacks reports whether a transaction's snapshot may lack what its application was told before.
func (o *opened) lacks() bool { return o.above > o.at && o.at > 0 }

// onGot answers a Get whose transaction has ended; false: it is none. One whose snapshot may lack
// what was told reads anew: its next one has that.
func (c *client) onGot(env *protocol.Env[store.Message], m store.Decided) bool {
	o := c.begun.Of(m.ID)
	if o == nil || o.got == nil {
		return false
	}
	if m.Verdict == store.Committed && o.lacks() {
		c.beginAnew(env, o)
		return true
	}
	if v := *o.got; m.Verdict == store.Committed && !v.Large {
		o.Steps[0].Answered = true
		env.Send(protocol.App, store.Got{Ref: o.Ref, OK: true, Value: v.Value, Site: int(v.Site)})
	}
	c.begun.Close(env, m.ID)
	return true
}

// onReply takes what a step has read.
func (c *client) onReply(env *protocol.Env[store.Message], m store.DeclareReply) {
	o := c.begun.Of(m.ID)
	if o == nil || m.Step == 0 || int(m.Step) > len(o.Steps) || o.Steps[m.Step-1].Answered {
		return
	}
	s := o.Steps[m.Step-1]
	switch {
	case len(m.Values) == 0 && m.At > 0: // its coordinator is at it
		s.Tries = 0
		return
	case len(m.Values) == 0: // it cannot go on
		c.begun.Close(env, m.ID)
		return
	case len(m.Values) != len(s.Ask.Reads) || m.At >= maxSeen:
		return
	}
	if o.at != 0 && m.At != o.at { // its coordinator has begun it anew
		c.begun.Abandon(env, m.ID)
		return
	}
	c.seen = max(c.seen, m.At)
	if o.at = m.At; o.get {
		o.got, s.Tries = &m.Values[0], 0
		c.ask(env, m.ID, o, s)
		return
	}
	s.Answered = true
	switch {
	case o.then != nil:
		c.commit(env, m.ID, o, *o.then)
	default:
		env.Send(protocol.App, store.Declared{Ref: s.Ref, OK: true, Values: m.Values, At: m.At})
	}
}

// submit commits a transaction. One that has read nothing begins first, so that it comes behind
// what its session has seen.
func (c *client) submit(env *protocol.Env[store.Message], m store.Submit) {
	id, o := c.begun.By(m.Begun)
	switch {
	case o != nil:
		c.commit(env, id, o, m)
	case len(m.Reads)+len(m.Writes) == 0 || store.ValidAccesses(m.Reads, m.Writes) != nil:
		c.AddSubmitAs(env, m, c.newID(env), new(submit)) // which answers it
	case len(m.Reads) > 0 || m.Begun != 0: // what it has read is of no snapshot that is known
		env.Send(protocol.App, c.unsent(env, m, store.StaleRead))
	default:
		c.begin(env, &opened{Opened: kit.Opened{Ref: m.Ref}, then: &m}, []store.Key{m.Writes[0].Key})
	}
}

// unsent is the end of a transaction that was not sent to anybody, and will not be.
func (c *client) unsent(env *protocol.Env[store.Message], m store.Submit, why store.Reason) store.Done {
	return store.Done{Ref: m.Ref, Txn: store.Txn{ID: c.newID(env), Priority: m.Priority, Reads: m.Reads, Writes: m.Writes},
		Outcome: store.Outcome{Verdict: store.Aborted, Reason: why}, Site: store.NoSite}
}

// commit has the coordinator at which a transaction has begun commit it.
func (c *client) commit(env *protocol.Env[store.Message], id store.TxnID, o *opened, m store.Submit) {
	if o.lacks() && len(m.Reads) > 0 || slices.ContainsFunc(m.After, c.isDenied) {
		c.begun.Abandon(env, id)
		done := c.unsent(env, m, store.StaleRead)
		env.Send(protocol.App, done)
		return
	}
	s := new(submit)
	if !c.AddSubmitAs(env, m, id, s) {
		c.begun.Abandon(env, id)
		return
	}
	o.then = nil
	c.begun.Close(env, id)
	s.Site = o.Site
	if m.Speculate {
		c.speculate(s, m)
	}
	c.Send(env, s)
}

// refuse tells the application that it does not get what it waits for.
func (c *client) refuse(env *protocol.Env[store.Message], o *opened, s *kit.Step) {
	switch {
	case o.get:
		env.Send(protocol.App, store.Got{Ref: s.Ref})
	case o.then != nil:
		env.Send(protocol.App, c.unsent(env, *o.then, store.Overloaded))
	default:
		env.Send(protocol.App, store.Declared{Ref: s.Ref})
	}
}

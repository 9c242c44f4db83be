package str

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// client is the node of an application. All its transactions begin, read and commit at one
// coordinator of the nearest site, so that they build on each other.
type client struct {
	kit.NearestCalls[*get, *submit]
	cfg  store.Config
	name uint64 // of the next transaction; random at first, so that no two share one
	open map[store.TxnID]*opened
	refs map[uint64]store.TxnID // of those, by the Refs of the Declares that have begun them
	// early came while it did not know yet which site is near: nothing is lost by waiting for that.
	early []store.Message
	seen  uint64 // the latest timestamp that it knows: a snapshot's or a commit's
}

type (
	// get is a read: a transaction of its own.
	get struct{ kit.Get }
	// submit is a transaction that lacks its outcome.
	submit struct{ kit.Submit }
)

// opened is a transaction that has begun and is not submitted yet.
type opened struct {
	ref   uint64
	site  int
	steps []*wanting
	at    uint64        // its snapshot; 0: it is not known
	get   bool          // it is a Get
	then  *store.Submit // is sent once it has begun; nil: nothing
}

// wanting is what the application has asked for at once.
type wanting struct {
	ref      uint64
	ask      store.DeclareRequest
	tries    int
	answered bool
}

// homeTimer is when a client that found no site near goes on all the same.
type homeTimer struct{}

// beatTimer is when a coordinator is asked again, or told that the client is there.
type beatTimer struct{ id store.TxnID }

const (
	// stepTries is how often a client asks for what a step reads: it may wait for others.
	stepTries = 12
	// beatTrips is how many round trips there are between a client's signs that it is there.
	beatTrips = 4
	// patientTries is how often the coordinator at which a transaction has begun is asked for its
	// commit, before others are.
	patientTries = 3
)

// newClient returns a client. The error names the field of the configuration that is wrong.
func newClient(cfg store.Config) (*client, error) {
	calls, cfg, err := kit.NewNearestCalls("str", cfg, func() *get { return new(get) }, func() *submit { return new(submit) })
	if err != nil {
		return nil, err
	}
	return &client{NearestCalls: calls, cfg: cfg, open: map[store.TxnID]*opened{}, refs: map[uint64]store.TxnID{}}, nil
}

// Start implements protocol.Node.
func (c *client) Start(env *protocol.Env[store.Message], _ []protocol.Record[store.Message]) {
	c.NearestCalls.Start(env, nil)
	c.name = uint64(c.ID)
}

// Receive implements protocol.Node.
func (c *client) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
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
		c.abandon(env, c.refs[m.Ref])
	case store.Cancel:
		c.forgetEarly(env, m.Ref)
		if id, ok := c.refs[m.Ref]; ok {
			c.abandon(env, id)
			return
		}
		c.NearestCalls.Receive(env, from, m)
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
		c.NearestCalls.Receive(env, from, m)
	case store.Busy:
		if c.open[m.ID] != nil {
			c.close(env, m.ID)
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
	return c.open[c.refs[begun]] != nil
}

// maxSeen bounds timestamps that are believed.
const maxSeen = 1 << 62

// Expire implements protocol.Node.
func (c *client) Expire(env *protocol.Env[store.Message], t protocol.Timer) {
	switch t := t.(type) {
	case homeTimer:
		c.takeEarly(env)
	case beatTimer:
		if o := c.open[t.id]; o != nil {
			c.beat(env, t.id, o)
		}
	case kit.SubmitTimer:
		if s := c.Submit(t.ID); s != nil && s.Tries < patientTries {
			s.Site += len(c.cfg.Layout.Sites) - 1 // Send asks the next one
			c.Send(env, s)
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
	full := len(c.open)+c.Waiting() >= c.cfg.MaxWaiting
	switch m := msg.(type) {
	case store.Get:
		ask := store.DeclareRequest{ID: store.TxnID{Time: 1}, Reads: []store.Key{m.Key}, Step: 1}
		if full || ask.Validate() != nil {
			env.Send(protocol.App, store.Got{Ref: m.Ref, Full: full})
			return
		}
		c.begin(env, &opened{ref: m.Ref, get: true}, []store.Key{m.Key})
	case store.Declare:
		ask := store.DeclareRequest{ID: store.TxnID{Time: 1}, Reads: m.Reads, Writes: m.Writes, Step: 1}
		o := c.open[c.refs[m.Begun]]
		switch {
		case full && m.Begun == 0, ask.Validate() != nil, m.Begun != 0 && o == nil:
			env.Send(protocol.App, store.Declared{Ref: m.Ref})
		case m.Begun != 0:
			c.step(env, c.refs[m.Begun], o, m.Ref, m.Reads)
		default:
			c.begin(env, &opened{ref: m.Ref}, m.Reads)
		}
	case store.Submit:
		c.submit(env, m)
	}
}

// begin begins a transaction by reading some keys.
func (c *client) begin(env *protocol.Env[store.Message], o *opened, reads []store.Key) {
	id := c.newID(env)
	o.site = c.Home()
	c.open[id], c.refs[o.ref] = o, id
	c.step(env, id, o, o.ref, reads)
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
	s := &wanting{ref: ref, ask: store.DeclareRequest{ID: id, Reads: reads, Step: uint32(len(o.steps) + 1),
		At: o.at}}
	if len(o.steps) == 0 {
		s.ask.NotBefore = c.seen
	}
	o.steps = append(o.steps, s)
	if len(reads) == 0 && s.ask.Step > 1 {
		s.answered = true
		env.Send(protocol.App, store.Declared{Ref: ref, OK: true})
		return
	}
	s.tries++
	env.Send(c.cfg.Layout.Coordinator(o.site, id), s.ask)
	env.After(c.cfg.RoundTrip, beatTimer{id})
}

// beat asks for what was not answered, or says that the client is there.
func (c *client) beat(env *protocol.Env[store.Message], id store.TxnID, o *opened) {
	waits := false
	for _, s := range o.steps {
		if s.answered {
			continue
		}
		waits = true
		if s.tries++; s.tries > stepTries {
			c.Silent(o.site, stepTries*c.cfg.RoundTrip)
			c.FindHome(env)
			c.abandon(env, id)
			return
		}
		env.Send(c.cfg.Layout.Coordinator(o.site, id), s.ask)
	}
	if waits {
		env.After(c.cfg.RoundTrip, beatTimer{id})
		return
	}
	here := o.steps[0].ask
	here.At = o.at
	env.Send(c.cfg.Layout.Coordinator(o.site, id), here)
	env.After(beatTrips*c.cfg.RoundTrip, beatTimer{id})
}

// onReply takes what a step has read.
func (c *client) onReply(env *protocol.Env[store.Message], m store.DeclareReply) {
	o := c.open[m.ID]
	if o == nil || m.Step == 0 || int(m.Step) > len(o.steps) || o.steps[m.Step-1].answered {
		return
	}
	s := o.steps[m.Step-1]
	switch {
	case len(m.Values) == 0 && m.At > 0: // its coordinator is at it
		s.tries = 0
		return
	case len(m.Values) == 0: // it cannot go on
		c.close(env, m.ID)
		return
	case len(m.Values) != len(s.ask.Reads) || m.At >= maxSeen:
		return
	}
	if o.at != 0 && m.At != o.at { // its coordinator has begun it anew
		c.abandon(env, m.ID)
		return
	}
	s.answered, o.at = true, m.At
	c.seen = max(c.seen, m.At)
	switch {
	case o.then != nil:
		c.commit(env, m.ID, o, *o.then)
	case o.get:
		v := m.Values[0]
		c.abandon(env, m.ID)
		env.Send(protocol.App, store.Got{Ref: o.ref, OK: !v.Large, Value: v.Value, Site: int(v.Site)})
	default:
		env.Send(protocol.App, store.Declared{Ref: s.ref, OK: true, Values: m.Values, At: m.At})
	}
}

// submit commits a transaction. One that has read nothing begins first, so that it comes behind
// what its session has seen.
func (c *client) submit(env *protocol.Env[store.Message], m store.Submit) {
	id, begun := c.refs[m.Begun]
	switch {
	case begun:
		c.commit(env, id, c.open[id], m)
	case len(m.Reads)+len(m.Writes) == 0 || store.ValidAccesses(m.Reads, m.Writes) != nil:
		c.AddSubmitAs(env, m, c.newID(env), new(submit)) // which answers it
	case len(m.Reads) > 0 || m.Begun != 0: // what it has read is of no snapshot that is known
		env.Send(protocol.App, c.unsent(env, m, store.StaleRead))
	default:
		c.begin(env, &opened{ref: m.Ref, then: &m}, []store.Key{m.Writes[0].Key})
	}
}

// unsent is the end of a transaction that was not sent to anybody, and will not be.
func (c *client) unsent(env *protocol.Env[store.Message], m store.Submit, why store.Reason) store.Done {
	return store.Done{Ref: m.Ref, Txn: store.Txn{ID: c.newID(env), Priority: m.Priority, Reads: m.Reads, Writes: m.Writes},
		Outcome: store.Outcome{Verdict: store.Aborted, Reason: why}, Site: store.NoSite}
}

// commit has the coordinator at which a transaction has begun commit it.
func (c *client) commit(env *protocol.Env[store.Message], id store.TxnID, o *opened, m store.Submit) {
	s := new(submit)
	if !c.AddSubmitAs(env, m, id, s) {
		c.abandon(env, id)
		return
	}
	o.then = nil
	c.close(env, id)
	s.Site = o.site
	c.Send(env, s)
}

// abandon ends a transaction that is not submitted.
func (c *client) abandon(env *protocol.Env[store.Message], id store.TxnID) {
	if o := c.open[id]; o != nil {
		env.Send(c.cfg.Layout.Coordinator(o.site, id), store.AbandonRequest{ID: id})
		c.close(env, id)
	}
}

// close forgets that a transaction has begun, and says so to who waits for what it reads.
func (c *client) close(env *protocol.Env[store.Message], id store.TxnID) {
	o := c.open[id]
	delete(c.open, id)
	delete(c.refs, o.ref)
	env.Stop(beatTimer{id})
	for _, s := range o.steps {
		switch {
		case s.answered:
		case o.get:
			env.Send(protocol.App, store.Got{Ref: s.ref})
		case o.then != nil:
			env.Send(protocol.App, c.unsent(env, *o.then, store.Overloaded))
		default:
			env.Send(protocol.App, store.Declared{Ref: s.ref})
		}
	}
}

package carousel

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// declareTries is how often a client asks for the values of what it has declared. It reads in
// another way then.
const declareTries = 6

// homeTimer is when a client that found nobody near begins with what was declared all the same.
type homeTimer struct{}

// client is the node of an application. It reads from a partition's leader, or a majority of its
// servers if these are faster (see suffices), and has the agent of one site commit, or of another
// one if that does not answer.
type client struct {
	kit.NearestCalls[*get, *submit]
	cfg    store.Config
	direct bool
	name   uint64 // of the next transaction; random at first, so that no two share one
	begun  kit.Begun[*opened]
	// early are declared while it does not know yet which site is near: nothing is lost by waiting
	// for that, as the nearest one answers first.
	early []store.Declare
	looks bool // for the nearest site, and has no answer yet
	seen  session
}

// get is a read that lacks answers.
type get struct {
	kit.Get
	queued int // how often the leader has said that it is not its turn
}

// maxQueued is how often a read takes it that it is not its turn. After that it goes by what it is
// told.
const maxQueued = 64

// opened is a transaction that was declared and is not submitted yet.
type opened struct {
	kit.Opened
	// reached is the number of the last step that its code has reached after it had begun.
	reached uint32
}

// submit is a transaction that lacks its outcome.
type submit struct{ kit.Submit }

// newClient returns a client. The error names the field of the configuration that is wrong.
func newClient(cfg store.Config, mode variant) (*client, error) {
	calls, cfg, err := kit.NewNearestCalls("carousel", cfg, func() *get { return new(get) },
		func() *submit { return new(submit) })
	if err != nil {
		return nil, err
	}
	return &client{NearestCalls: calls, cfg: cfg, direct: mode == directMode,
		seen: session{newest: map[store.Key]uint64{}}, begun: kit.NewBegun(cfg.Layout, refuse)}, nil
}

// refuse tells the application that it does not get the values of what it has declared.
func refuse(env *protocol.Env[store.Message], _ *opened, s *kit.Step) {
	env.Send(protocol.App, store.Declared{Ref: s.Ref})
}

// Start implements protocol.Node.
func (c *client) Start(env *protocol.Env[store.Message], _ []protocol.Record[store.Message]) {
	c.NearestCalls.Start(env, nil)
	c.name = uint64(c.ID)
}

// Receive implements protocol.Node.
func (c *client) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	switch m := msg.(type) {
	case store.Declare:
		c.onDeclare(env, m)
	case store.Abandon:
		c.drop(env, m.Ref)
		id, _ := c.begun.By(m.Ref)
		c.begun.Abandon(env, id)
	case store.DeclareReply:
		c.onDeclared(env, m)
	case store.Submit:
		c.onSubmit(env, m)
	case store.Cancel:
		c.onCancel(env, m)
	case store.ReadReply:
		c.onReadReply(env, from, m)
	case store.Decided:
		if s := c.Submit(m.ID); s != nil {
			for _, w := range s.Txn.Writes {
				c.seen.saw(w.Key, m.Version)
			}
		}
		c.NearestCalls.Receive(env, from, m)
	case store.Busy:
		if o := c.begun.Of(m.ID); o != nil && o.Waits() && c.Submit(m.ID) == nil {
			c.begun.Close(env, m.ID)
			return
		}
		c.NearestCalls.Receive(env, from, m)
	default:
		c.NearestCalls.Receive(env, from, msg)
	}
}

// Expire implements protocol.Node.
func (c *client) Expire(env *protocol.Env[store.Message], t protocol.Timer) {
	switch t := t.(type) {
	case homeTimer:
		c.beginEarly(env)
	case kit.GetTimer:
		if g := c.Get(t.Number); g != nil {
			c.read(env, g)
		}
	case kit.BeatTimer:
		if o := c.begun.Of(t.ID); o != nil {
			c.beat(env, t.ID, o)
		}
	case kit.SubmitTimer:
		if c.Submit(t.ID) != nil {
			c.NearestCalls.Expire(env, t)
			c.look(env) // as for what was declared: see beat
		}
	default:
		c.NearestCalls.Expire(env, t)
	}
}

// read asks all sites that have not answered.
func (c *client) read(env *protocol.Env[store.Message], g *get) {
	if !g.Tired(env.Now) && c.suffices(g, g.Tries+1) {
		out, _ := g.Answered()
		c.seen.saw(g.Ask.Key, out.Value.Version)
		c.EndGet(env, g, out)
		return
	}
	c.Read(env, g)
}

func (c *client) onReadReply(env *protocol.Env[store.Message], from protocol.ID, m store.ReadReply) {
	if c.Found(env, from, m) {
		env.Stop(homeTimer{})
		c.beginEarly(env)
		return
	}
	g, p := c.GetOf(from, m)
	if g == nil {
		return
	}
	if m.Queued && g.queued < maxQueued {
		// What there is would be out of date. To ask again keeps the reservation.
		g.queued++
		g.Begun = env.Now
		env.Send(from, store.ReadRequest{Ref: g.Number, Key: g.Ask.Key, Priority: g.Ask.Priority})
		env.After(c.ReadPatience(), kit.GetTimer{Number: g.Number})
		return
	}
	out, n := c.Heard(env, p, &g.Get, m)
	switch {
	case c.suffices(g, g.Tries):
		c.seen.saw(g.Ask.Key, out.Value.Version)
		c.EndGet(env, g, out)
	case n == 1:
		env.Send(protocol.App, g.First(p.Site))
	}
}

// suffices reports whether a read has the answers that it needs: at first that of the site that
// leads the partition, or those of a majority, or in mode direct that of any site, as the commit
// says whether it is old. Who tries again needs both of the former, unless the site that leads is
// silent: it may lead no more, and be the last to know. tries is how often sites were asked.
func (c *client) suffices(g *get, tries int) bool {
	shard := c.cfg.Layout.ShardOf(g.Ask.Key)
	_, n := g.Answered()
	majority := n > len(c.cfg.Layout.HoldersOf(shard))/2
	led := g.Answers[c.cfg.Layout.FirstOf(shard)] != nil
	switch {
	case g.Ask.Nearest, c.direct && g.Ask.Priority.IsZero():
		return n > 0
	case g.Ask.Priority.IsZero():
		return majority || led
	}
	return majority && (led || tries > 1)
}

// onDeclare begins a transaction whose keys are known, or goes on with one whose code has reached
// further ones.
func (c *client) onDeclare(env *protocol.Env[store.Message], m store.Declare) {
	full := c.begun.Len()+len(c.early)+c.Waiting() >= c.cfg.MaxWaiting
	ask := store.DeclareRequest{ID: store.TxnID{Time: 1}, Reads: m.Reads, Writes: m.Writes, MaxAge: m.MaxAge, At: m.At}
	if m.General || m.Begun != 0 {
		ask.Step = 1
	}
	if full && m.Begun == 0 || m.At > 0 && c.seen.hides(m.At, m.Reads) || ask.Validate() != nil {
		env.Send(protocol.App, store.Declared{Ref: m.Ref})
		return
	}
	if m.Begun != 0 {
		c.reach(env, m)
		return
	}
	if !c.Lost() && !c.looks {
		c.begin(env, m)
		return
	}
	c.early = append(c.early, m)
	c.look(env)
}

// look finds out which site is near. What is declared meanwhile waits for that, but not for long.
func (c *client) look(env *protocol.Env[store.Message]) {
	if c.looks {
		return
	}
	c.looks = true
	c.FindHome(env)
	env.After(c.cfg.RoundTrip, homeTimer{})
}

// beginEarly begins what waited for a site that is near.
func (c *client) beginEarly(env *protocol.Env[store.Message]) {
	early := c.early
	c.early, c.looks = nil, false
	for _, m := range early {
		c.begin(env, m)
	}
}

// drop forgets what waits for a site that is near.
func (c *client) drop(env *protocol.Env[store.Message], ref uint64) {
	c.early = slices.DeleteFunc(c.early, func(m store.Declare) bool {
		if m.Ref != ref {
			return false
		}
		env.Send(protocol.App, store.Declared{Ref: ref})
		return true
	})
}

// begin has the agent of the nearest site prepare and read what was declared.
func (c *client) begin(env *protocol.Env[store.Message], m store.Declare) {
	id := c.newID(env, m.Reads, m.Writes)
	first := &kit.Step{Ref: m.Ref, Ask: store.DeclareRequest{ID: id, Reads: m.Reads, Writes: m.Writes,
		Serializable: m.Serializable, MaxAge: m.MaxAge, At: m.At, Priority: m.Priority}}
	o := &opened{Opened: kit.Opened{Ref: m.Ref, Site: c.Home(), Steps: []*kit.Step{first}}}
	if m.MaxAge > 0 {
		first.Ask.NotBefore = c.seen.of(m.Reads)
	}
	if m.General {
		o.reached, first.Ask.Step = 1, 1
	}
	c.begun.Add(id, o)
	c.beat(env, id, o)
}

// reach has the agent prepare what a transaction's code has reached since it was begun, if it goes
// on still.
func (c *client) reach(env *protocol.Env[store.Message], m store.Declare) {
	id, o := c.begun.By(m.Begun)
	if o == nil || o.reached == store.MaxSteps {
		env.Send(protocol.App, store.Declared{Ref: m.Ref})
		return
	}
	o.reached++
	s := &kit.Step{Ref: m.Ref, Tries: 1, Ask: store.DeclareRequest{ID: id, Reads: m.Reads, Writes: m.Writes,
		Step: o.reached, Priority: o.Steps[0].Ask.Priority}}
	o.Steps = append(o.Steps, s)
	c.begun.Tell(env, id, s.Ask)
}

// beat asks the agent for the values, and says that the client is there.
func (c *client) beat(env *protocol.Env[store.Message], id store.TxnID, o *opened) {
	if !o.Waits() {
		c.begun.Tell(env, id, o.Steps[0].Ask)
	}
	for _, s := range o.Steps {
		if s.Answered {
			continue
		}
		if s.Tries++; s.Tries > declareTries {
			// Either the site is away, or its agent waits for others itself, such as for a partition
			// that has no leader. The site's servers say which. What is declared until they do would
			// go to the next site, which may be the one that is away.
			c.Silent(o.Site, declareTries*c.cfg.RoundTrip)
			c.look(env)
			c.begun.Abandon(env, id)
			return
		}
		c.begun.Tell(env, id, s.Ask)
	}
	env.After(c.cfg.RoundTrip, kit.BeatTimer{ID: id})
}

func (c *client) onDeclared(env *protocol.Env[store.Message], m store.DeclareReply) {
	o := c.begun.Of(m.ID)
	if o == nil {
		return
	}
	i := slices.IndexFunc(o.Steps, func(s *kit.Step) bool { return s.Ask.Step == m.Step })
	if i < 0 || o.Steps[i].Answered {
		return
	}
	s := o.Steps[i]
	switch {
	case s.Ask.At > 0 && len(m.Values) == 0: // what it has begun cannot go on
		c.begun.Close(env, m.ID)
		return
	case len(m.Values) != len(s.Ask.Reads) || s.Ask.At > 0 && m.At != s.Ask.At:
		return
	}
	s.Answered = true
	c.seen.sawAt(m.At)
	for i, v := range m.Values {
		c.See(v.Value.Version.Time)
		c.seen.saw(s.Ask.Reads[i], v.Value.Version)
	}
	env.Send(protocol.App, store.Declared{Ref: s.Ref, OK: true, Values: m.Values, At: m.At, Age: m.Age})
	if len(s.Ask.Writes) == 0 && s.Ask.Step == 0 {
		c.begun.Close(env, m.ID) // it is over
	}
}

// newID returns the ID of a transaction with these keys, which says who coordinates it.
func (c *client) newID(env *protocol.Env[store.Message], reads, writes []store.Key) store.TxnID {
	id := c.NextID(env.Now)
	c.name++
	id.Client = nameOf(c.name, c.coordinator(reads, writes))
	return id
}

func (c *client) onSubmit(env *protocol.Env[store.Message], m store.Submit) {
	c.drop(env, m.Begun)
	c.SeeAll(m.Reads)
	var reads, writes []store.Key
	for _, r := range m.Reads {
		reads = append(reads, r.Key)
	}
	for _, w := range m.Writes {
		writes = append(writes, w.Key)
	}
	id, o := c.begun.By(m.Begun)
	site := c.Home()
	if o != nil {
		site = o.Site
	} else {
		id = c.newID(env, reads, writes)
	}
	switch s := new(submit); {
	case c.AddSubmitAs(env, m, id, s):
		if o != nil {
			c.begun.Close(env, id)
		}
		s.Site = site
		c.Send(env, s)
	default: // there is nothing to commit, or not so: what was declared is not to wait for that
		c.begun.Abandon(env, id)
	}
}

// coordinator returns the partition whose group is to coordinate a transaction: one without keys
// that is led at the client's site, else one of the transaction's own that is, else any that is,
// else the first of its own [Carousel §3.1.3].
func (c *client) coordinator(reads, writes []store.Key) uint32 {
	l, home := c.cfg.Layout, c.Home()
	for k := len(l.Sites[0].Shards) - l.Keyless; k < len(l.Sites[0].Shards); k++ {
		if l.FirstOf(k) == home {
			return uint32(k)
		}
	}
	own := func(key store.Key, best int) int {
		if k := l.ShardOf(key); best < 0 || l.FirstOf(k) == home && l.FirstOf(best) != home {
			return k
		}
		return best
	}
	best := -1
	for _, k := range reads {
		best = own(k, best)
	}
	for _, k := range writes {
		best = own(k, best)
	}
	if best >= 0 && l.FirstOf(best) == home {
		return uint32(best)
	}
	for k := range l.Sites[0].Shards {
		if l.FirstOf(k) == home {
			return uint32(k)
		}
	}
	return uint32(max(best, 0))
}

// onCancel forgets a call.
func (c *client) onCancel(env *protocol.Env[store.Message], m store.Cancel) {
	c.drop(env, m.Ref)
	if id, o := c.begun.By(m.Ref); o != nil {
		c.begun.Abandon(env, id)
		return
	}
	c.NearestCalls.Receive(env, protocol.App, m)
}

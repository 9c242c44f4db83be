package kit

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A client gives a call up when it has asked Tries times and AskFor is over: a machine may be busy,
// however near it is.
const (
	Tries  = 6
	AskFor = 3 * time.Second
)

// maxTime bounds versions that are believed, so that the next one is always above.
const maxTime = 1 << 63

// Calls are the books of a client's node: the application's reads and transactions that are not
// answered. A client embeds them. G and S are pointers to what its protocol keeps about a read and
// about a transaction, structs that embed [Get] and [Submit].
type Calls[G interface{ get() *Get }, S interface{ submit() *Submit }] struct {
	ID store.ClientID // of this incarnation

	cfg          store.Config
	shards       map[protocol.ID]store.Place
	coordinators map[protocol.ID]store.Place
	last         uint64 // Invariant: the next version's time is above it
	n            uint64 // of reads
	gets         map[uint64]G
	getRefs      map[uint64]uint64 // numbers of gets, by the application's
	submits      map[store.TxnID]S
	submitRefs   map[uint64]store.TxnID // of submits, likewise
}

// A Get is a read that lacks answers.
type Get struct {
	Number  uint64 // the Ref of its ReadRequests
	Ask     store.Get
	Answers []*store.ReadReply // by site
	Tries   int                // how often the protocol has asked: it counts
	Begun   time.Duration
}

func (g *Get) get() *Get { return g }

// Tired reports whether the read is to be given up.
func (g *Get) Tired(now time.Duration) bool { return g.Tries >= Tries && now-g.Begun >= AskFor }

// A Submit is a transaction that lacks its outcome.
type Submit struct {
	Txn   store.Txn
	Tries int // how often the protocol has asked: it counts
	Site  int // whose coordinator it has asked, if it is one that asks one
	Begun time.Duration
	// Serializable and Explain are as in the Submit.
	Serializable, Explain bool
	// Ask makes what the coordinator is asked of a CommitRequest; nil: it is asked that.
	Ask func(store.CommitRequest) store.Message
	// Ends reports whether the transaction may end like that; nil: it may. If not, the protocol
	// ends it again later.
	Ends func(env *protocol.Env[store.Message], done store.Done) bool
	refs []uint64 // the first one, and those who asked for the outcome meanwhile
}

func (s *Submit) submit() *Submit { return s }

// Request returns what the coordinator is asked.
func (s *Submit) Request() store.Message {
	m := store.CommitRequest{Txn: s.Txn, Recover: s.Tries > 1, Serializable: s.Serializable, Explain: s.Explain}
	if s.Ask != nil {
		return s.Ask(m)
	}
	return m
}

// Ref returns the application's number of the call that has submitted it.
func (s *Submit) Ref() uint64 { return s.refs[0] }

// Tired reports whether the transaction is to be given up.
func (s *Submit) Tired(now time.Duration) bool { return s.Tries >= Tries && now-s.Begun >= AskFor }

// Unanswered returns the outcome of a transaction whose decision does not come.
func (s *Submit) Unanswered() store.Outcome {
	if s.Txn.ReadOnly() {
		return store.Outcome{Verdict: store.Aborted} // it has no effect that could be
	}
	return store.Outcome{Verdict: store.Unknown}
}

// Outcome returns what a coordinator's word means: its Unknown says no more than no word does.
func (s *Submit) Outcome(m store.Decided) store.Outcome {
	if m.Verdict == store.Unknown {
		return store.Outcome{Verdict: s.Unanswered().Verdict, Reason: m.Reason}
	}
	return store.Outcome{Verdict: m.Verdict, Reason: m.Reason, Fast: m.Fast, Held: m.Held, Course: m.Course}
}

// The timers of a client, which the protocol sets and the books stop: when a read, or a
// transaction, is asked for again.
type (
	GetTimer    struct{ Number uint64 }
	SubmitTimer struct{ ID store.TxnID }
)

// NewCalls returns the books of a client whose configuration has its defaults. The error names the
// field that is wrong.
func NewCalls[G interface{ get() *Get }, S interface{ submit() *Submit }](cfg store.Config) (Calls[G, S], error) {
	c := Calls[G, S]{
		cfg: cfg, gets: map[uint64]G{}, getRefs: map[uint64]uint64{}, submits: map[store.TxnID]S{},
		submitRefs: map[uint64]store.TxnID{},
	}
	c.shards, c.coordinators = cfg.Layout.Places()
	if _, ok := c.shards[cfg.ID]; ok {
		return c, fmt.Errorf("Config.ID: %d is a shard of the layout", cfg.ID)
	}
	if _, ok := c.coordinators[cfg.ID]; ok {
		return c, fmt.Errorf("Config.ID: %d is a coordinator of the layout", cfg.ID)
	}
	return c, nil
}

// Begin gives the incarnation its ID, when the node starts.
func (c *Calls[G, S]) Begin(env *protocol.Env[store.Message]) {
	c.ID = store.ClientID(env.Rand.Uint64())
}

// Coordinator returns the place of a node that is a coordinator.
func (c *Calls[G, S]) Coordinator(id protocol.ID) (store.Place, bool) {
	p, ok := c.coordinators[id]
	return p, ok
}

// See keeps the next version above one that somebody has.
func (c *Calls[G, S]) See(time uint64) {
	if time < maxTime {
		c.last = max(c.last, time)
	}
}

// SeeAll keeps the next version above those of what was read.
func (c *Calls[G, S]) SeeAll(reads []store.Read) {
	for _, r := range reads {
		c.See(r.Version.Time)
	}
}

// Seen returns a time that the next version is above.
func (c *Calls[G, S]) Seen() uint64 { return c.last }

// NextID returns the ID of a new transaction: a version above all that the client has seen.
func (c *Calls[G, S]) NextID(now time.Duration) store.TxnID {
	c.last = max(c.last+1, uint64(max(now, 0)))
	return store.TxnID{Time: c.last, Client: c.ID}
}

// AddGet takes a read, which the protocol then asks for. It answers one that cannot be asked for,
// and returns false.
func (c *Calls[G, S]) AddGet(env *protocol.Env[store.Message], m store.Get, own G) bool {
	if full := len(c.gets) >= c.cfg.MaxWaiting; full || len(m.Key) > store.MaxKeyBytes {
		env.Send(protocol.App, store.Got{Ref: m.Ref, Full: full})
		return false
	}
	c.n++
	*own.get() = Get{
		Number: c.n, Ask: m, Answers: make([]*store.ReadReply, len(c.cfg.Layout.Sites)), Begun: env.Now,
	}
	c.gets[c.n], c.getRefs[m.Ref] = own, c.n
	return true
}

// Get returns the read of a number, nil if there is none.
func (c *Calls[G, S]) Get(number uint64) G { return c.gets[number] }

// GetOf returns the read that a reply is about, and where the reply comes from; nil if nobody waits
// for it.
func (c *Calls[G, S]) GetOf(from protocol.ID, m store.ReadReply) (own G, p store.Place) {
	p, ok := c.shards[from]
	own, found := c.gets[m.Ref]
	if !ok || !found || own.get().Answers[p.Site] != nil || p.Index != c.cfg.Layout.ShardOf(own.get().Ask.Key) {
		var none G
		return none, p
	}
	return own, p
}

// Ask has all sites asked that hold the key and have not answered, once more.
func (c *Calls[G, S]) Ask(env *protocol.Env[store.Message], g *Get) {
	g.Tries++
	shard := c.cfg.Layout.ShardOf(g.Ask.Key)
	for _, i := range c.cfg.Layout.HoldersOf(shard) {
		if g.Answers[i] == nil {
			env.Send(c.cfg.Layout.Sites[i].Shards[shard],
				store.ReadRequest{Ref: g.Number, Key: g.Ask.Key, Priority: g.Ask.Priority})
		}
	}
}

// Answer adds a site's answer to a read, and returns what all that have come say, and how many they
// are.
func (g *Get) Answer(site int, m store.ReadReply) (out store.Got, n int) {
	g.Answers[site] = &m
	out, n = g.Answered()
	out.Site = site
	return out, n
}

// Answered returns what all answers that have come say, and how many they are. Its Site is one of
// theirs.
func (g *Get) Answered() (out store.Got, n int) {
	out = store.Got{Ref: g.Ask.Ref, OK: true, Site: store.NoSite}
	for site, a := range g.Answers {
		if a == nil {
			continue
		}
		n++
		out.Site = site
		out.Pending = out.Pending || a.Pending
		if n == 1 || a.Value.Version.After(out.Value.Version) {
			out.Value = a.Value
		}
	}
	return out, n
}

// First returns what the application is told of the first answer, if that is not enough.
func (g *Get) First(site int) store.First {
	a := g.Answers[site]
	return store.First{Ref: g.Ask.Ref, Value: a.Value, Pending: a.Pending, Site: site}
}

// EndGet answers a read, and forgets it.
func (c *Calls[G, S]) EndGet(env *protocol.Env[store.Message], own G, out store.Got) {
	c.ForgetGet(env, own)
	c.AnswerGet(env, own, out)
}

// AnswerGet answers a read, and keeps it for what sites say later, until ForgetGet.
func (c *Calls[G, S]) AnswerGet(env *protocol.Env[store.Message], own G, out store.Got) {
	delete(c.getRefs, own.get().Ask.Ref)
	out.Ref = own.get().Ask.Ref
	env.Send(protocol.App, out)
}

// ForgetGet forgets a read.
func (c *Calls[G, S]) ForgetGet(env *protocol.Env[store.Message], own G) {
	g := own.get()
	if c.getRefs[g.Ask.Ref] == g.Number {
		delete(c.getRefs, g.Ask.Ref)
	}
	delete(c.gets, g.Number)
	env.Stop(GetTimer{g.Number})
}

// AddSubmit takes a transaction, which the protocol then sends. It answers one that cannot be sent,
// and returns false.
func (c *Calls[G, S]) AddSubmit(env *protocol.Env[store.Message], m store.Submit, own S) bool {
	c.SeeAll(m.Reads)
	return c.AddSubmitAs(env, m, c.NextID(env.Now), own)
}

// AddSubmitAs is AddSubmit of a transaction whose ID the protocol chooses.
func (c *Calls[G, S]) AddSubmitAs(env *protocol.Env[store.Message], m store.Submit, id store.TxnID, own S) bool {
	t := store.Txn{ID: id, Priority: m.Priority, Reads: m.Reads, Writes: m.Writes}
	if t.Priority.IsZero() {
		t.Priority = store.Priority{Began: t.ID.Time, Client: t.ID.Client}
	}
	if !c.add(env, m.Ref, t, own, store.Rejected) {
		return false
	}
	own.submit().Serializable, own.submit().Explain = m.Serializable, m.Explain
	return true
}

// AddQuery takes a question for the outcome of a transaction, which the protocol then sends: it may
// have been sent before. It returns false for one that is on its way, whose outcome answers the
// question, too, and for one that cannot be sent, which it answers.
func (c *Calls[G, S]) AddQuery(env *protocol.Env[store.Message], m store.Query, own S) bool {
	if s, ok := c.submits[m.Txn.ID]; ok {
		s.submit().refs = append(s.submit().refs, m.Ref)
		c.submitRefs[m.Ref] = m.Txn.ID
		return false
	}
	// whatever is wrong with the question, the transaction may have been sent before
	return c.add(env, m.Ref, m.Txn, own, store.Unknown)
}

// add takes a transaction. What cannot be sent has the given end.
func (c *Calls[G, S]) add(
	env *protocol.Env[store.Message], ref uint64, t store.Txn, own S, refused store.Verdict,
) bool {
	o := store.Outcome{Verdict: refused}
	err := t.Validate()
	switch {
	case err != nil:
		o.Detail = err.Error()
	case len(c.submits) >= c.cfg.MaxWaiting:
		o.Detail = fmt.Sprintf("%d transactions are on their way", len(c.submits))
	case len(t.Reads)+len(t.Writes) == 0:
		o.Verdict = store.Committed
	default:
		*own.submit() = Submit{Txn: t, Begun: env.Now, refs: []uint64{ref}}
		c.submits[t.ID], c.submitRefs[ref] = own, t.ID
		return true
	}
	env.Send(protocol.App, store.Done{Ref: ref, Txn: t, Outcome: o, Site: store.NoSite})
	return false
}

// Submit returns the transaction of an ID, nil if there is none.
func (c *Calls[G, S]) Submit(id store.TxnID) S { return c.submits[id] }

// SubmitBy returns the transaction that a call of the application's is about, nil if there is none.
func (c *Calls[G, S]) SubmitBy(ref uint64) S { return c.submits[c.submitRefs[ref]] }

// Submits yields the transactions, in order of their IDs.
func (c *Calls[G, S]) Submits() iter.Seq[S] {
	return func(yield func(S) bool) {
		for _, id := range slices.SortedFunc(maps.Keys(c.submits), func(a, b store.TxnID) int {
			return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Client, b.Client))
		}) {
			if !yield(c.submits[id]) {
				return
			}
		}
	}
}

// Waiting returns how many transactions there are.
func (c *Calls[G, S]) Waiting() int { return len(c.submits) }

// Rename gives a transaction another ID, so that it is another one to the store, with the same
// reads and writes. The protocol sends it.
func (c *Calls[G, S]) Rename(env *protocol.Env[store.Message], own S, id store.TxnID) {
	s := own.submit()
	delete(c.submits, s.Txn.ID)
	env.Stop(SubmitTimer{s.Txn.ID})
	s.Txn.ID, s.Tries = id, 0
	c.submits[id] = own
	for _, ref := range s.refs {
		c.submitRefs[ref] = id
	}
}

// EndSubmit tells all who wait for a transaction how it ended, and forgets it.
func (c *Calls[G, S]) EndSubmit(env *protocol.Env[store.Message], own S, done store.Done) {
	s := own.submit()
	if done.Txn = s.Txn; s.Ends != nil && !s.Ends(env, done) {
		return
	}
	delete(c.submits, s.Txn.ID)
	env.Stop(SubmitTimer{s.Txn.ID})
	for _, ref := range s.refs {
		delete(c.submitRefs, ref)
		done.Ref = ref
		env.Send(protocol.App, done)
	}
}

// Cancel forgets a call. It returns the transaction for which nobody waits any more, which the
// protocol is to end, or nil: others that wait for the same transaction go on waiting.
func (c *Calls[G, S]) Cancel(env *protocol.Env[store.Message], m store.Cancel) (own S) {
	if n, ok := c.getRefs[m.Ref]; ok {
		c.ForgetGet(env, c.gets[n])
	}
	found, ok := c.submits[c.submitRefs[m.Ref]]
	if !ok {
		return own
	}
	s := found.submit()
	if len(s.refs) == 1 {
		return found
	}
	s.refs = slices.DeleteFunc(s.refs, func(ref uint64) bool { return ref == m.Ref })
	delete(c.submitRefs, m.Ref)
	env.Send(protocol.App, store.Done{Ref: m.Ref, Txn: s.Txn, Outcome: s.Unanswered(), Site: store.NoSite})
	return own
}

// Check returns what is wrong with the books, or nil.
func (c *Calls[G, S]) Check() error {
	refs := 0
	for own := range c.Submits() {
		s := own.submit()
		refs += len(s.refs)
		for _, ref := range s.refs {
			if s.Tries < 1 || c.submitRefs[ref] != s.Txn.ID {
				return fmt.Errorf("store: client %d: transaction %v, numbered %d for %v, was tried %d times", c.cfg.ID, s.Txn.ID,
					ref, c.submitRefs[ref], s.Tries)
			}
		}
	}
	if len(c.gets) < len(c.getRefs) || refs != len(c.submitRefs) {
		return fmt.Errorf("store: client %d: %d reads and %d calls for transactions wait, numbered as %d and %d", c.cfg.ID,
			len(c.gets), refs, len(c.getRefs), len(c.submitRefs))
	}
	return nil
}

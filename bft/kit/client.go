package kit

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/sessions"
	"github.com/foresay/foresay/protocol"
)

// Client is a session of a client: its calls, the requests in which they are sent, and its
// optimised reads. O is what a protocol keeps of an operation.
type Client[O any] struct {
	Config  bft.ClientConfig // with its defaults
	Dir     *Epoch           // that it knows
	Session bft.SessionID
	Open    map[bft.Number]*Operation[O] // that are sent and not done
	Tick    int

	st       *Statements
	last     bft.Number
	acked    bft.Number
	queue    []*Operation[O] // that have no number yet
	requests []*sent
	bytes    int // of these
	calls    map[bft.CallID]*Operation[O]
	ended    []bft.CallID // in calls, in order
	reads    map[bft.CallID]*read
	asked    map[protocol.ID]int // the tick in which a member was asked how the epoch has ended
	awaited  bft.Epoch           // which a change of this client's begins
	near     []int               // members, in the order in which they answered a read
}

// Operation is a call that is ordered.
type Operation[O any] struct {
	Call   bft.Call
	Number bft.Number
	// Results are those of which somebody has sent more than the digest.
	Results map[bft.Digest]bft.Result
	Own     O
	done    bool
	digest  bft.Digest // of the result, if done
	outcome bft.Outcome
}

// sent is a request, which is sent again until all of it is done.
type sent struct {
	request bft.Signed[bft.Request]
	at      int // a tick
	times   int
}

type read struct {
	call   bft.Call
	at     int
	said   []bft.Digest // by member
	spoke  []bool
	order  []int // members, as they spoke
	values map[bft.Digest]bft.Result
}

// FlushTimer is the timer by which calls of one moment are sent at once.
type FlushTimer struct{}

const (
	maxEnded     = 4 * sessions.Window
	readTicks    = 6
	resendTicks  = 8
	resendEvery  = 32 // at most
	sessionKeyOf = "session"
)

// Init makes a client of a protocol of that name, or returns an error that names the field that is
// wrong.
func (c *Client[O]) Init(name string, cfg bft.ClientConfig, st *Statements) error {
	if cfg.Directory == nil || cfg.Scheme == nil || cfg.Signer == nil {
		return fmt.Errorf("%s: ClientConfig: Directory, Scheme or Signer is nil", name)
	}
	if cfg.Directory.Clients[cfg.ID] != cfg.Signer.Key() {
		return fmt.Errorf("%s: ClientConfig.Signer: not the key of the client %d", name, cfg.ID)
	}
	var err error
	if cfg.Limits, err = cfg.Limits.WithDefaults(); err != nil {
		return fmt.Errorf("%s: ClientConfig: %w", name, err)
	}
	cfg.RoundTrip = cmp.Or(cfg.RoundTrip, defaultRoundTrip)
	*c = Client[O]{Config: cfg, Dir: Genesis(cfg.Directory), st: st, Open: map[bft.Number]*Operation[O]{},
		calls: map[bft.CallID]*Operation[O]{}, reads: map[bft.CallID]*read{}, asked: map[protocol.ID]int{}}
	return nil
}

// Start is part of protocol.Node.
func (c *Client[O]) Start(env *protocol.Env[bft.Message], _ []protocol.Record[bft.Message]) {
	if b, ok := env.Get([]byte(sessionKeyOf)); ok && len(b) == 8 {
		c.Session = bft.SessionID(binary.BigEndian.Uint64(b))
	}
	c.Session = max(c.Session, c.Config.Session) + 1
	env.Put([]byte(sessionKeyOf), binary.BigEndian.AppendUint64(nil, uint64(c.Session)))
	env.After(c.Config.RoundTrip/2, BeatTimer{})
}

// Member returns the place of a member, less than 0 of others.
func (c *Client[O]) Member(id protocol.ID) int {
	return slices.IndexFunc(c.Dir.Members, func(p bft.Party) bool { return p.ID == id })
}

// Expire is part of protocol.Node.
func (c *Client[O]) Expire(env *protocol.Env[bft.Message], t protocol.Timer) {
	switch t.(type) {
	case FlushTimer:
		c.flush(env)
	case BeatTimer:
		env.After(c.Config.RoundTrip/2, BeatTimer{})
		c.Tick++
		for _, s := range c.requests {
			if c.Tick-s.at >= min(resendTicks<<s.times, resendEvery) {
				s.at, s.times = c.Tick, s.times+1
				c.send(env, s, true)
			}
		}
		if c.awaited > c.Dir.Epoch && c.Tick%4 == 0 {
			c.AskForLinks(env)
		}
		for _, id := range c.lateReads() {
			c.order(env, c.reads[id].call)
			c.near = nil
			delete(c.reads, id)
		}
		c.flush(env)
	}
}

func (c *Client[O]) lateReads() []bft.CallID {
	var late []bft.CallID
	for _, id := range slices.Sorted(maps.Keys(c.reads)) {
		if c.Tick-c.reads[id].at >= readTicks {
			late = append(late, id)
		}
	}
	return late
}

// OtherEpoch reports whether a member speaks of another epoch than the client knows, which does not
// count. If it is a later one the member is asked how that has come.
func (c *Client[O]) OtherEpoch(env *protocol.Env[bft.Message], from protocol.ID, e bft.Epoch) bool {
	if at, ok := c.asked[from]; e > c.Dir.Epoch && (!ok || at < c.Tick) {
		c.asked[from] = c.Tick
		env.Send(from, LinksWanted{c.Dir.Epoch})
	}
	return e != c.Dir.Epoch
}

// AskForLinks asks all members how the epoch has ended, if it has.
func (c *Client[O]) AskForLinks(env *protocol.Env[bft.Message]) {
	for _, m := range c.Dir.Members {
		env.Send(m.ID, LinksWanted{c.Dir.Epoch})
	}
}

// OnLinks takes proofs that epochs have ended, and reports whether another one has begun. What was
// said in those before does not count any more, and what is under way is sent to the members of
// now.
func (c *Client[O]) OnLinks(env *protocol.Env[bft.Message], m Links) bool {
	before := c.Dir
	for i := range m.Links {
		if e, ok := c.Dir.Next(&m.Links[i]); ok {
			c.Dir = e
		}
	}
	if c.Dir == before {
		return false
	}
	for _, id := range slices.Sorted(maps.Keys(c.reads)) {
		c.order(env, c.reads[id].call)
	}
	clear(c.reads)
	clear(c.asked)
	c.near = nil // these are places among the members
	var none O
	for _, o := range c.Open { //pure:ok each by itself
		o.Own = none
	}
	for _, s := range c.requests {
		s.at = c.Tick
		c.send(env, s, true)
	}
	env.Send(protocol.App, bft.Turned{Directory: c.Dir.Directory})
	return true
}

// OnApp takes what the application says.
func (c *Client[O]) OnApp(env *protocol.Env[bft.Message], msg bft.Message) {
	switch m := msg.(type) {
	case bft.Call:
		c.OnCall(env, m)
	case LinksWanted:
		c.AskForLinks(env)
	}
}

// OnCall takes a call of the application.
func (c *Client[O]) OnCall(env *protocol.Env[bft.Message], call bft.Call) {
	c.orderNamed(env, call)
	// A read that goes around the order may miss writes of this client that are not confirmed, and
	// nobody judges its conditions.
	conditional := call.After != 0 || len(call.Assumes) > 0
	large := len(call.Command) > c.Config.Limits.Command
	if large || !call.Read || call.Members || c.Config.Ordered || conditional || len(c.Open)+len(c.queue) > 0 {
		c.order(env, call)
		return
	}
	n := len(c.Dir.Members)
	c.reads[call.ID] = &read{call: call, at: c.Tick, said: make([]bft.Digest, n), spoke: make([]bool, n),
		values: map[bft.Digest]bft.Result{}}
	tooLarge := bft.Result{Outcome: bft.Oversized} // which is known by its digest
	c.reads[call.ID].values[tooLarge.Digest()] = tooLarge
	for i, m := range c.Dir.Members {
		env.SendAhead(m.ID, ReadAsk{uint64(call.ID), call.Command, i == c.teller(call.ID)})
	}
}

// orderNamed has reads be ordered that a call names: replicas may answer a read that goes around
// the order differently, so it can be no condition.
func (c *Client[O]) orderNamed(env *protocol.Env[bft.Message], call bft.Call) {
	again := func(id bft.CallID) {
		if r := c.reads[id]; r != nil {
			delete(c.reads, id)
			c.order(env, r.call)
		}
	}
	again(call.After)
	for _, a := range call.Assumes {
		again(a.Call)
	}
}

// teller returns the member that is to answer a read in full: in turn one of the quorum that was
// first to answer another one, as the client would wait longer for one that is far away.
func (c *Client[O]) teller(id bft.CallID) int {
	if q := c.Dir.Quorum(); len(c.near) >= q {
		return c.near[int(id%bft.CallID(q))]
	}
	return int(id % bft.CallID(len(c.Dir.Members)))
}

func (c *Client[O]) order(env *protocol.Env[bft.Message], call bft.Call) {
	o := &Operation[O]{Call: call, Results: map[bft.Digest]bft.Result{}}
	c.calls[call.ID] = o
	if len(call.Command) > c.Config.Limits.Command {
		c.End(env, o, bft.Result{Outcome: bft.Oversized})
		return
	}
	c.queue = append(c.queue, o)
	env.After(0, FlushTimer{}) // with what else is called at this moment
}

// flush sends what has been called, as far as the session's window goes.
func (c *Client[O]) flush(env *protocol.Env[bft.Message]) {
	for len(c.queue) > 0 {
		r := bft.Request{Client: c.Config.ID, Session: c.Session, Acked: c.mayAck(), First: c.last + 1}
		bytes := 0
		for len(c.queue) > 0 && len(r.Operations) < bft.MaxOperations && c.last+2 < r.Acked+sessions.Window {
			o := c.queue[0]
			op, ok := c.operation(env, o)
			n := bytes + op.Bytes()
			if ok && (len(r.Operations) > 0 && n > c.Config.Limits.Request || c.filled(n)) {
				break
			}
			if c.queue = c.queue[1:]; !ok {
				continue
			}
			bytes = n
			c.last++
			o.Number = c.last
			c.Open[o.Number] = o
			r.Operations = append(r.Operations, op)
		}
		if len(r.Operations) == 0 {
			return
		}
		s := &sent{request: c.st.Requests.Sign(c.Config.Scheme, c.Config.Signer, r), at: c.Tick}
		c.requests = append(c.requests, s)
		c.bytes += bytes
		c.send(env, s, false)
	}
}

// filled reports whether so many bytes more would be more than replicas take of a client at a time.
func (c *Client[O]) filled(more int) bool {
	return len(c.requests) > 0 && c.bytes+more > c.Config.Limits.Batch
}

// mayAck returns up to where the session's results may be forgotten: what is done, but nothing that
// an unanswered operation names, or one that is about to be sent. If that one is ordered later than
// the acknowledgement it could not be judged any more.
func (c *Client[O]) mayAck() bft.Number {
	n := c.last
	for _, number := range slices.Sorted(maps.Keys(c.Open)) {
		n = min(n, number-1)
	}
	names := func(o *Operation[O]) {
		ids := []bft.CallID{o.Call.After}
		for _, a := range o.Call.Assumes {
			ids = append(ids, a.Call)
		}
		for _, id := range ids {
			if x := c.calls[id]; x != nil && x.Number > c.acked {
				n = min(n, x.Number-1)
			}
		}
	}
	for _, number := range slices.Sorted(maps.Keys(c.Open)) {
		names(c.Open[number])
	}
	for _, o := range c.queue {
		names(o)
	}
	c.acked = max(c.acked, n)
	return c.acked
}

// Numbers returns those of the operations that are sent and not done, in order.
func (c *Client[O]) Numbers() []bft.Number { return slices.Sorted(maps.Keys(c.Open)) }

// operation returns what is sent for a call. What it says of calls that are done and forgotten by
// the group is judged here.
func (c *Client[O]) operation(env *protocol.Env[bft.Message], o *Operation[O]) (bft.Operation, bool) {
	op := bft.Operation{Command: o.Call.Command, Members: o.Call.Members}
	if x := c.calls[o.Call.After]; x != nil && x.Number > c.acked {
		op.After = x.Number
	} else if x != nil && x.done && x.outcome != bft.Executed {
		c.End(env, o, bft.Result{Outcome: bft.Retry})
		return op, false
	}
	for _, a := range o.Call.Assumes {
		x := c.calls[a.Call]
		switch {
		case x == nil:
			c.End(env, o, bft.Result{Outcome: bft.Retry})
			return op, false
		case x.Number > c.acked:
			op.Conditions = append(op.Conditions, bft.Condition{Number: x.Number, Digest: a.Digest})
		case x.digest != a.Digest:
			c.End(env, o, bft.Result{Outcome: bft.Aborted})
			return op, false
		}
	}
	return op, true
}

func (c *Client[O]) send(env *protocol.Env[bft.Message], s *sent, again bool) {
	n := len(c.Dir.Members)
	full := int(s.request.Body().First) % n
	for i, m := range c.Dir.Members {
		env.Send(m.ID, Submitted{s.request, again || i == full})
	}
}

// End tells the application what became of a call.
func (c *Client[O]) End(env *protocol.Env[bft.Message], o *Operation[O], r bft.Result) {
	var none O
	o.done, o.digest, o.outcome = true, r.Digest(), r.Outcome
	if m, err := bft.DecodeChanged(r.Value); o.Call.Members && err == nil {
		c.awaited = max(c.awaited, m.Epoch)
	}
	delete(c.Open, o.Number)
	o.Results, o.Own = nil, none
	env.Send(protocol.App, bft.Done{ID: o.Call.ID, Result: r})
	if c.ended = append(c.ended, o.Call.ID); len(c.ended) > maxEnded {
		delete(c.calls, c.ended[0])
		c.ended = c.ended[1:]
	}
	c.requests = slices.DeleteFunc(c.requests, func(s *sent) bool {
		b := s.request.Body()
		for i := range b.Operations {
			if c.Open[b.First+bft.Number(i)] != nil {
				return false
			}
		}
		c.bytes -= b.Bytes()
		return true
	})
	if len(c.queue) > 0 {
		env.After(0, FlushTimer{})
	}
}

// OnReadReply counts what members say of an optimised read. If they do not agree it is ordered.
func (c *Client[O]) OnReadReply(env *protocol.Env[bft.Message], member int, m ReadReply) {
	r := c.reads[bft.CallID(m.ID)]
	if c.OtherEpoch(env, c.Dir.Members[member].ID, m.Epoch) || r == nil || r.spoke[member] {
		return
	}
	r.said[member], r.spoke[member] = m.Digest, true
	r.order = append(r.order, member)
	if v := (bft.Result{Outcome: bft.Executed, Value: m.Value}); m.Full && v.Digest() == m.Digest {
		r.values[m.Digest] = v
	}
	spoke := 0
	for i, d := range r.said {
		same := 0
		for j, o := range r.said {
			if r.spoke[i] && r.spoke[j] && d == o {
				same++
			}
		}
		if v, ok := r.values[d]; ok && same >= c.Dir.Quorum() {
			delete(c.reads, r.call.ID)
			c.near = r.order
			o := &Operation[O]{Call: r.call}
			c.calls[r.call.ID] = o // later calls may name it: the client judges that itself
			c.End(env, o, v)
			return
		}
		if r.spoke[i] {
			spoke++
		}
	}
	if spoke == len(r.said) {
		c.near = nil
		delete(c.reads, r.call.ID)
		c.order(env, r.call)
	}
}

package pbft

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

// Client is a client of a group, a protocol.Node. Its application gives it a bft.Call and gets
// bft.First, bft.Withdrawn and bft.Done.
type client struct {
	cfg     bft.ClientConfig
	dir     *bft.Directory
	st      *statements
	session bft.SessionID
	last    bft.Number
	acked   bft.Number

	queue    []*operation // that have no number yet
	open     map[bft.Number]*operation
	requests []*sent
	calls    map[bft.CallID]*operation
	ended    []bft.CallID // in calls, in order
	reads    map[bft.CallID]*read
	views    []bft.View // by member
	scores   []score    // by member
	tick     int
}

// operation is a call that is ordered.
type operation struct {
	call    bft.Call
	number  bft.Number
	words   []heard // by member
	results map[bft.Digest]bft.Result
	guess   *bft.Digest
	guessBy int // a member
	view    bft.View
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
	values map[bft.Digest][]byte
}

type (
	flushTimer  struct{}
	clientTimer struct{}
)

const (
	maxEnded     = 4 * sessions.Window
	readTicks    = 6
	resendTicks  = 8
	resendEvery  = 32 // at most
	sessionKeyOf = "session"
)

// NewClient returns a client node.
func newClient(c bft.ClientConfig) (*client, error) {
	if c.Directory == nil || c.Scheme == nil || c.Signer == nil {
		return nil, fmt.Errorf("pbft: ClientConfig: Directory, Scheme or Signer is nil")
	}
	if c.Directory.Clients[c.ID] != c.Signer.Key() {
		return nil, fmt.Errorf("pbft: ClientConfig.Signer: not the key of the client %d", c.ID)
	}
	c.RoundTrip = cmp.Or(c.RoundTrip, defaultRoundTrip)
	n := len(c.Directory.Members)
	return &client{cfg: c, dir: c.Directory, st: newStatements(c.Scheme), open: map[bft.Number]*operation{},
		calls: map[bft.CallID]*operation{}, reads: map[bft.CallID]*read{}, views: make([]bft.View, n),
		scores: make([]score, n)}, nil
}

// Start is part of protocol.Node.
func (c *client) Start(env *protocol.Env[bft.Message], _ []protocol.Record[bft.Message]) {
	if b, ok := env.Get([]byte(sessionKeyOf)); ok && len(b) == 8 {
		c.session = bft.SessionID(binary.BigEndian.Uint64(b))
	}
	c.session = max(c.session, c.cfg.Session) + 1
	env.Put([]byte(sessionKeyOf), binary.BigEndian.AppendUint64(nil, uint64(c.session)))
	env.After(c.cfg.RoundTrip/2, clientTimer{})
}

// Receive is part of protocol.Node.
func (c *client) Receive(env *protocol.Env[bft.Message], from protocol.ID, msg bft.Message) {
	if call, ok := msg.(bft.Call); ok && from == protocol.App {
		c.call(env, call)
		return
	}
	i := slices.IndexFunc(c.dir.Members, func(p bft.Party) bool { return p.ID == from })
	if i < 0 {
		return
	}
	switch m := msg.(type) {
	case replies:
		c.onReply(env, i, m)
	case earlyReply:
		c.onEarly(env, m.Reply)
	case readReply:
		c.onReadReply(env, i, m)
	}
}

// Expire is part of protocol.Node.
func (c *client) Expire(env *protocol.Env[bft.Message], t protocol.Timer) {
	switch t.(type) {
	case flushTimer:
		c.flush(env)
	case clientTimer:
		env.After(c.cfg.RoundTrip/2, clientTimer{})
		c.tick++
		for _, s := range c.requests {
			if c.tick-s.at >= min(resendTicks<<s.times, resendEvery) {
				s.at, s.times = c.tick, s.times+1
				c.send(env, s, true)
			}
		}
		for _, id := range c.lateReads() {
			c.order(env, c.reads[id].call)
			delete(c.reads, id)
		}
		c.flush(env)
	}
}

func (c *client) lateReads() []bft.CallID {
	var late []bft.CallID
	for _, id := range slices.Sorted(maps.Keys(c.reads)) {
		if c.tick-c.reads[id].at >= readTicks {
			late = append(late, id)
		}
	}
	return late
}

func (c *client) call(env *protocol.Env[bft.Message], call bft.Call) {
	// A read that goes around the order may miss writes of this client that are not confirmed.
	if !call.Read || c.cfg.Ordered || len(c.open)+len(c.queue) > 0 {
		c.order(env, call)
		return
	}
	n := len(c.dir.Members)
	c.reads[call.ID] = &read{call: call, at: c.tick, said: make([]bft.Digest, n), spoke: make([]bool, n),
		values: map[bft.Digest][]byte{}}
	for i, m := range c.dir.Members {
		env.SendAhead(m.ID, readAsk{uint64(call.ID), call.Command, i == int(call.ID)%n})
	}
}

func (c *client) order(env *protocol.Env[bft.Message], call bft.Call) {
	o := &operation{call: call, words: make([]heard, len(c.dir.Members)), results: map[bft.Digest]bft.Result{}}
	c.calls[call.ID] = o
	c.queue = append(c.queue, o)
	env.After(0, flushTimer{}) // with what else is called at this moment
}

// flush sends what has been called, as far as the session's window goes.
func (c *client) flush(env *protocol.Env[bft.Message]) {
	for len(c.queue) > 0 {
		r := bft.Request{Client: c.cfg.ID, Session: c.session, Acked: c.mayAck(), First: c.last + 1}
		for len(c.queue) > 0 && len(r.Operations) < bft.MaxOperations && c.last+2 < r.Acked+sessions.Window {
			o := c.queue[0]
			c.queue = c.queue[1:]
			op, ok := c.operation(env, o)
			if !ok {
				continue
			}
			c.last++
			o.number = c.last
			c.open[o.number] = o
			r.Operations = append(r.Operations, op)
		}
		if len(r.Operations) == 0 {
			return
		}
		s := &sent{request: c.st.requests.Sign(c.cfg.Scheme, c.cfg.Signer, r), at: c.tick}
		c.requests = append(c.requests, s)
		c.send(env, s, false)
	}
}

// mayAck returns up to where the session's results may be forgotten: what is done, but nothing that
// an unanswered operation names, or one that is about to be sent. If that one is ordered later than
// the acknowledgement it could not be judged any more.
func (c *client) mayAck() bft.Number {
	n := c.last
	for _, number := range slices.Sorted(maps.Keys(c.open)) {
		n = min(n, number-1)
	}
	names := func(o *operation) {
		ids := []bft.CallID{o.call.After}
		for _, a := range o.call.Assumes {
			ids = append(ids, a.Call)
		}
		for _, id := range ids {
			if x := c.calls[id]; x != nil && x.number > c.acked {
				n = min(n, x.number-1)
			}
		}
	}
	for _, number := range slices.Sorted(maps.Keys(c.open)) {
		names(c.open[number])
	}
	for _, o := range c.queue {
		names(o)
	}
	c.acked = max(c.acked, n)
	return c.acked
}

// operation returns what is sent for a call. What it says of calls that are done and forgotten by
// the group is judged here.
func (c *client) operation(env *protocol.Env[bft.Message], o *operation) (bft.Operation, bool) {
	op := bft.Operation{Command: o.call.Command}
	if x := c.calls[o.call.After]; x != nil && x.number > c.acked {
		op.After = x.number
	} else if x != nil && x.done && x.outcome != bft.Executed {
		c.end(env, o, bft.Result{Outcome: bft.Retry})
		return op, false
	}
	for _, a := range o.call.Assumes {
		x := c.calls[a.Call]
		switch {
		case x == nil:
			c.end(env, o, bft.Result{Outcome: bft.Retry})
			return op, false
		case x.number > c.acked:
			op.Conditions = append(op.Conditions, bft.Condition{Number: x.number, Digest: a.Digest})
		case x.digest != a.Digest:
			c.end(env, o, bft.Result{Outcome: bft.Aborted})
			return op, false
		}
	}
	return op, true
}

func (c *client) send(env *protocol.Env[bft.Message], s *sent, again bool) {
	n := len(c.dir.Members)
	full := int(s.request.Body().First) % n
	for i, m := range c.dir.Members {
		env.Send(m.ID, submitted{s.request, again || i == full})
	}
}

// end tells the application what became of a call.
func (c *client) end(env *protocol.Env[bft.Message], o *operation, r bft.Result) {
	o.done, o.digest, o.outcome = true, r.Digest(), r.Outcome
	if o.guess != nil {
		c.scores[o.guessBy].note(*o.guess == o.digest)
	}
	delete(c.open, o.number)
	o.results, o.words = nil, nil
	env.Send(protocol.App, bft.Done{ID: o.call.ID, Result: r})
	if c.ended = append(c.ended, o.call.ID); len(c.ended) > maxEnded {
		delete(c.calls, c.ended[0])
		c.ended = c.ended[1:]
	}
	c.requests = slices.DeleteFunc(c.requests, func(s *sent) bool {
		b := s.request.Body()
		for i := range b.Operations {
			if c.open[b.First+bft.Number(i)] != nil {
				return false
			}
		}
		return true
	})
	if len(c.queue) > 0 {
		env.After(0, flushTimer{})
	}
}

func (c *client) onReply(env *protocol.Env[bft.Message], member int, m replies) {
	if m.View > c.views[member] {
		c.views[member] = m.View
		c.withdraw(env)
	}
	if m.Session != c.session {
		return
	}
	for _, i := range m.Items {
		o := c.open[i.Number]
		if o == nil {
			continue
		}
		if h := (heard{true, i.Tentative, m.View, i.Seq, i.Digest}); h.newer(o.words[member]) {
			o.words[member] = h
		}
		if i.Full && i.Result.Digest() == i.Digest {
			o.results[i.Digest] = i.Result
		}
		if d, ok := confirmed(o.words, c.dir.Quorum(), c.dir.Witness(), !c.cfg.Ordered); ok {
			if r, ok := o.results[d]; ok {
				c.end(env, o, r)
			}
		}
	}
}

// vouched returns the view of which an honest member says that it has come.
func (c *client) vouched() bft.View {
	views := slices.Clone(c.views)
	slices.Sort(views)
	return views[len(views)-c.dir.Witness()]
}

// withdraw takes back the guesses of views that are over.
func (c *client) withdraw(env *protocol.Env[bft.Message]) {
	v := c.vouched()
	for n := c.acked + 1; n <= c.last; n++ {
		if o := c.open[n]; o != nil && o.guess != nil && o.view < v {
			o.guess = nil
			env.Send(protocol.App, bft.Withdrawn{ID: o.call.ID})
		}
	}
}

// onEarly takes the early reply of a primary for a guess, if its view is vouched for and its
// guesses have been good. It confirms nothing.
func (c *client) onEarly(env *protocol.Env[bft.Message], e bft.Signed[earlyBody]) {
	b := e.Body()
	by := int(uint64(b.View) % uint64(len(c.dir.Members)))
	if b.Client != c.cfg.ID || b.Session != c.session || b.View != c.vouched() || !e.By(c.dir.Members[by].Key) {
		return
	}
	for _, i := range b.Items {
		o := c.open[i.Number]
		if o == nil || o.guess != nil {
			continue
		}
		d := i.Result.Digest()
		o.guess, o.guessBy, o.view = &d, by, b.View
		o.results[d] = i.Result
		if !c.scores[by].off {
			env.Send(protocol.App, bft.First{ID: o.call.ID, Result: i.Result})
		}
	}
}

// onReadReply counts what members say of an optimised read. If they do not agree it is ordered.
func (c *client) onReadReply(env *protocol.Env[bft.Message], member int, m readReply) {
	r := c.reads[bft.CallID(m.ID)]
	if r == nil || r.spoke[member] {
		return
	}
	r.said[member], r.spoke[member] = m.Digest, true
	if d := (bft.Result{Outcome: bft.Executed, Value: m.Value}).Digest(); m.Full && d == m.Digest {
		r.values[d] = m.Value
	}
	spoke := 0
	for i, d := range r.said {
		same := 0
		for j, o := range r.said {
			if r.spoke[i] && r.spoke[j] && d == o {
				same++
			}
		}
		if v, ok := r.values[d]; ok && same >= c.dir.Quorum() {
			delete(c.reads, r.call.ID)
			env.Send(protocol.App, bft.Done{ID: r.call.ID, Result: bft.Result{Outcome: bft.Executed, Value: v}})
			return
		}
		if r.spoke[i] {
			spoke++
		}
	}
	if spoke == len(r.said) {
		delete(c.reads, r.call.ID)
		c.order(env, r.call)
	}
}

// score is how often a member's last early replies were right. One that was wrong too often is not
// believed for a while: above one in a hundred it is off, and on again below half of that.
type score struct {
	right []bool
	wrong int
	off   bool
}

const scored = 200

func (s *score) note(right bool) {
	if s.right = append(s.right, right); !right {
		s.wrong++
	}
	if len(s.right) > scored {
		if !s.right[0] {
			s.wrong--
		}
		s.right = s.right[1:]
	}
	switch {
	case s.wrong*100 > scored:
		s.off = true
	case s.wrong*200 < scored:
		s.off = false
	}
}

package kit

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// Calls are a client's books: the calls that are not done, and the session that their commands are
// numbered in. A client's node embeds them, and decides what is sent where and when.
type Calls struct {
	Session SessionID // 0 before there is one
	Tempo   Tempo     // of answers

	cfg    smr.ClientConfig
	window Seq
	nonce  Seq // of the OpenRequest that is not answered, 0 if there is none

	calls    map[smr.CallID]*Pending
	bytes    int        // of their commands
	queue    []*Pending // commands and changes that were not sent, in order
	unasked  []*Pending // reads that were not sent
	commands flights
	reads    flights
	seen     smr.Slot // the highest that a call was told of

	ticks   int // of half a round trip, while there was anything to do: no clock that jumps moves it
	batch   Batch
	ticking bool
}

// A Pending is a call that is not done.
type Pending struct {
	smr.Call
	Number   uint64        // its Seq, or that of its query; 0 before it was given one
	SentTo   protocol.ID   // 0 if it was not sent, or is to be sent again
	SentAt   time.Duration // by what the client measures time with
	Tries    int
	Attempts int    // proposals of it that may still be decided, where there are several
	Reason   string // why it could not be done the last time

	first time.Duration // when it was first sent, for who measures how long answers take
	since int           // Calls.ticks when it was made
	told  bool          // its Done was sent, as its position is fixed; it stays until it is executed
}

func (p *Pending) wantsEarly() bool { return p.Awaits() == smr.AckDurable }

// TickTimer is a client's timer of each half a round trip while there are calls, or no session.
type TickTimer struct{}

// Bounds in ticks, and of messages.
const (
	giveUp       = 256 // on a call, altogether, unless its Patience is longer
	giveUpNotYet = 40  // on a change of the members that the leader says cannot be made
	maxRequest   = 1024
)

// NewCalls returns the books of a client whose configuration has its defaults.
func NewCalls(cfg smr.ClientConfig) Calls {
	return Calls{
		cfg: cfg, Tempo: NewTempo(cfg.RoundTrip), calls: map[smr.CallID]*Pending{}, commands: newFlights(),
		reads: newFlights(),
	}
}

// Take queues a call, or rejects it.
func (c *Calls) Take(env *protocol.Env[smr.Message], call smr.Call) {
	reject := ""
	switch {
	case call.Kind < smr.Propose || call.Kind > smr.Reconfigure:
		reject = fmt.Sprintf("there is no %v", call.Kind)
	case call.Ack > smr.AckExecuted:
		reject = fmt.Sprintf("there is no %v", call.Ack)
	case len(call.Command) > smr.MaxCommandBytes:
		reject = fmt.Sprintf("the command has %d bytes, more than %d", len(call.Command), smr.MaxCommandBytes)
	case c.calls[call.ID] != nil:
		reject = fmt.Sprintf("call %d is not done", call.ID)
	case len(c.calls) >= c.cfg.MaxPending || c.bytes > 0 && c.bytes+len(call.Command) > c.cfg.MaxPendingBytes:
		reject = fmt.Sprintf("overload: %d calls, of %d bytes, are not done", len(c.calls), c.bytes)
	case call.Kind == smr.Reconfigure:
		if err := call.Change.Validate(); err != nil {
			reject = err.Error()
		}
	}
	if reject != "" {
		Reject(env, call, reject)
		return
	}
	p := &Pending{Call: call, since: c.ticks}
	c.calls[call.ID] = p
	c.bytes += len(call.Command)
	if call.Kind == smr.Read {
		c.unasked = append(c.unasked, p)
	} else {
		c.queue = append(c.queue, p)
	}
	c.Soon(env)
}

// Reject says that a call is not made.
func Reject(env *protocol.Env[smr.Message], call smr.Call, why string) {
	env.Send(protocol.App, smr.Done{ID: call.ID, Outcome: smr.Rejected, Reason: why})
}

// Soon has what is queued sent when the calls that have come up by now were taken, so that they
// travel together.
func (c *Calls) Soon(env *protocol.Env[smr.Message]) {
	c.batch.Soon(env, c.cfg.RoundTrip)
	c.KeepTicking(env)
}

// KeepTicking sets the TickTimer if there is anything to wait for.
func (c *Calls) KeepTicking(env *protocol.Env[smr.Message]) {
	if !c.ticking && (len(c.calls) > 0 || c.Session == 0) {
		c.ticking = true
		env.After(c.cfg.RoundTrip/2, TickTimer{})
	}
}

// Flushed says that the FlushTimer has come.
func (c *Calls) Flushed(now time.Duration) { c.batch.Flushed(now) }

// Ticked says that the TickTimer has come. It gives up calls that have waited for too long.
func (c *Calls) Ticked(env *protocol.Env[smr.Message]) {
	c.ticking = false
	c.ticks++
	var old []*Pending
	for p := range c.each() {
		if age := c.ticks - p.since; age >= giveUp && c.time(age) >= p.Patience && !p.told {
			old = append(old, p)
		}
	}
	for _, p := range old {
		c.abandon(env, p, "nobody has answered in "+c.time(c.ticks-p.since).String())
	}
}

func (c *Calls) time(ticks int) time.Duration { return time.Duration(ticks) * c.cfg.RoundTrip / 2 }

// each yields all calls, in order of their kind.
func (c *Calls) each() iter.Seq[*Pending] {
	return func(yield func(*Pending) bool) {
		for _, calls := range []iter.Seq[*Pending]{c.InFlight(), slices.Values(c.queue), slices.Values(c.unasked)} {
			for p := range calls {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// InFlight yields the calls that were sent: commands and changes, then reads, each in order.
func (c *Calls) InFlight() iter.Seq[*Pending] {
	return func(yield func(*Pending) bool) {
		for p := range c.commands.since(0) {
			if !yield(p) {
				return
			}
		}
		for p := range c.reads.since(0) {
			if !yield(p) {
				return
			}
		}
	}
}

// Queued reports whether there are commands, changes or reads that were not sent.
func (c *Calls) Queued() bool { return len(c.queue)+len(c.unasked) > 0 }

// Command returns the command or change of a number, nil if it is done.
func (c *Calls) Command(q Seq) *Pending { return c.commands.get(uint64(q)) }

// Seen returns the highest slot that a call was told of.
func (c *Calls) Seen() smr.Slot { return c.seen }

// Acked returns below which number the client waits for no answer.
func (c *Calls) Acked() Seq { return Seq(c.commands.first) }

// Launch numbers what was queued, commands and changes as many as the session's window admits, and
// returns it, for the client to send.
func (c *Calls) Launch(now time.Duration) (commands, reads iter.Seq[*Pending]) {
	firstCommand, firstRead, n := c.commands.next(), c.reads.next(), 0
	for c.Session != 0 && n < len(c.queue) && c.commands.next() < c.commands.first+uint64(c.window) {
		c.launch(now, &c.commands, c.queue[n])
		n++
	}
	c.queue = slices.Delete(c.queue, 0, n)
	for _, p := range c.unasked {
		c.launch(now, &c.reads, p)
	}
	clear(c.unasked)
	c.unasked = c.unasked[:0]
	return c.commands.since(firstCommand), c.reads.since(firstRead)
}

func (c *Calls) launch(now time.Duration, f *flights, p *Pending) {
	f.add(p)
	p.first = now
}

// Requests yields messages that ask for these commands, not changes, and which each asks for: at
// most so many in one. The slice is good until the next.
func (c *Calls) Requests(commands iter.Seq[*Pending], most int) iter.Seq2[Request, []*Pending] {
	return func(yield func(Request, []*Pending) bool) {
		empty := Request{Session: c.Session, Acked: c.Acked()}
		req, length := empty, 0
		var some []*Pending
		for p := range commands {
			if len(some) == most || length+len(p.Command) > MessageBytes && length > 0 {
				if !yield(req, some) {
					return
				}
				req, length, some = empty, 0, some[:0]
			}
			req.Commands = append(req.Commands, RequestedCommand{
				Seq: Seq(p.Number), Brief: p.Kind == smr.Propose, Early: p.wantsEarly(), Command: p.Command,
			})
			req.After = max(req.After, p.After)
			length += len(p.Command)
			some = append(some, p)
		}
		if len(some) > 0 {
			yield(req, some)
		}
	}
}

// ReadRequests is what Requests is, for reads.
func (c *Calls) ReadRequests(reads iter.Seq[*Pending]) iter.Seq2[ReadRequest, []*Pending] {
	return func(yield func(ReadRequest, []*Pending) bool) {
		var req ReadRequest
		var some []*Pending
		length := 0
		for p := range reads {
			if len(some) == maxRequest || length+len(p.Command) > MessageBytes && length > 0 {
				if !yield(req, some) {
					return
				}
				req.Queries, length, some = nil, 0, some[:0]
			}
			req.Queries = append(req.Queries, Query{ID: p.Number, Body: p.Command})
			length += len(p.Command)
			some = append(some, p)
		}
		if len(some) > 0 {
			yield(req, some)
		}
	}
}

// SendChange asks for a change of the members.
func (c *Calls) SendChange(env *protocol.Env[smr.Message], to protocol.ID, p *Pending) {
	env.Send(to, ChangeRequest{Session: c.Session, Acked: c.Acked(), Seq: Seq(p.Number), Change: p.Change})
}

// Open asks for a session. The nonce is the same until there is an answer, so that a request that
// is repeated opens no second one.
func (c *Calls) Open(env *protocol.Env[smr.Message], to protocol.ID) {
	for c.nonce == 0 {
		c.nonce = Seq(env.Rand.Uint64())
	}
	env.Send(to, OpenRequest{Nonce: c.nonce})
}

// Finish ends a call, which may be nil: one that is done already.
func (c *Calls) Finish(env *protocol.Env[smr.Message], p *Pending, d smr.Done) {
	if p == nil || c.calls[p.ID] != p {
		return
	}
	d.ID = p.ID
	c.seen = max(c.seen, d.Slot)
	delete(c.calls, p.ID)
	c.bytes -= len(p.Command)
	switch {
	case p.Number == 0 && p.Kind == smr.Read:
		c.unasked = without(c.unasked, p)
	case p.Number == 0:
		c.queue = without(c.queue, p)
	case p.Kind == smr.Read:
		c.reads.remove(p.Number)
	default:
		c.commands.remove(p.Number)
	}
	if !p.told {
		env.Send(protocol.App, d)
	}
}

func without(calls []*Pending, p *Pending) []*Pending {
	return slices.DeleteFunc(calls, func(q *Pending) bool { return q == p })
}

// Cancel gives up a call of which its caller wants to know no more.
func (c *Calls) Cancel(env *protocol.Env[smr.Message], m smr.Cancel) {
	if p := c.calls[m.ID]; p != nil && !p.told {
		c.abandon(env, p, m.Reason)
	}
}

// abandon ends a call that is not answered. If it was sent, it may be executed even later than
// this, so its outcome is unknown for good. Its number is acknowledged with those that follow, and
// the session table drops any copy that comes after that.
func (c *Calls) abandon(env *protocol.Env[smr.Message], p *Pending, why string) {
	d := smr.Done{Outcome: smr.Unknown, Reason: why}
	if p.Number == 0 {
		d = smr.NotSent(why)
	}
	if p.Reason != "" {
		d.Reason += ": " + p.Reason
	}
	c.Finish(env, p, d)
}

// Answered learns from how long an answer took: the round trip to who answers, and its own.
func (c *Calls) Answered(now time.Duration, p *Pending) { c.Tempo.Saw(now, (now-p.first)/2) }

// OnReplies ends the calls that are answered. If the session is gone with them, so are the commands
// that it knew of, and it tells so.
func (c *Calls) OnReplies(env *protocol.Env[smr.Message], m Replies) (gone bool) {
	if m.Session != c.Session {
		return false
	}
	for _, r := range m.Items {
		p := c.Command(r.Seq)
		d := smr.Done{Outcome: r.Outcome, Slot: r.Slot, Result: r.Result, Reason: r.Reason}
		if p != nil {
			c.Answered(env.Now, p)
			if p.Kind != smr.Execute {
				d.Result = nil
			}
		}
		c.Finish(env, p, d)
		if r.Gone {
			for p := range c.commands.since(0) {
				c.Finish(env, p, smr.Done{Outcome: smr.Unknown, Reason: r.Reason})
			}
			c.Session, c.commands = 0, newFlights()
			return true
		}
	}
	if len(c.queue) > 0 {
		c.Soon(env) // the window has moved
	}
	return false
}

// OnReadReplies ends the reads that are answered.
func (c *Calls) OnReadReplies(env *protocol.Env[smr.Message], m ReadReplies) {
	for _, r := range m.Items {
		d := smr.Done{Outcome: smr.Committed, Result: r.Result}
		if r.Reason != "" {
			d = smr.Done{Outcome: smr.Rejected, Reason: r.Reason}
		}
		p := c.reads.get(r.ID)
		if p != nil {
			c.Answered(env.Now, p)
		}
		c.Finish(env, p, d)
	}
}

// OnOpenReply begins a session, if the client waits for one. An answer with another nonce is to an
// earlier request, whose session nobody uses.
func (c *Calls) OnOpenReply(env *protocol.Env[smr.Message], m OpenReply) bool {
	if c.Session != 0 || m.Nonce != c.nonce || m.Session == 0 {
		return false
	}
	c.Session, c.window, c.nonce = m.Session, max(m.Window, 1), 0
	c.Soon(env)
	return true
}

// OnBusy yields the calls that a replica was sent last and did not take.
func (c *Calls) OnBusy(from protocol.ID, m Busy) iter.Seq[*Pending] {
	return func(yield func(*Pending) bool) {
		later := func(p *Pending) bool {
			if p == nil || p.SentTo != from {
				return true
			}
			p.Tries++
			p.Reason = "overload: the replica takes no more"
			return yield(p)
		}
		if m.Session == c.Session {
			for _, q := range m.Seqs {
				if !later(c.Command(q)) {
					return
				}
			}
		}
		for _, id := range m.Queries {
			if !later(c.reads.get(id)) {
				return
			}
		}
	}
}

// OnNotYet returns the change that cannot be made now, nil if it is given up.
func (c *Calls) OnNotYet(env *protocol.Env[smr.Message], m NotYet) *Pending {
	p := c.Command(m.Seq)
	if m.Session != c.Session || p == nil || p.Kind != smr.Reconfigure {
		return nil
	}
	if p.Reason = m.Reason; c.ticks-p.since >= giveUpNotYet {
		c.Finish(env, p, smr.Done{Outcome: smr.Unknown, Reason: m.Reason})
		return nil
	}
	return p
}

// Check returns what is wrong with the books, or nil.
func (c *Calls) Check() error {
	n := c.commands.count + c.reads.count + len(c.queue) + len(c.unasked)
	bytes := 0
	for _, p := range c.calls { //pure:ok a sum
		bytes += len(p.Command)
	}
	switch {
	case bytes != c.bytes:
		return clientError("the bytes of calls are miscounted")
	case n != len(c.calls):
		return clientError("calls that are neither queued nor sent, or both")
	case c.Session == 0 && c.commands.count > 0:
		return clientError("commands were sent without a session")
	case len(c.calls) > 0 && !c.ticking:
		return clientError("calls wait and no timer is set")
	}
	return nil
}

type clientError string

func (e clientError) Error() string { return "smr: client: " + string(e) }

// flights are the calls that were sent, by their numbers.
type flights struct {
	first uint64     // the number of calls[0]. Invariant: calls[0] is not nil.
	calls []*Pending // nil for one that is done
	count int
}

func newFlights() flights { return flights{first: 1} }

// next returns the number that the next call gets.
func (f *flights) next() uint64 { return f.first + uint64(len(f.calls)) }

func (f *flights) add(c *Pending) {
	c.Number = f.next()
	f.calls = append(f.calls, c)
	f.count++
}

func (f *flights) get(number uint64) *Pending {
	if number < f.first || number >= f.next() {
		return nil
	}
	return f.calls[number-f.first]
}

func (f *flights) remove(number uint64) {
	if f.get(number) == nil {
		return
	}
	f.calls[number-f.first] = nil
	f.count--
	for len(f.calls) > 0 && f.calls[0] == nil {
		f.calls = f.calls[1:]
		f.first++
	}
}

// since goes through the calls from a number on, in order. They may be removed meanwhile.
func (f *flights) since(number uint64) iter.Seq[*Pending] {
	return func(yield func(*Pending) bool) {
		skip := max(number, f.first) - f.first
		for _, c := range f.calls[min(skip, uint64(len(f.calls))):] {
			if c != nil && !yield(c) {
				return
			}
		}
	}
}

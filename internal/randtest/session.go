package randtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/driver"
)

// This file has a service in memory whose calls are predicated: it stands for a replicated one,
// whose clients go on with the first reply. A session's requests have numbers, and are carried out
// in their order. A request names others of its session and the results that its caller assumes: if
// one of these has another result the answer is abort, if it was not carried out, retry. Neither
// changes anything, and both use up the number.

// counters is the service: it adds to named numbers.
type counters struct {
	mu      sync.Mutex
	values  map[string]int
	early   map[string]int // with what was answered early and is yet to be carried out
	effects []string       // in order, by key and what was added
	delays  func() delays  // of the next request
	lie     func() bool    // is the next early reply wrong
	tired   func() bool    // is the next request not carried out, though it could be
	after   func(d time.Duration, f func())
	site    *control.CallSite
}

// delays are how long a request takes: to the service, until its early reply is in, and until it is
// carried out and answered. 0: there is no early reply.
type delays struct{ arrives, early, decided time.Duration }

func newCounters(d func() delays, lie func() bool) (*counters, error) {
	site, err := control.NewCallSite(control.CallSiteConfig{Name: "/counters/add", Mode: control.ModeOn,
		Effect: control.EffectPredicated, ServerPredictions: true})
	after := func(d time.Duration, f func()) { time.AfterFunc(d, f) }
	return &counters{values: make(map[string]int), early: make(map[string]int), delays: d, lie: lie, after: after,
		tired: func() bool { return false }, site: site}, err
}

// done returns what took effect so far.
func (c *counters) done() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.effects)
}

// session is a client's session with the service.
type session struct {
	at       *counters
	domain   driver.Domain
	requests []*request // by number
	next     int        // to be carried out
}

// request is one of a session's requests.
type request struct {
	op      *addition
	on      []condition
	arrived bool
	reply   reply
	done    chan struct{} // closed when there is a reply
}

// condition is a result that a request depends on.
type condition struct{ number, result int }

// reply is what the service answers.
type reply struct {
	kind   replyKind
	result int
}

type replyKind uint8

const (
	unanswered replyKind = iota
	carriedOut
	aborted
	retried
)

// addition is a call: it adds n to a key's number, which it answers. It is the transport of one
// driver.Operation.
type addition struct {
	s       *session
	key     string
	n       int
	numbers map[int]int // of its attempts' requests; under the service's mu
}

// Add makes the call, which is another one than those with another name. Outside of a task it is
// carried out at once.
func (s *session) Add(ctx context.Context, key string, n int, name string) (int, error) {
	if !driver.InTask(ctx) {
		s.at.mu.Lock()
		defer s.at.mu.Unlock()
		return s.at.carryOut(key, n), nil
	}
	v, err := driver.Perform(ctx, &driver.Operation{
		CallSite: s.at.site, Conn: fmt.Sprintf("%p", s), Identity: fmt.Sprint(key, " ", n, " ", name), Request: key,
		CanSpeculate: true, Domain: &s.domain, Transport: &addition{s: s, key: key, n: n},
	})
	if err != nil {
		return 0, err
	}
	return v.(int), nil
}

// carryOut adds and returns the new value. Under mu.
func (c *counters) carryOut(key string, n int) int {
	c.values[key] += n
	if n != 0 {
		c.effects = append(c.effects, fmt.Sprintf("%s %+d", key, n))
	}
	return c.values[key]
}

// Start implements driver.Transport. It is called in the order in which the session's calls are
// made.
func (o *addition) Start(ctx context.Context, a *driver.Attempt) {
	r := o.send(a)
	go func() {
		select {
		case <-r.done:
		case <-ctx.Done():
			a.Finish(nil, o.Ended(ctx.Err())) // what became of it nobody learns
			return
		}
		if r.reply.kind == carriedOut {
			a.Finish(r.reply.result, nil)
		} else {
			a.Refused("the service refused it")
		}
	}()
}

// send has an attempt's request arrive at the service, in a while, and get its replies.
func (o *addition) send(a *driver.Attempt) *request {
	on, known := a.Assumes()
	c := o.s.at
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.numbers == nil {
		o.numbers = make(map[int]int)
	}
	r := &request{op: o, done: make(chan struct{})}
	number := len(o.s.requests)
	o.numbers[a.Number()] = number
	o.s.requests = append(o.s.requests, r)
	if !known { // it stands on more: then it is refused
		r.on = append(r.on, condition{number, 0})
	}
	for _, on := range on {
		other := on.Operation.Transport.(*addition)
		before, ok := other.numbers[on.Attempt]
		if other.s != o.s || !ok {
			panic("a call is sent on a guess at another session's, or at one that was not sent")
		}
		r.on = append(r.on, condition{before, on.Value.(int)})
	}
	d := c.delays()
	wrong := c.lie()
	c.after(d.arrives, func() {
		if early, ok := o.arrive(r, d, wrong); ok {
			a.Predict(early)
		}
	})
	return r
}

// arrive tells that a request is at the service, which may reply early: with what it comes to if
// all that was replied early comes true.
func (o *addition) arrive(r *request, d delays, lie bool) (early int, ok bool) {
	c := o.s.at
	c.mu.Lock()
	defer c.mu.Unlock()
	c.after(d.decided-d.arrives, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		r.arrived = true
		o.s.carryOn()
	})
	c.early[o.key] += o.n
	early = c.values[o.key] + c.early[o.key]
	if lie {
		early++
	}
	return early, d.early > 0
}

// carryOn carries out the session's requests, in order, as far as they have arrived. Under mu.
func (s *session) carryOn() {
	for s.next < len(s.requests) && s.requests[s.next].arrived {
		r := s.requests[s.next]
		s.next++
		r.reply = s.carryOut(r)
		close(r.done)
	}
}

func (s *session) carryOut(r *request) reply {
	c := s.at
	c.early[r.op.key] -= r.op.n
	for _, d := range r.on {
		switch is := s.requests[d.number].reply; {
		case is.kind != carriedOut:
			return reply{kind: retried}
		case is.result != d.result:
			return reply{kind: aborted}
		}
	}
	if c.tired() {
		return reply{kind: retried}
	}
	return reply{carriedOut, c.carryOut(r.op.key, r.op.n)}
}

// Equal implements driver.Transport. Calls are guessed exactly if the service says that a condition
// is true.
func (*addition) Equal(prediction, actual any) bool { return prediction == actual }

// Same implements driver.Transport.
func (*addition) Same(a, b any) bool { return a == b }

// Accept implements driver.Transport.
func (*addition) Accept(prediction any) (any, bool) {
	_, ok := prediction.(int)
	return prediction, ok
}

// Ended implements driver.Ender.
func (o *addition) Ended(err error) error { return &unknownOutcome{err} }

// unknownOutcome says that nobody waited for what became of a call.
type unknownOutcome struct{ err error }

func (u *unknownOutcome) Error() string { return "the outcome is unknown: " + u.err.Error() }
func (u *unknownOutcome) Unwrap() error { return u.err }

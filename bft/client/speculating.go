package client

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/driver"
)

// In a task a call is an operation of the engine's, of the predicated class: the group refuses it
// if what its caller assumes is wrong. Its first reply is a prediction. All calls are of that
// class, queries too, since one that is ordered sees what those before it did; the client node asks
// a query around the order when nothing is open, and then it has no conditions.

// tasks is what a client has for calls in tasks.
type tasks struct {
	name   string               // of the client as a connection, to the engine
	sites  [2]*control.CallSite // for commands and queries
	domain driver.Domain
	mu     sync.Mutex
	queue  []*attempt // for the node, in the order in which they were made
	busy   bool       // somebody hands them over
}

func (t *tasks) init(c *Client) error {
	t.name = fmt.Sprintf("bft@%p", c)
	mode := control.ModeOn
	if c.cfg.Mode == control.ModeOff {
		mode = control.ModeOff
	}
	for i, name := range []string{"bft.Execute", "bft.Read"} {
		var err error
		if t.sites[i], err = control.NewCallSite(control.CallSiteConfig{Name: name, Mode: mode,
			Effect: control.EffectPredicated, ServerPredictions: true, Predictors: c.cfg.Predictors}); err != nil {
			return err
		}
	}
	return nil
}

// perform makes a call for code of a task. guess makes the bytes of a result of what a caller
// predicts that is none; nil: nothing else is a prediction.
func (c *Client) perform(ctx context.Context, call bft.Call, guess func(any) ([]byte, bool)) (bft.Result, error) {
	if call.After != 0 || len(call.Assumes) > 0 {
		return bft.Result{}, &RejectedError{Kind: kindOf(call), Unsent: true,
			Reason: "what a call in a task assumes is for the engine to say"}
	}
	if err := c.fits(call); err != nil {
		return bft.Result{}, err
	}
	site := 0
	if call.Read {
		site = 1
	}
	call.Command = bytes.Clone(call.Command) // the caller may change it when this returns
	identity := "c"
	if call.Members {
		identity = "m"
	}
	v, err := driver.Perform(ctx, &driver.Operation{
		CallSite: c.tasks.sites[site], Conn: c.tasks.name, Identity: identity + string(call.Command), Request: call.Command,
		CanSpeculate: true, Domain: &c.tasks.domain, Transport: &calling{client: c, call: call, guess: guess},
	})
	if err != nil {
		return bft.Result{}, err
	}
	value, _ := v.([]byte)
	return bft.Result{Outcome: bft.Executed, Value: bytes.Clone(value)}, nil // runs share it
}

// calling is a call as the engine sees it.
type calling struct {
	client *Client
	call   bft.Call
	guess  func(any) ([]byte, bool)
	ids    []bft.CallID // by attempt, 0 for those that were not made; changed by Start only
}

// Start implements driver.Transport. Those of a client's calls are called one after the other.
func (c *calling) Start(ctx context.Context, a *driver.Attempt) {
	s := &attempt{calling: c, Attempt: a, call: c.call}
	for len(c.ids) < a.Number() {
		c.ids = append(c.ids, 0)
	}
	if why := s.assume(); why != "" {
		a.Refused(why)
		return
	}
	if err := s.begin(ctx); err != nil {
		s.fail(err)
		return
	}
	c.ids[a.Number()-1] = s.call.ID
	c.client.tasks.enqueue(s)
}

// Equal implements driver.Transport: as the group compares.
func (*calling) Equal(prediction, actual any) bool {
	p, ok := prediction.([]byte)
	a, known := actual.([]byte)
	return ok && known && bytes.Equal(p, a)
}

// Same implements driver.Transport.
func (c *calling) Same(a, b any) bool { return c.Equal(a, b) }

// Accept implements driver.Transport.
func (c *calling) Accept(prediction any) (any, bool) {
	if b, ok := prediction.([]byte); ok {
		return append(make([]byte, 0, len(b)), b...), true
	}
	if c.guess == nil {
		return nil, false
	}
	b, ok := c.guess(prediction)
	return b, ok
}

// Ended implements driver.Ender.
func (c *calling) Ended(err error) error { return lateOutcome(c.call, err) }

// attempt is an attempt at a call.
type attempt struct {
	*driver.Attempt
	calling *calling
	call    bft.Call
	first   []byte // the first reply

	mu    sync.Mutex      // held while it begins
	ctx   context.Context // of the attempt, which has ended when this does
	guard context.CancelFunc
	stop  func() bool
}

// assume notes what the attempt's caller assumes. It returns why the call cannot be sent on that,
// if it cannot.
func (s *attempt) assume() (problem string) {
	on, all := s.Assumes()
	if !all {
		return "its caller stands on what the group does not know"
	}
	if len(on) > bft.MaxConditions {
		return "its caller assumes too much"
	}
	for _, on := range on {
		o, ok := on.Operation.Transport.(*calling)
		value, known := on.Value.([]byte)
		if !ok || !known || o.client != s.calling.client || on.Attempt > len(o.ids) || o.ids[on.Attempt-1] == 0 {
			return "its caller stands on a call that was not sent"
		}
		r := bft.Result{Outcome: bft.Executed, Value: value}
		s.call.Assumes = append(s.call.Assumes, bft.Assumption{Call: o.ids[on.Attempt-1], Digest: r.Digest()})
	}
	return ""
}

// begin makes the attempt one of the client's calls.
func (s *attempt) begin(ctx context.Context) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.calling.client
	if s.call.ID, err = c.admit(s.call, s.hear); err != nil {
		return err
	}
	s.ctx, s.guard = c.cfg.Guard(ctx)
	s.stop = context.AfterFunc(s.ctx, s.expire)
	return nil
}

// hear takes what the node says of the call.
func (s *attempt) hear(msg bft.Message) {
	switch m := msg.(type) {
	case bft.First:
		if m.Result.Outcome == bft.Executed {
			s.first = valueOf(m.Result)
			s.Predict(s.first)
		}
	case bft.Withdrawn:
		s.Withdraw(s.first)
	case bft.Done:
		s.over()
		switch err := failure(kindOf(s.call), m.Result.Outcome); {
		case m.Result.Outcome == bft.Executed:
			s.Finish(valueOf(m.Result), nil)
		case m.Result.Outcome == bft.Gone:
			s.Unknown(err)
		default:
			s.fail(err)
		}
	case abandoned:
		s.over()
		s.Unknown(m.unknown(s.call))
	}
}

func valueOf(r bft.Result) []byte {
	if r.Value == nil {
		return []byte{}
	}
	return r.Value
}

// over lets go of the attempt's context.
func (s *attempt) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
	s.guard()
}

// fail ends an attempt that nobody carries out. If it was sent on guesses that is no result: it is
// made again when its caller is right.
func (s *attempt) fail(err error) {
	if s.Speculative() {
		s.Refused(err.Error())
		return
	}
	s.Finish(nil, err)
}

// expire ends the attempt when its context has ended.
func (s *attempt) expire() {
	if s.calling.client.waiting.Forget(uint64(s.call.ID)) {
		s.over()
		s.Unknown(lateOutcome(s.call, context.Cause(s.ctx)))
	}
}

// enqueue has a call be delivered, after those before it.
func (t *tasks) enqueue(s *attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = append(t.queue, s)
	if !t.busy {
		t.busy = true
		go t.deliver()
	}
}

// deliver hands calls over as long as there are any. A goroutine of its own does, since a node may
// be what tells of the result that has one sent, and a node may have no room.
func (t *tasks) deliver() {
	for {
		t.mu.Lock()
		queue := t.queue
		t.queue, t.busy = nil, len(queue) > 0
		t.mu.Unlock()
		if len(queue) == 0 {
			return
		}
		for _, s := range queue {
			s.deliver()
		}
	}
}

func (s *attempt) deliver() {
	c := s.calling.client
	err := c.cfg.Deliver(s.ctx, s.call)
	if err == nil {
		return
	}
	if c.undo(s.call.ID) {
		s.over()
		s.fail(undelivered(s.call, err))
	}
}

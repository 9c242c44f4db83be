package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/driver"
	"github.com/foresay/foresay/internal/callers"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/client"
)

type (
	// A RejectedError says that what a call asked for is not the case, and will not be by this call.
	RejectedError = client.RejectedError
	// An UnknownError says that it is not known whether what a call asked for is the case, or will
	// be.
	UnknownError = client.UnknownError
)

// MaxOpen is how many calls of one client can be without a result. More are rejected.
const MaxOpen = 1 << 16

// A Config is what a client is made of. Only Deliver is required.
type Config struct {
	// Deliver hands a message to the client node, as from its application. It may wait until ctx is
	// done for the node to have room.
	Deliver func(ctx context.Context, msg bft.Message) error
	// MaxBytes is how long a command or a query may be, 0 for [bft.MaxCommandBytes].
	MaxBytes int
	// Guard returns the context of a call that is about to be made, and what is called when nobody
	// waits for it any more. nil: no more than the caller's.
	Guard func(ctx context.Context) (context.Context, context.CancelFunc)
	// Mode is whether code in tasks goes on with guesses: control.ModeOff for never, everything else
	// for always.
	Mode control.Mode
	// Predictors guess results in tasks, in this order, after what the code predicts itself. Requests
	// and results are bytes to them: those of commands and queries, and of what these come to.
	Predictors []control.Predictor
}

// A Client makes calls by a client node. Its methods may be called concurrently.
type Client struct {
	cfg     Config
	waiting callers.Table[bft.Message]
	open    atomic.Int64 // calls that the node has, whether anybody waits for them or not
	tasks   tasks
}

// New returns a client of a node. What the node sends to its application must be given to Receive.
// The error names the field of the configuration that is wrong.
func New(cfg Config) (*Client, error) {
	switch {
	case cfg.Deliver == nil:
		return nil, errors.New("client: Config.Deliver is missing")
	case cfg.MaxBytes < 0 || cfg.MaxBytes > bft.MaxCommandBytes:
		return nil, fmt.Errorf("client: Config.MaxBytes is %d", cfg.MaxBytes)
	}
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, bft.MaxCommandBytes)
	if cfg.Guard == nil {
		cfg.Guard = func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} }
	}
	c := &Client{cfg: cfg}
	return c, c.tasks.init(c)
}

// Receive takes a message that the node sent to its application.
func (c *Client) Receive(msg bft.Message) {
	switch m := msg.(type) {
	case bft.First:
		c.waiting.Tell(uint64(m.ID), m)
	case bft.Withdrawn:
		c.waiting.Tell(uint64(m.ID), m)
	case bft.Done:
		c.open.Add(-1)
		c.waiting.Answer(uint64(m.ID), m)
	}
}

// Close ends all calls with an unknown outcome; why tells their callers. Later calls are rejected.
func (c *Client) Close(why error) {
	if why == nil {
		why = errors.New("the client is closed")
	}
	c.waiting.Close(why, func(uint64) bft.Message { return abandoned{why} })
}

// abandoned is told in place of a bft.Done to who waits for a call that nobody waits for any more.
type abandoned struct{ why error }

func (a abandoned) unknown(call bft.Call) error {
	return &UnknownError{Kind: kindOf(call), Reason: a.why.Error()}
}

// Start makes a call and returns its ID, which is the client's to choose; a later call may name it.
// hear is told of a bft.First and a bft.Withdrawn, perhaps, and at the end of the result or an
// error, once; on another goroutine, which it must not keep waiting. Code of a task cannot start
// calls, as nobody could take that back.
func (c *Client) Start(ctx context.Context, call bft.Call, hear Hearer) (bft.CallID, error) {
	if driver.InTask(ctx) {
		return 0, &RejectedError{Kind: kindOf(call), Reason: "Start is not for the code of a task", Unsent: true}
	}
	id, err := c.admit(call, func(msg bft.Message) { hear.tell(call, msg) })
	if err != nil {
		return 0, err
	}
	call.ID = id
	if err := c.cfg.Deliver(ctx, call); err != nil {
		if !c.undo(id) {
			return id, nil // the client is being closed, and hear is told
		}
		return 0, undelivered(call, err)
	}
	return id, nil
}

// admit takes a call that is about to be delivered, if it may be made, and returns its ID.
func (c *Client) admit(call bft.Call, hear func(bft.Message)) (bft.CallID, error) {
	if err := c.fits(call); err != nil {
		return 0, err
	}
	if c.open.Add(1) > MaxOpen {
		c.open.Add(-1)
		return 0, &RejectedError{Kind: kindOf(call), Reason: fmt.Sprintf("overload: %d calls have no result", MaxOpen),
			Unsent: true}
	}
	ref, err := c.waiting.Add(hear)
	if err != nil {
		c.open.Add(-1)
		return 0, &RejectedError{Kind: kindOf(call), Reason: err.Error()}
	}
	return bft.CallID(ref), nil
}

// fits returns an error if a call is too large.
func (c *Client) fits(call bft.Call) error {
	if n := len(call.Command); n > c.cfg.MaxBytes {
		return &RejectedError{Kind: kindOf(call), Unsent: true,
			Reason: fmt.Sprintf("the command has %d bytes, more than %d", n, c.cfg.MaxBytes)}
	}
	return nil
}

// undo takes back a call that the node has not got, and reports whether anybody waited for it.
func (c *Client) undo(id bft.CallID) bool {
	c.open.Add(-1)
	return c.waiting.Forget(uint64(id))
}

func undelivered(call bft.Call, err error) error {
	return &RejectedError{Kind: kindOf(call), Reason: "the client node did not take it", Err: err}
}

// A Hearer is told what becomes of a call. First and Withdrawn may be nil.
type Hearer struct {
	First     func(bft.Result)
	Withdrawn func()
	Done      func(bft.Result, error)
}

func (h Hearer) tell(call bft.Call, msg bft.Message) {
	switch m := msg.(type) {
	case bft.First:
		if h.First != nil {
			h.First(m.Result)
		}
	case bft.Withdrawn:
		if h.Withdrawn != nil {
			h.Withdrawn()
		}
	case bft.Done:
		h.Done(m.Result, failure(kindOf(call), m.Result.Outcome))
	case abandoned:
		h.Done(bft.Result{}, m.unknown(call))
	}
}

// Do makes a call and waits until it is done or ctx is. A call that ctx ended may still be
// executed: the client node goes on asking the group for it. first, unless it is nil, is told of
// first replies. In a task Do is Execute or Read: first is not called, and what the call assumes is
// for the engine to say.
func (c *Client) Do(ctx context.Context, call bft.Call, first func(bft.Result)) (bft.Result, error) {
	return c.do(ctx, call, first, nil)
}

// do is Do for code that may predict more than bytes, see perform.
func (c *Client) do(
	ctx context.Context, call bft.Call, first func(bft.Result), guess func(any) ([]byte, bool),
) (bft.Result, error) {
	if driver.InTask(ctx) {
		return c.perform(ctx, call, guess)
	}
	type end struct {
		result bft.Result
		err    error
	}
	got := make(chan end, 1)
	ctx, stop := c.cfg.Guard(ctx)
	defer stop()
	call.Command = bytes.Clone(call.Command) // it is sent again from this memory
	id, err := c.Start(ctx, call, Hearer{First: first, Done: func(r bft.Result, err error) { got <- end{r, err} }})
	if err != nil {
		return bft.Result{}, err
	}
	select {
	case e := <-got:
		return e.result, e.err
	case <-ctx.Done():
	}
	if !c.waiting.Forget(uint64(id)) { // it was done at the same time
		e := <-got
		return e.result, e.err
	}
	return bft.Result{}, lateOutcome(call, context.Cause(ctx))
}

func lateOutcome(call bft.Call, why error) error {
	return &UnknownError{Kind: kindOf(call), Reason: "nobody answered in time", Err: why}
}

// Execute returns when the group has executed a command, with the result.
func (c *Client) Execute(ctx context.Context, command []byte) ([]byte, error) {
	r, err := c.Do(ctx, bft.Call{Command: command}, nil)
	return r.Value, err
}

// Read returns the service's answer to a query. It sees every command whose result was confirmed
// before Read was called, and those that code of the same task made before.
func (c *Client) Read(ctx context.Context, query []byte) ([]byte, error) {
	r, err := c.Do(ctx, bft.Call{Command: query, Read: true}, nil)
	return r.Value, err
}

func kindOf(call bft.Call) smr.CallKind {
	if call.Read {
		return smr.Read
	}
	return smr.Execute
}

func failure(kind smr.CallKind, o bft.Outcome) error {
	switch o {
	case bft.Executed:
		return nil
	case bft.Aborted:
		return &RejectedError{Kind: kind, Reason: "the result of an earlier call is not the one that it assumes"}
	case bft.Retry:
		return &RejectedError{Kind: kind, Reason: "an earlier call that it builds on was not executed"}
	}
	return &UnknownError{Kind: kind, Reason: "its session is over: later ones with this client's key have begun"}
}

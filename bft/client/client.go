package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/foresay/foresay/bft"
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

// Deliver hands a message to the client node, as from its application. It may wait until ctx is
// done for the node to have room.
type Deliver func(ctx context.Context, msg bft.Message) error

// A Client makes calls by a client node. Its methods may be called concurrently.
type Client struct {
	deliver Deliver
	waiting callers.Table[bft.Message]
	open    atomic.Int64 // calls that the node has, whether anybody waits for them or not
}

// New returns a client of the node that deliver reaches. What the node sends to its application
// must be given to Receive.
func New(deliver Deliver) *Client { return &Client{deliver: deliver} }

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

// Start makes a call and returns its ID, which is the client's to choose; a later call may name it.
// hear is told of a bft.First and a bft.Withdrawn, perhaps, and at the end of the result or an
// error, once; on another goroutine, which it must not keep waiting.
func (c *Client) Start(ctx context.Context, call bft.Call, hear Hearer) (bft.CallID, error) {
	if c.open.Add(1) > MaxOpen {
		c.open.Add(-1)
		return 0, &RejectedError{Kind: kindOf(call), Reason: fmt.Sprintf("overload: %d calls have no result", MaxOpen),
			Unsent: true}
	}
	ref, err := c.waiting.Add(func(msg bft.Message) { hear.tell(call, msg) })
	if err != nil {
		c.open.Add(-1)
		return 0, &RejectedError{Kind: kindOf(call), Reason: err.Error()}
	}
	call.ID = bft.CallID(ref)
	if err := c.deliver(ctx, call); err != nil {
		c.open.Add(-1)
		if !c.waiting.Forget(ref) {
			return call.ID, nil // the client is being closed, and hear is told
		}
		return 0, &RejectedError{Kind: kindOf(call), Reason: "the client node did not take it", Err: err}
	}
	return call.ID, nil
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
		h.Done(bft.Result{}, &UnknownError{Kind: kindOf(call), Reason: m.why.Error()})
	}
}

// Do makes a call and waits until it is done or ctx is. A call that ctx ended may still be
// executed: the client node goes on asking the group for it.
func (c *Client) Do(ctx context.Context, call bft.Call, first func(bft.Result)) (bft.Result, error) {
	type end struct {
		result bft.Result
		err    error
	}
	got := make(chan end, 1)
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
	return bft.Result{}, &UnknownError{Kind: kindOf(call), Reason: "nobody answered in time", Err: context.Cause(ctx)}
}

// Execute returns when the group has executed a command, with the result.
func (c *Client) Execute(ctx context.Context, command []byte) ([]byte, error) {
	r, err := c.Do(ctx, bft.Call{Command: command}, nil)
	return r.Value, err
}

// Read returns the service's answer to a query. It sees every command whose result was confirmed
// before Read was called.
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
	case bft.Oversized:
		return &RejectedError{Kind: kind, Reason: "the command, or its result, is larger than the group's limits allow"}
	}
	return &UnknownError{Kind: kind, Reason: "its session is over: later ones with this client's key have begun"}
}

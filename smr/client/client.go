package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foresay/foresay/internal/callers"
	"github.com/foresay/foresay/smr"
)

// Deliver hands a message to the client node, as from its application. It may wait until ctx is
// done for the node to have room.
type Deliver func(ctx context.Context, msg smr.Message) error

// A Client makes calls by a client node. Its methods may be called concurrently.
type Client struct {
	deliver Deliver

	waiting callers.Table[smr.Done]
}

// New returns a client of the node that deliver reaches. What the node sends to its application
// must be given to Receive.
func New(deliver Deliver) *Client {
	return &Client{deliver: deliver}
}

// Receive takes a message that the node sent to its application. Messages that are not about a call
// are ignored.
func (c *Client) Receive(msg smr.Message) {
	if done, ok := msg.(smr.Done); ok {
		c.waiting.Answer(uint64(done.ID), done)
	}
}

// Close ends all calls with an unknown outcome; why tells their callers. Later calls are rejected.
func (c *Client) Close(why error) {
	if why == nil {
		why = errors.New("the client is closed")
	}
	c.waiting.Close(why, func(ref uint64) smr.Done {
		return smr.Done{ID: smr.CallID(ref), Outcome: smr.Unknown, Reason: why.Error()}
	})
}

// Start makes a call and returns; done is called once with what became of it, on another goroutine
// and without blocking it. The call's ID is the client's to choose. An error says that the call was
// not made, and done is not called.
func (c *Client) Start(ctx context.Context, call smr.Call, done func(smr.Done)) error {
	_, err := c.start(ctx, call, done)
	return err
}

func (c *Client) start(ctx context.Context, call smr.Call, done func(smr.Done)) (smr.CallID, error) {
	ref, err := c.waiting.Add(done)
	if err != nil {
		return 0, &RejectedError{Kind: call.Kind, Reason: err.Error()}
	}
	call.ID = smr.CallID(ref)
	if deadline, ok := ctx.Deadline(); ok {
		call.Patience = max(call.Patience, time.Until(deadline))
	}
	if err := c.deliver(ctx, call); err != nil {
		if !c.waiting.Forget(ref) {
			return call.ID, nil // done is being called
		}
		return 0, &RejectedError{Kind: call.Kind, Reason: "the client node did not take it", Err: err}
	}
	return call.ID, nil
}

// Interrupt has all calls given up; why tells their callers. They end as Do does when its context
// is done.
func (c *Client) Interrupt(ctx context.Context, why error) {
	for _, ref := range c.waiting.Refs() {
		if c.deliver(ctx, smr.Cancel{ID: smr.CallID(ref), Reason: why.Error()}) != nil {
			return
		}
	}
}

// Do makes a call and waits until it is done or ctx is. Of a call that ctx ended, the client node
// still says whether it was sent to anybody: if not, the error is a RejectedError.
func (c *Client) Do(ctx context.Context, call smr.Call) (smr.Done, error) {
	got := make(chan smr.Done, 1)
	call.Command = bytes.Clone(call.Command) // replicas may get it from this memory after the call is done
	id, err := c.start(ctx, call, func(d smr.Done) { got <- d })
	if err != nil {
		return smr.Done{}, err
	}
	select {
	case d := <-got:
		return d, failure(call.Kind, d)
	case <-ctx.Done():
	}
	// The node is to forget the call, and says whether it was sent. If it has no room for that, it
	// keeps an entry until it answers; nobody waits for it.
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), 100*time.Millisecond)
	defer cancel()
	cause := context.Cause(ctx)
	if c.deliver(brief, smr.Cancel{ID: id, Reason: "nobody answered in time"}) == nil {
		select {
		case d := <-got:
			return d, abandoned(call.Kind, d, cause)
		case <-brief.Done():
		}
	}
	if !c.waiting.Forget(uint64(id)) { // it was done at the same time
		d := <-got
		return d, abandoned(call.Kind, d, cause)
	}
	return smr.Done{ID: id, Outcome: smr.Unknown}, &UnknownError{Kind: call.Kind, Reason: "nobody answered in time",
		Err: cause}
}

// abandoned is failure of a call that its caller does not wait for any longer.
func abandoned(kind smr.CallKind, d smr.Done, cause error) error {
	err := failure(kind, d)
	if unknown, ok := err.(*UnknownError); ok {
		unknown.Err = cause
	}
	if rejected, ok := err.(*RejectedError); ok {
		rejected.Err = cause
	}
	return err
}

// Propose returns when the command's position is fixed, with the position.
func (c *Client) Propose(ctx context.Context, command []byte) (smr.Slot, error) {
	d, err := c.Do(ctx, smr.Call{Kind: smr.Propose, Command: command})
	return d.Slot, err
}

// Execute returns when the command was executed, with its result.
func (c *Client) Execute(ctx context.Context, command []byte) ([]byte, error) {
	d, err := c.Do(ctx, smr.Call{Kind: smr.Execute, Command: command})
	return d.Result, err
}

// Read returns the state machine's answer to a query. It sees every command that was done before
// Read was called.
func (c *Client) Read(ctx context.Context, query []byte) ([]byte, error) {
	d, err := c.Do(ctx, smr.Call{Kind: smr.Read, Command: query})
	return d.Result, err
}

// Reconfigure returns when the change of the members is in force.
func (c *Client) Reconfigure(ctx context.Context, change smr.Change) error {
	_, err := c.Do(ctx, smr.Call{Kind: smr.Reconfigure, Change: change})
	return err
}

// A RejectedError says that what a call asked for is not the case, and will not be by this call.
type RejectedError struct {
	Kind   smr.CallKind
	Reason string
	Err    error // why the node did not take the call, or why the caller does not wait any longer, if it is that
	Unsent bool  // no replica was found to take the call: nothing was sent
}

func (e *RejectedError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%v: rejected: %s: %v", e.Kind, e.Reason, e.Err)
	}
	return fmt.Sprintf("%v: rejected: %s", e.Kind, e.Reason)
}

// Unwrap returns Err.
func (e *RejectedError) Unwrap() error { return e.Err }

// An UnknownError says that it is not known whether what a call asked for is the case, or will be.
type UnknownError struct {
	Kind   smr.CallKind
	Reason string
	Err    error // why the caller does not wait any longer, if it is that
}

func (e *UnknownError) Error() string {
	what := "outcome unknown"
	if e.Kind == smr.Read {
		what = "no answer" // nothing else is in doubt
	}
	if e.Err != nil {
		return fmt.Sprintf("%v: %s: %s: %v", e.Kind, what, e.Reason, e.Err)
	}
	return fmt.Sprintf("%v: %s: %s", e.Kind, what, e.Reason)
}

// Unwrap returns Err: context.Canceled or context.DeadlineExceeded, or the cause that the context
// was given.
func (e *UnknownError) Unwrap() error { return e.Err }

func failure(kind smr.CallKind, d smr.Done) error {
	switch d.Outcome {
	case smr.Committed:
		return nil
	case smr.Rejected:
		return &RejectedError{Kind: kind, Reason: d.Reason, Unsent: d.Unsent}
	default:
		return &UnknownError{Kind: kind, Reason: d.Reason}
	}
}

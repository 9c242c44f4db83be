package client

import (
	"context"
	"fmt"

	"github.com/foresay/foresay/smr"
)

// A Coding is how a state machine's commands C, queries Q and results R look as bytes. Its
// functions may be called concurrently.
type Coding[C, Q, R any] struct {
	Command func(C) ([]byte, error)
	Query   func(Q) ([]byte, error)
	Result  func([]byte) (R, error)
}

// Typed is a Client of a state machine with typed commands. A command or query that cannot be
// encoded is a [*RejectedError]. A result that cannot be decoded is an error that says so; the
// command was executed.
type Typed[C, Q, R any] struct {
	Client *Client
	Coding Coding[C, Q, R]
}

// Propose is [Client.Propose] of a typed command.
func (t Typed[C, Q, R]) Propose(ctx context.Context, command C) (smr.Slot, error) {
	b, err := t.Coding.Command(command)
	if err != nil {
		return 0, &RejectedError{Kind: smr.Propose, Reason: "the command cannot be encoded", Err: err}
	}
	return t.Client.Propose(ctx, b)
}

// Execute is [Client.Execute] of a typed command.
func (t Typed[C, Q, R]) Execute(ctx context.Context, command C) (R, error) {
	b, err := t.Coding.Command(command)
	if err != nil {
		var none R
		return none, &RejectedError{Kind: smr.Execute, Reason: "the command cannot be encoded", Err: err}
	}
	return t.result(t.Client.Execute(ctx, b))
}

// Read is [Client.Read] of a typed query.
func (t Typed[C, Q, R]) Read(ctx context.Context, query Q) (R, error) {
	b, err := t.Coding.Query(query)
	if err != nil {
		var none R
		return none, &RejectedError{Kind: smr.Read, Reason: "the query cannot be encoded", Err: err}
	}
	return t.result(t.Client.Read(ctx, b))
}

func (t Typed[C, Q, R]) result(b []byte, err error) (R, error) {
	var none R
	if err != nil {
		return none, err
	}
	r, err := t.Coding.Result(b)
	if err != nil {
		return none, fmt.Errorf("it was done, but its result cannot be decoded: %w", err)
	}
	return r, nil
}

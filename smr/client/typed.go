package client

import (
	"context"
	"fmt"

	"github.com/foresay/foresay/smr"
)

// A Coding is how a state machine's commands C, queries Q and results R look as bytes. Its
// functions may be called concurrently. A command or query that cannot be encoded is a
// [*RejectedError]. A result that cannot be decoded is an error that says so; the command was
// executed.
type Coding[C, Q, R any] struct {
	Command func(C) ([]byte, error)
	Query   func(Q) ([]byte, error)
	Result  func([]byte) (R, error)
}

// A Caller has commands executed and queries answered, as a Client has.
type Caller interface {
	Execute(ctx context.Context, command []byte) ([]byte, error)
	Read(ctx context.Context, query []byte) ([]byte, error)
}

// Execute is a caller's Execute of a typed command.
func (k Coding[C, Q, R]) Execute(ctx context.Context, by Caller, command C) (R, error) {
	b, err := k.command(smr.Execute, command)
	if err != nil {
		var none R
		return none, err
	}
	return k.result(by.Execute(ctx, b))
}

// Read is a caller's Read of a typed query.
func (k Coding[C, Q, R]) Read(ctx context.Context, by Caller, query Q) (R, error) {
	b, err := k.Query(query)
	if err != nil {
		var none R
		return none, &RejectedError{Kind: smr.Read, Reason: "the query cannot be encoded", Err: err}
	}
	return k.result(by.Read(ctx, b))
}

func (k Coding[C, Q, R]) command(kind smr.CallKind, command C) ([]byte, error) {
	b, err := k.Command(command)
	if err != nil {
		return nil, &RejectedError{Kind: kind, Reason: "the command cannot be encoded", Err: err}
	}
	return b, nil
}

func (k Coding[C, Q, R]) result(b []byte, err error) (R, error) {
	var none R
	if err != nil {
		return none, err
	}
	r, err := k.Result(b)
	if err != nil {
		return none, fmt.Errorf("it was done, but its result cannot be decoded: %w", err)
	}
	return r, nil
}

// Typed is a Client of a state machine with typed commands, which its Coding makes bytes of.
type Typed[C, Q, R any] struct {
	Client *Client
	Coding Coding[C, Q, R]
}

// Propose is [Client.Propose] of a typed command.
func (t Typed[C, Q, R]) Propose(ctx context.Context, command C) (smr.Slot, error) {
	b, err := t.Coding.command(smr.Propose, command)
	if err != nil {
		return 0, err
	}
	return t.Client.Propose(ctx, b)
}

// Execute is [Client.Execute] of a typed command.
func (t Typed[C, Q, R]) Execute(ctx context.Context, command C) (R, error) {
	return t.Coding.Execute(ctx, t.Client, command)
}

// Read is [Client.Read] of a typed query.
func (t Typed[C, Q, R]) Read(ctx context.Context, query Q) (R, error) {
	return t.Coding.Read(ctx, t.Client, query)
}

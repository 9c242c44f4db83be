package client

import (
	"context"

	"github.com/foresay/foresay/smr/client"
)

// Typed is a Client of a service with typed commands, which its Coding makes bytes of.
type Typed[C, Q, R any] struct {
	Client *Client
	Coding client.Coding[C, Q, R]
}

// Execute is [Client.Execute] of a typed command.
func (t Typed[C, Q, R]) Execute(ctx context.Context, command C) (R, error) {
	return t.Coding.Execute(ctx, t.Client, command)
}

// Read is [Client.Read] of a typed query.
func (t Typed[C, Q, R]) Read(ctx context.Context, query Q) (R, error) {
	return t.Coding.Read(ctx, t.Client, query)
}

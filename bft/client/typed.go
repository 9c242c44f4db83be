package client

import (
	"context"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/smr/client"
)

// Typed is a Client of a service with typed commands, which its Coding makes bytes of.
type Typed[C, Q, R any] struct {
	Client *Client
	Coding client.Coding[C, Q, R]
	// Guess makes the bytes of a result, as the service does. In tasks [foresay.Predicting] may have
	// an R then; without it, only bytes.
	Guess func(R) ([]byte, error)
}

// Execute is [Client.Execute] of a typed command.
func (t Typed[C, Q, R]) Execute(ctx context.Context, command C) (R, error) {
	return t.Coding.Execute(ctx, guessing[R]{t.Client, t.Guess}, command)
}

// Read is [Client.Read] of a typed query.
func (t Typed[C, Q, R]) Read(ctx context.Context, query Q) (R, error) {
	return t.Coding.Read(ctx, guessing[R]{t.Client, t.Guess}, query)
}

// guessing makes a client's calls, for which callers may predict an R.
type guessing[R any] struct {
	client *Client
	guess  func(R) ([]byte, error)
}

func (g guessing[R]) Execute(ctx context.Context, command []byte) ([]byte, error) {
	return g.call(ctx, bft.Call{Command: command})
}

func (g guessing[R]) Read(ctx context.Context, query []byte) ([]byte, error) {
	return g.call(ctx, bft.Call{Command: query, Read: true})
}

func (g guessing[R]) call(ctx context.Context, call bft.Call) ([]byte, error) {
	r, err := g.client.do(ctx, call, nil, func(v any) ([]byte, bool) {
		r, ok := v.(R)
		if !ok || g.guess == nil {
			return nil, false
		}
		b, err := g.guess(r)
		return b, err == nil
	})
	return r.Value, err
}

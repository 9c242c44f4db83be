package client

import (
	"context"
	"fmt"

	"github.com/foresay/foresay/driver"
)

// begun is an attempt at the sites that reads a snapshot. In a task its beginning is a call of the
// engine's: code that runs again and finds what it has read before goes on in the same snapshot.
type begun struct {
	name  string // in the identity of what it reads and commits
	sites Attempt
}

// performBegin begins an attempt for the code that runs under ctx.
func (c *Client) performBegin(ctx context.Context, b Beginning) begun {
	if !driver.InTask(ctx) || LevelOf(c.cfg.Backend) != Snapshot {
		return begun{sites: c.cfg.Backend.Begin(b)}
	}
	v, err := driver.Perform(ctx, &driver.Operation{
		CallSite: c.read, Conn: c.name, Identity: "begin", Request: "", CanSpeculate: true, Transport: &beginning{c, b},
	})
	if out, ok := v.(begun); ok && err == nil {
		return out
	}
	return begun{sites: c.cfg.Backend.Begin(b)} // of a run that is given up
}

// beginning is the beginning of an attempt as the engine sees it. It is never predicted.
type beginning struct {
	client *Client
	b      Beginning
}

// Start implements driver.Transport.
func (b *beginning) Start(_ context.Context, a *driver.Attempt) {
	a.Finish(begun{fmt.Sprintf("%d ", b.client.begun.Add(1)), b.client.cfg.Backend.Begin(b.b)}, nil)
}

// Equal implements driver.Transport.
func (b *beginning) Equal(_, _ any) bool { return false }

// Same implements driver.Transport.
func (b *beginning) Same(_, _ any) bool { return false }

// Accept implements driver.Transport.
func (b *beginning) Accept(any) (any, bool) { return nil, false }

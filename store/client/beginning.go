package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/foresay/foresay"
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
		CallSite: c.read, Conn: c.name, Identity: "begin", Request: "", CanSpeculate: true, Domain: c.domain,
		Transport: &beginning{c, b},
	})
	if out, ok := v.(begun); ok && err == nil {
		return out
	}
	return begun{sites: c.cfg.Backend.Begin(b)} // of a run that is given up
}

// end ends an attempt at the sites, for the code that runs under ctx. All runs of a task share one
// snapshot: a run that may be wrong leaves it to others, and one that is wrong does not end it.
func (a *attempt) end(ctx context.Context) {
	state := foresay.State(ctx)
	over := ctx.Err() != nil && !errors.Is(context.Cause(ctx), foresay.ErrMisspeculated) // for all runs
	switch {
	case a.snapshot == "" || over && !state.Discarded || !state.Speculative && !state.Discarded:
		a.sites.End()
	case !state.Discarded:
		foresay.OnCommit(ctx, a.sites.End)
	}
}

// beginning is the beginning of an attempt as the engine sees it. It is never predicted.
type beginning struct {
	client *Client
	b      Beginning
}

// Start implements driver.Transport.
func (b *beginning) Start(_ context.Context, a *driver.Attempt) {
	sites := b.client.cfg.Backend.Begin(b.b)
	a.OnResolve(func(confirmed bool) {
		if !confirmed {
			sites.End()
		}
	})
	a.Finish(begun{fmt.Sprintf("%d ", b.client.begun.Add(1)), sites}, nil)
}

// Equal implements driver.Transport.
func (b *beginning) Equal(_, _ any) bool { return false }

// Same implements driver.Transport.
func (b *beginning) Same(_, _ any) bool { return false }

// Accept implements driver.Transport.
func (b *beginning) Accept(any) (any, bool) { return nil, false }

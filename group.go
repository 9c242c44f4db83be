package foresay

import (
	"context"

	"github.com/foresay/foresay/internal/engine"
)

// Group runs functions concurrently within a task and keeps their calls apart,
// so that a replay knows which goroutine made which. Go must be called from one
// goroutine. A run ends only when its groups' functions have ended. Outside of
// a task a Group only runs functions and waits.
type Group engine.Group

// NewGroup returns an empty group for the goroutine that owns ctx.
func NewGroup(ctx context.Context) *Group {
	return (*Group)(engine.NewGroup(ctx))
}

// Go runs f in a goroutine of its own.
func (g *Group) Go(f func(ctx context.Context) error) { (*engine.Group)(g).Go(f) }

// Wait waits until all functions returned and returns the error of the first,
// in the order of Go, that has one. It panics with a *PanicError if one panicked: in a
// task only once the run is confirmed, for which it waits as [Barrier] does.
func (g *Group) Wait() error { return (*engine.Group)(g).Wait() }

// Package probe marks the call with which specgrpc finds out a server's
// interceptors, so that what counts calls can leave it out.
package probe

import "context"

type key struct{}

// Context returns the context of such a call.
func Context(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Is reports whether ctx is that of such a call.
func Is(ctx context.Context) bool { return ctx.Value(key{}) != nil }

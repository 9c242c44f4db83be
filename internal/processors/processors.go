// Package processors tells how long goroutines queue for the processors. Tests in
// virtual time, where they never do, say instead that they do.
package processors

import (
	"context"
	"runtime"
	"time"
)

type key struct{}

// Pretend returns a context in which wait says how long a goroutine waits for a processor.
func Pretend(ctx context.Context, wait func() time.Duration) context.Context {
	return context.WithValue(ctx, key{}, wait)
}

// Wait returns how long a goroutine that gives way waits until it runs again.
func Wait(ctx context.Context) time.Duration {
	if wait, ok := ctx.Value(key{}).(func() time.Duration); ok {
		return wait()
	}
	begun := time.Now()
	runtime.Gosched()
	return time.Since(begun)
}

// Busy reports whether one that waits for so long does not run again at once.
func Busy(wait time.Duration) bool { return wait > 20*time.Microsecond }

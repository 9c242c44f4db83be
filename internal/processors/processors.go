// Package processors tells whether goroutines queue for the processors. Tests in
// virtual time, where they never do, say instead that they do.
package processors

import (
	"context"
	"runtime"
	"time"
)

type key struct{}

// Pretend returns a context in which busy says whether the processors are busy.
func Pretend(ctx context.Context, busy func() bool) context.Context {
	return context.WithValue(ctx, key{}, busy)
}

// Busy reports whether goroutines wait for a processor: one that gives way does
// not run again at once.
func Busy(ctx context.Context) bool {
	if busy, ok := ctx.Value(key{}).(func() bool); ok {
		return busy()
	}
	const brief = 20 * time.Microsecond
	begun := time.Now()
	runtime.Gosched()
	return time.Since(begun) > brief
}

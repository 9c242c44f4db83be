package specgrpc

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// gRPC looks a call's service config up by its path, and a speculative stream has a
// path of its own. So what the config says of the method is done here, and what it
// says of the whole service, which gRPC would apply to the stream, is kept from it
// where it would mean something else.

// configure has the stream keep to what the service config says of its method. That
// is certain once a stream was opened, which waits for the first config.
func (x *exchange) configure(cc *grpc.ClientConn) {
	c := cc.GetMethodConfig(x.s.method.name)
	x.policy = policy{timeout: c.Timeout, waitForReady: c.WaitForReady, maxRequestBytes: c.MaxReqSize}
	if c.RetryPolicy != nil {
		x.policy.retryable = c.RetryPolicy.RetryableStatusCodes
	}
	x.limitBytes = least(c.MaxRespSize, x.accepts, defaultReceiveBytes)
}

// policy is what a service config says of a method, as far as it is kept to here. A nil
// field is not set.
type policy struct {
	timeout         *time.Duration
	waitForReady    *bool
	maxRequestBytes *int
	retryable       map[codes.Code]bool
}

// limit bounds the call by the config's time-out. As one that the code sets, it counts
// from when the caller is right.
func (x *exchange) limit() {
	s, timeout := x.s, x.policy.timeout
	if timeout == nil || *timeout < 0 {
		return
	}
	left := max(*timeout, time.Nanosecond)
	if x.speculative {
		s.limitTo(left)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.after(left)
}

// sendable fails if gRPC would not send so large a request. The call is then made
// plainly, so that gRPC says so.
func (x *exchange) sendable(requestBytes int) error {
	if most := least(x.policy.maxRequestBytes, nil, math.MaxInt32); requestBytes > most {
		return fmt.Errorf("the service config allows requests of %d bytes only", most)
	}
	return nil
}

// least returns the smaller limit of those that are set.
func least(a, b *int, otherwise int) int {
	switch {
	case a != nil && b != nil:
		return min(*a, *b)
	case a != nil:
		return *a
	case b != nil:
		return *b
	}
	return otherwise
}

// retried reports whether the service config has gRPC try again after this error. It
// is no result then: gRPC does so once the call is made plainly.
func (x *exchange) retried(err error) bool {
	return err != nil && x.policy.retryable[status.Code(err)]
}

// tryAgain ends an exchange whose result is none, since it is to be retried.
func (x *exchange) tryAgain(err error) (done bool, reason string, _ error) {
	x.s.mu.Lock()
	x.s.over = true
	x.s.mu.Unlock()
	x.s.end()
	x.out.attempt.Failed()
	return false, triedAgain(err), nil
}

func triedAgain(err error) string {
	return fmt.Sprintf("the service config has it tried again: %v", err)
}

// unlimited is a context to which gRPC adds no time-out of the service config: before
// another context is derived from it, it says that its time is over already, and
// gRPC sets no later end. The contexts derived from it know its own deadline only.
type unlimited struct {
	context.Context
	derived atomic.Bool
}

// Deadline is one of long ago before a context is derived.
func (u *unlimited) Deadline() (time.Time, bool) {
	if !u.derived.Load() {
		return time.Unix(0, 0), true
	}
	return u.Context.Deadline()
}

// Value notes that a context is derived, as package context then asks by a key of
// type *int what it can be derived from.
func (u *unlimited) Value(key any) any {
	if _, ok := key.(*int); ok {
		u.derived.Store(true)
	}
	return u.Context.Value(key)
}
